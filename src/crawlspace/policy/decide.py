"""How a leased URL ends: the heart of the crawl, and the file to read first.

A URL and what came of asking for it go in; exactly one named settlement comes out. All judgement is made elsewhere
and arrives as values: what the answer means (`outcome`), whether there is another try (`retry`). Whoever applies a
settlement needs to know nothing of the web, and whoever fetches nothing of states.

The class of a failure is written into the evidence here and nowhere else, so that dead letters, histories and figures
use the same words.
"""

from __future__ import annotations

from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from crawlspace.clock import Chance
from crawlspace.policy.outcome import BAD_LOCATION, BLOCKED, SOFT_404, Kind, Outcome
from crawlspace.policy.recrawl import NOT_MODIFIED, conditions
from crawlspace.policy.retry import Failed, RetrySettings, next_try
from crawlspace.types import (
    Died,
    Evidence,
    Finished,
    Moved,
    QueuedUrl,
    Reason,
    Refused,
    Relation,
    Rerouted,
    RetryAt,
    Unchanged,
    WasRedirect,
)

Ending = Finished | Unchanged | WasRedirect | Moved | RetryAt | Rerouted | Died
"""The settlements of a URL that was asked for."""


class Case(Struct, frozen=True):
    """One request under a lease, and what came of it."""

    token: int
    hid: int
    url: QueuedUrl
    outcome: Outcome
    evidence: Evidence
    target: str | None = None
    """Where a redirect leads, as an address that can be fetched; None when it leads to no such thing."""
    same_page: bool = False
    """The target has the fingerprint of the URL itself, and lies on another host."""
    gone: tuple[str, ...] = ()
    """The routes that it was sent on, the one by which it was asked for last."""
    onward: str = ""
    """The next route for it, should it be blocked; empty when none is left."""
    tries: int | None = None
    """Requests that the route it is on grants one URL; None: as `retry.max` has it."""


def decide(case: Case, now: int, chance: Chance, settings: RetrySettings) -> Ending:
    """The one settlement of a URL that was asked for; `now` is milliseconds since 1970 UTC."""
    match case.outcome.kind:
        case Kind.SUCCESS:
            return _finished(case)
        case Kind.REDIRECT:
            return _redirected(case)
        case Kind.TRANSIENT:
            return _again_or_never(case, now, chance, settings)
        case Kind.TERMINAL:
            return _died(case, _class_of(case.outcome))
        case Kind.BLOCKED:
            return _blocked(case, now)
        case _ as unknown:
            assert_never(unknown)


def robots_refusal(token: int, hid: int, url: QueuedUrl, detail: str) -> Refused:
    """A URL that robots.txt forbids; `detail` names the rule. No request was made, so no try is used up."""
    return Refused(token, hid, url, Reason.ROBOTS, detail)


def missing(page: Finished, detail: str) -> Died:
    """The end of a page that is not there although its status says so; `detail` says how that is known."""
    return Died(page.token, page.hid, page.url, replace(page.evidence, error=SOFT_404, detail=detail))


def widens_scope(url: QueuedUrl, outcome: Outcome) -> bool:
    """Whether the redirect moves a seed for good, so that the crawl follows it to a host outside its scope.

    Also true along a chain: what a seed redirected to is as far from the start as the seed.
    """
    from_seed = url.depth == 0 and url.relation in (Relation.SEED, Relation.REDIRECT)
    return from_seed and outcome.kind is Kind.REDIRECT and outcome.permanent


def unroutable(token: int, hid: int, url: QueuedUrl, detail: str, now: int) -> Died:
    """The end of a blocked URL that no route takes any more; no request is made for it."""
    return Died(token, hid, url, Evidence(now, error=BLOCKED, detail=detail, route=url.route, asked=False))


def _blocked(case: Case, now: int) -> Rerouted | Died:
    """On by the next route, which is no try of this one; behind the last a dead letter."""
    evidence = replace(case.evidence, error=BLOCKED)
    if not case.onward:
        return Died(case.token, case.hid, case.url, evidence)
    return Rerouted(case.token, case.hid, case.url, evidence, (*case.gone, case.onward), now)


def _finished(case: Case) -> Finished | Unchanged:
    evidence = _evidence(case, case.outcome.error)
    if evidence.status == NOT_MODIFIED and conditions(case.url.before):
        return Unchanged(case.token, case.hid, case.url, evidence)
    return Finished(case.token, case.hid, case.url, evidence)


def _redirected(case: Case) -> WasRedirect | Moved | Died:
    if case.target is None:
        return _died(case, BAD_LOCATION)
    ending = Moved if case.same_page else WasRedirect
    return ending(case.token, case.hid, case.url, _evidence(case, None), case.target)


def _again_or_never(
    case: Case, now: int, chance: Chance, settings: RetrySettings
) -> RetryAt | Rerouted | Finished | Unchanged | Died:
    error = _class_of(case.outcome)
    if case.tries is not None:
        settings = replace(settings, max=case.tries)
    failed = Failed(error, case.url.attempts + 1, case.outcome.retry_after_ms)
    due = next_try(failed, now, chance, settings)
    if due is not None:
        return RetryAt(case.token, case.hid, case.url, _evidence(case, error), due)
    if case.url.routes and not case.outcome.partial:
        # It was blocked before; that this route fails as well leaves it so, until one does not.
        return _blocked(replace(case, evidence=replace(case.evidence, detail=_why(case, error))), now)
    if case.outcome.partial:
        # Half a page with its links is better than none; its capture is marked truncated, its evidence says why.
        return _finished(case)
    return _died(case, error)


def _why(case: Case, error: str) -> str:
    return f"{error} by route {case.evidence.route}" + (f": {case.evidence.detail}" if case.evidence.detail else "")


def _class_of(outcome: Outcome) -> str:
    """The class of a failure; one that nobody named goes by its kind, since every terminal state carries a reason."""
    return outcome.error or outcome.kind.value


def _died(case: Case, error: str) -> Died:
    return Died(case.token, case.hid, case.url, _evidence(case, error))


def _evidence(case: Case, error: str | None) -> Evidence:
    return case.evidence if case.evidence.error == error else replace(case.evidence, error=error)
