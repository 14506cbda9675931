"""Learning rules of identity while a crawl runs: what was settled is seen, what was learned is stored now and then.

Evidence that is not stored yet when the process dies is lost, and comes again as the crawl goes on: no page depends
on it. Where rules are applied, the learner says when a re-keying is worth its cost; it is done while the crawl rests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from crawlspace.engine.questions import Questions
from crawlspace.errors import DiskFull
from crawlspace.policy.evidence import IN_EFFECT, Evidence, KnownRule, LearningSettings, Lesson, RuleState, is_sure
from crawlspace.policy.learning import Candidate, Learning, Sighting
from crawlspace.ports import Learned
from crawlspace.types import Died, Finished, Reason, Refused, Released, Settlement, Unusable, WasRedirect
from crawlspace.urls import Identity
from crawlspace.urls.variants import HostRule

STORE_EVERY: Final = 500
"""Settled URLs after which new evidence is stored."""
LEAST: Final = 20
"""Settled URLs between two re-keyings, at least; and a fifth of those that the crawl had."""
SHARE: Final = 5
RESTORED: Final = 500
"""Stored rules that a run begins with, the best founded; others come back when something speaks for them again."""
_WEIGHT: Final = 256
"""Characters, or bytes, that equal contents must have to mean something (`content.text.LEAST_TEXT`)."""
DIGEST: Final = 16
_GONE: Final = frozenset({"http_404", "http_410", "soft_404"})


class Learner:
    """Learns from what one process settles. One for a run, begun with `begin`."""

    def __init__(self, settings: LearningSettings, store: Learned, identity: Identity) -> None:
        self._settings = settings
        self._store = store
        self._identity = identity
        self.learning = Learning(settings)
        self.ready: Callable[[], None] = _nobody
        """Called when rules wait to be applied or undone; the crawl is stopped for it then."""
        self._states: dict[HostRule, RuleState] = {}
        """States of rules as they are stored."""
        self._seen = 0
        self._stored = 0
        self._before = 0
        self._in_effect: frozenset[HostRule] = frozenset()
        self.questions: Questions | None = None
        """Asks hosts themselves; None: nobody is asked."""

    async def begin(self, fetches: int, in_effect: Sequence[HostRule]) -> None:
        """Go on with what is stored, in a crawl that has made so many requests and is under these rules."""
        self._before = fetches
        self._in_effect = frozenset(in_effect)
        for known in (await self._learned())[:RESTORED]:
            self.learning.restore(known.rule, known.state, known.evidence)

    def recall(self, pages: Iterable[Sighting]) -> None:
        """Take over what was remembered of a crawl's pages before its rules changed."""
        self.learning.recall(pages, lambda url: _form(url, self._identity) or url)

    async def settled(self, settlements: Sequence[Settlement]) -> None:
        """See what was settled just now."""
        for settlement in settlements:
            sighting = sighting_of(settlement, self._identity)
            if sighting is not None:
                self.learning.see(sighting)
                self._seen += 1
        if self.questions is not None and self._settings.probe:
            self.questions.probe()
        if self._judge() or self._seen - self._stored >= STORE_EVERY:
            await self.flush()
        if self._is_worth_it() and any(self._waits(each) for each in self.learning.candidates()):
            self.ready()

    async def flush(self) -> None:
        """Store what is new, and take up what others stored; a full disk leaves it for the next time."""
        lessons = [self._lesson(each) for each in self.learning.candidates() if _is_news(each)]
        try:
            if lessons:
                await self._store.learn(lessons)
        except DiskFull:
            return
        self._stored = self._seen
        for candidate in self.learning.candidates():
            if _is_news(candidate):
                candidate.unsaved, candidate.moved = Evidence(), False
        for known in await self._learned():
            if self.learning.candidate(known.rule) is not None:
                self.learning.restore(known.rule, known.state, known.evidence)

    # -- judging --------------------------------------------------------------------------------------------

    def _judge(self) -> bool:
        """Move rules on as their evidence says; whether any moved."""
        moved = self.learning.judge()
        if self._settings.mode == "apply":
            for candidate in self.learning.candidates():
                if candidate.state is RuleState.PROPOSED and is_sure(
                    candidate.rule, candidate.evidence, self._settings
                ):
                    candidate.state, candidate.moved = RuleState.ACCEPTED, True
                    moved.append(candidate)
        return bool(moved)

    def _is_worth_it(self) -> bool:
        return self._settings.mode == "apply" and self._seen >= max(LEAST, self._before // SHARE)

    def _waits(self, candidate: Candidate) -> bool:
        """Whether the crawl is not under what was decided of a rule."""
        if candidate.state is RuleState.ACCEPTED:
            return candidate.rule not in self._in_effect
        return candidate.rule in self._in_effect and candidate.state not in IN_EFFECT

    def _lesson(self, candidate: Candidate) -> Lesson:
        return Lesson(
            rule=candidate.rule,
            evidence=candidate.unsaved,
            examples=tuple(candidate.examples),
            against=tuple(candidate.against),
            was=self._states.get(candidate.rule, RuleState.WATCHED),
            state=candidate.state,
        )

    async def _learned(self) -> list[KnownRule]:
        known = await self._store.learned()
        self._states = {each.rule: each.state for each in known}
        return known


def _is_news(candidate: Candidate) -> bool:
    """Whether there is something to store; a single pair is not."""
    enough = candidate.evidence.pairs > 1 or candidate.state is not RuleState.WATCHED
    return candidate.moved or (enough and candidate.unsaved != Evidence())


def _nobody() -> None:
    """Nobody waits for it."""


def sighting_of(settlement: Settlement, identity: Identity) -> Sighting | None:
    """What a settlement says of its URL; None when it says nothing of identity."""
    if isinstance(settlement, Released) or settlement.url.request is not None:
        return None
    own = _form(settlement.url.url, identity)
    if own is None:
        return None
    match settlement:
        case Finished():
            return _page(settlement, own, identity)
        case WasRedirect():
            target = _form(settlement.target, identity)
            return None if target is None else Sighting(own, target=target)
        case Died() if settlement.evidence.error in _GONE:
            return Sighting.missing(own)
        case Refused() if settlement.reason is Reason.ROBOTS:
            return Sighting.forbidden(own)
    return None


def _page(settlement: Finished, own: str, identity: Identity) -> Sighting | None:
    evidence, known_by = settlement.evidence, settlement.evidence.fingerprints
    if evidence.error is not None or not 200 <= (evidence.status or 0) < 300:
        return None
    declared = None if evidence.canonical is None else _form(evidence.canonical, identity)
    if known_by is not None:
        weighty = known_by.length >= _WEIGHT and known_by.sign is None
        text, links, main = (digest[:DIGEST] for digest in (known_by.text, known_by.follow, known_by.main))
        return Sighting(own, text, weighty, links, declared, url=settlement.url.url, main=main)
    return Sighting(own, (evidence.digest or b"")[:DIGEST], evidence.size >= _WEIGHT, declared=declared)


def _form(url: str, identity: Identity) -> str | None:
    address = identity.identify(url)
    return None if isinstance(address, Unusable) else address.canonical
