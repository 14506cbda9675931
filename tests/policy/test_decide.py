"""How a leased URL ends."""

from __future__ import annotations

import random
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawlspace.policy.decide import Case, Ending, decide, missing, robots_refusal, widens_scope
from crawlspace.policy.outcome import Kind, Outcome
from crawlspace.policy.retry import RetrySettings
from crawlspace.types import (
    Died,
    Evidence,
    Finished,
    Moved,
    QueuedUrl,
    Reason,
    Refused,
    Relation,
    RetryAt,
    WasRedirect,
)

NOW = 1_700_000_000_000
TARGET = "http://site.test/new"
URL = QueuedUrl(7, b"k" * 16, "http://site.test/", front_class=1, depth=0, relation=Relation.SEED)
EVIDENCE = Evidence(at=NOW - 90, status=200, size=123)
STEADY = RetrySettings(jitter=0)

GOOD = Outcome(Kind.SUCCESS)
MOVED = Outcome(Kind.REDIRECT, location="/new")
BUSY = Outcome(Kind.TRANSIENT, error="http_503", slow_down=True)
HALF = Outcome(Kind.TRANSIENT, error="truncated", partial=True)
GONE = Outcome(Kind.TERMINAL, error="http_404")


def ending(outcome: Outcome, *, attempts: int = 0, target: str | None = TARGET, same_page: bool = False) -> Ending:
    case = Case(3, 5, replace(URL, attempts=attempts), outcome, EVIDENCE, target, same_page)
    return decide(case, NOW, random.Random(1), STEADY)


@pytest.mark.parametrize(
    ("outcome", "attempts", "kind", "error"),
    [
        (GOOD, 0, Finished, None),
        (GOOD, 2, Finished, None),
        (MOVED, 0, WasRedirect, None),
        (BUSY, 0, RetryAt, "http_503"),
        (BUSY, 1, RetryAt, "http_503"),
        (BUSY, 2, Died, "http_503"),
        (HALF, 0, RetryAt, "truncated"),
        (HALF, 1, Finished, "truncated"),
        (replace(HALF, partial=False), 1, Died, "truncated"),
        (GONE, 0, Died, "http_404"),
        (Outcome(Kind.TERMINAL), 0, Died, "terminal"),
        (Outcome(Kind.TRANSIENT), 2, Died, "transient"),
    ],
)
def test_an_outcome_and_the_tries_so_far_give_the_settlement(
    outcome: Outcome, attempts: int, kind: type[Ending], error: str | None
) -> None:
    """Its evidence carries the class of the failure; half a page is kept when no try is left."""
    settled = ending(outcome, attempts=attempts)
    assert type(settled) is kind
    assert settled.evidence == replace(EVIDENCE, error=error)
    assert (settled.token, settled.hid, settled.url.id) == (3, 5, 7)


def test_a_redirect_keeps_both_ends() -> None:
    """The edge goes from the URL to the address that can be fetched."""
    settled = ending(MOVED)
    assert isinstance(settled, WasRedirect)
    assert settled.target == TARGET


def test_the_same_page_on_another_host_is_moved() -> None:
    """It is queued again there, not linked to itself."""
    settled = ending(MOVED, same_page=True)
    assert isinstance(settled, Moved)
    assert settled.target == TARGET


def test_a_redirect_to_nothing_that_can_be_fetched_is_dead() -> None:
    """`mailto:` and the like; trying again would bring the same."""
    settled = ending(MOVED, target=None)
    assert isinstance(settled, Died)
    assert settled.evidence.error == "bad_location"


def test_a_retry_is_due_when_the_table_or_the_server_says() -> None:
    """The server's word wins."""
    ours, theirs = ending(BUSY), ending(replace(BUSY, retry_after_ms=5))
    assert isinstance(ours, RetryAt)
    assert isinstance(theirs, RetryAt)
    assert (ours.due, theirs.due) == (NOW + 30_000, NOW + 5)


def test_evidence_that_already_says_so_is_handed_on_as_it_is() -> None:
    """Nothing is copied without need, and a stale class is taken out."""
    dirty = Case(3, 5, URL, GOOD, replace(EVIDENCE, error="reset"))
    assert decide(dirty, NOW, random.Random(1), STEADY).evidence == EVIDENCE
    assert ending(GOOD).evidence is EVIDENCE


def test_robots_refuse_without_a_request() -> None:
    """The rule is named; no evidence, no try used up."""
    assert robots_refusal(3, 5, URL, "Disallow: /x (line 2)") == Refused(
        3, 5, URL, Reason.ROBOTS, "Disallow: /x (line 2)"
    )


@pytest.mark.parametrize(
    ("depth", "relation", "kind", "permanent", "widens"),
    [
        (0, Relation.SEED, Kind.REDIRECT, True, True),
        (0, Relation.REDIRECT, Kind.REDIRECT, True, True),
        (0, Relation.SEED, Kind.REDIRECT, False, False),
        (0, Relation.SITEMAP, Kind.REDIRECT, True, False),
        (1, Relation.REDIRECT, Kind.REDIRECT, True, False),
        (1, Relation.HYPERLINK, Kind.REDIRECT, True, False),
        (0, Relation.SEED, Kind.SUCCESS, True, False),
    ],
)
def test_only_a_seed_that_moved_for_good_widens_the_scope(
    depth: int, relation: Relation, kind: Kind, permanent: bool, widens: bool
) -> None:
    """Directly, or at the end of a chain from a seed."""
    url = replace(URL, depth=depth, relation=relation)
    assert widens_scope(url, Outcome(kind, permanent=permanent)) is widens


outcomes = st.builds(
    Outcome,
    kind=st.sampled_from(Kind),
    error=st.none() | st.sampled_from(["http_503", "http_404", "dns", "tls", "truncated", "local"]),
    retry_after_ms=st.none() | st.integers(0, 86_400_000),
    partial=st.booleans(),
)


@given(outcomes, st.integers(0, 200), st.booleans(), st.none() | st.just(TARGET), st.randoms(use_true_random=False))
def test_every_case_has_exactly_one_settlement(
    outcome: Outcome, attempts: int, same_page: bool, target: str | None, chance: random.Random
) -> None:
    """None is due before now, none is tried beyond the setting, and no death is without its class."""
    case = Case(3, 5, replace(URL, attempts=attempts), outcome, EVIDENCE, target, same_page)
    settled = decide(case, NOW, chance, RetrySettings())
    assert isinstance(settled, get_args(Ending))
    match settled:
        case RetryAt(due=due):
            assert due >= NOW
            assert attempts + 1 < RetrySettings().max
        case Died(evidence=evidence):
            assert evidence.error
        case Finished():
            assert outcome.kind is Kind.SUCCESS or outcome.partial
        case WasRedirect() | Moved():
            assert outcome.kind is Kind.REDIRECT


def test_a_page_that_is_not_there_is_a_dead_letter_with_its_capture() -> None:
    done = ending(GOOD)
    assert isinstance(done, Finished)
    died = missing(done, "it says so itself")
    assert isinstance(died, Died)
    assert died.evidence == replace(done.evidence, error="soft_404", detail="it says so itself")
    assert (died.token, died.hid, died.url) == (done.token, done.hid, done.url)
