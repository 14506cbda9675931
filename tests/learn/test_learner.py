"""What a learner makes of settlements, and how it keeps what it learned."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from crawlspace.engine.learner import STORE_EVERY, Learner, sighting_of
from crawlspace.errors import DiskFull
from crawlspace.policy.evidence import Evidence, KnownRule, LearningSettings, Lesson, RuleState
from crawlspace.policy.learning import Sighting
from crawlspace.types import (
    Died,
    Fingerprints,
    Finished,
    Pace,
    QueuedUrl,
    Reason,
    Refused,
    Released,
    RequestSpec,
    RetryAt,
    Settlement,
    WasRedirect,
)
from crawlspace.types import Evidence as Seen
from crawlspace.urls import Identity, IdentitySettings, policy_from
from crawlspace.urls.variants import HostRule, RuleKind

IDENTITY = Identity(policy_from(IdentitySettings()))
T0 = 1_700_000_000_000
SLASH = HostRule(RuleKind.SLASH, "a.test")


class Store:
    """Keeps lessons in a list and states of rules, and has no room for them when told so."""

    def __init__(self, *known: KnownRule) -> None:
        self.known = list(known)
        self.lessons: list[Lesson] = []
        self.full = False

    async def learned(self) -> list[KnownRule]:
        return self.known

    async def learn(self, lessons: Sequence[Lesson], now: int | None = None) -> None:
        if self.full:
            raise DiskFull("no space")
        self.lessons += lessons
        moved = {lesson.rule: lesson for lesson in lessons}
        for place, known in enumerate(self.known):
            lesson = moved.get(known.rule)
            if lesson is not None and lesson.was is known.state:
                self.known[place] = known._replace(state=lesson.state)

    async def declared(self, keys: Sequence[bytes]) -> list[str | None]:
        return [None for _ in keys]


def where(url: str, request: RequestSpec | None = None) -> tuple[int, int, QueuedUrl]:
    return 1, 2, QueuedUrl(3, b"k" * 16, url, 5, 1, 0, request=request)


def page(url: str, says: str, length: int = 300, sign: str | None = None, canonical: str | None = None) -> Finished:
    known_by = Fingerprints(says.encode().ljust(32), b"f" * 32, length, sign=sign)
    return Finished(*where(url), Seen(T0, 200, fingerprints=known_by, canonical=canonical))


def text(says: str) -> bytes:
    return says.encode().ljust(16)


@pytest.mark.parametrize(
    ("settlement", "expected"),
    [
        (
            page("http://A.test/x?utm_source=1", "hello", canonical="http://a.test/y#top"),
            Sighting("http://a.test/x", text("hello"), True, b"f" * 16, "http://a.test/y"),
        ),
        (page("http://a.test/x", "hello", length=255), Sighting("http://a.test/x", text("hello"), False, b"f" * 16)),
        (page("http://a.test/x", "no", sign="error"), Sighting("http://a.test/x", text("no"), False, b"f" * 16)),
        (
            Finished(*where("http://a.test/p.pdf"), Seen(T0, 200, digest=b"d" * 32, size=999)),
            Sighting("http://a.test/p.pdf", b"d" * 16, True),
        ),
        (
            WasRedirect(*where("http://a.test/x"), Seen(T0, 301), "http://a.test/x/?"),
            Sighting("http://a.test/x", target="http://a.test/x/"),
        ),
        (Died(*where("http://a.test/x"), Seen(T0, 404, "http_404")), Sighting.missing("http://a.test/x")),
        (Died(*where("http://a.test/x"), Seen(T0, 200, "soft_404")), Sighting.missing("http://a.test/x")),
        (Refused(*where("http://a.test/x"), Reason.ROBOTS), Sighting.forbidden("http://a.test/x")),
    ],
)
def test_what_a_settlement_says_of_its_url(settlement: Settlement, expected: Sighting) -> None:
    seen = sighting_of(settlement, IDENTITY)
    assert seen is not None
    assert seen._replace(url="") == expected


@pytest.mark.parametrize(
    "settlement",
    [
        Released(1, 2, Pace()),
        Refused(*where("http://a.test/x"), Reason.DEPTH),
        Died(*where("http://a.test/x"), Seen(T0, 500, "http_500")),
        RetryAt(*where("http://a.test/x"), Seen(T0, 503, "http_503"), T0),
        Finished(*where("http://a.test/x"), Seen(T0, 200, "truncated")),
        Finished(*where("http://a.test/x"), Seen(T0, 403)),
        Finished(*where("http://a.test/x", RequestSpec("POST", b"", "")), Seen(T0, 200)),
        WasRedirect(*where("http://a.test/x"), Seen(T0, 301), "mailto:me@a.test"),
    ],
)
def test_all_else_says_nothing(settlement: Settlement) -> None:
    assert sighting_of(settlement, IDENTITY) is None


def slashes(count: int) -> list[Settlement]:
    return [page(f"http://a.test/{n}{slash}", f"text {n}") for n in range(count) for slash in ("", "/")]


def play(learner: Learner, *settlements: Settlement) -> None:
    async def run() -> None:
        await learner.begin(0, ())
        await learner.settled(settlements)

    asyncio.run(run())


def test_what_moved_is_stored_at_once_with_its_evidence() -> None:
    store = Store()
    play(Learner(LearningSettings(), store, IDENTITY), *slashes(5))
    (lesson,) = store.lessons
    assert (lesson.rule, lesson.was, lesson.state) == (SLASH, RuleState.WATCHED, RuleState.PROPOSED)
    assert lesson.evidence.texts == 5
    assert len(lesson.examples) == 3


def test_the_rest_is_stored_now_and_then_and_single_pairs_never() -> None:
    store = Store()
    others: list[Settlement] = [page(f"http://b.test/{n}", f"other {n}") for n in range(STORE_EVERY)]
    single = [page(f"http://c.test/x{slash}", "twice") for slash in ("", "/")]
    play(Learner(LearningSettings(), store, IDENTITY), *slashes(3), *single, *others)
    assert [(lesson.rule, lesson.evidence.texts) for lesson in store.lessons] == [(SLASH, 3)]


def test_a_full_disk_leaves_it_for_the_next_time() -> None:
    store = Store()
    store.full = True
    learner = Learner(LearningSettings(), store, IDENTITY)
    play(learner, *slashes(5))
    assert store.lessons == []
    store.full = False
    asyncio.run(learner.flush())
    assert [lesson.evidence.texts for lesson in store.lessons] == [5]
    asyncio.run(learner.flush())
    assert len(store.lessons) == 1


def test_what_others_stored_is_taken_up() -> None:
    known = KnownRule(SLASH, RuleState.REJECTED, Evidence(texts=40, kinds=3))
    store = Store(known)
    learner = Learner(LearningSettings(), store, IDENTITY)
    play(learner, *slashes(2))
    (candidate,) = learner.learning.candidates()
    assert (candidate.state, candidate.evidence.texts) == (RuleState.REJECTED, 42)


@pytest.mark.parametrize(
    ("mode", "in_effect", "state", "asked"),
    [
        ("suggest", (), RuleState.WATCHED, False),
        ("apply", (), RuleState.WATCHED, True),
        ("apply", (SLASH,), RuleState.APPLIED, False),
        ("apply", (SLASH,), RuleState.REJECTED, True),
        ("apply", (), RuleState.REJECTED, False),
    ],
)
def test_a_crawl_is_asked_to_rest_when_its_rules_are_not_those_that_were_decided(
    mode: str, in_effect: tuple[HostRule, ...], state: RuleState, asked: bool
) -> None:
    settings = LearningSettings(mode=mode)  # type: ignore[arg-type]
    learner = Learner(settings, Store(KnownRule(SLASH, state, Evidence(texts=9, kinds=3))), IDENTITY)
    rests: list[bool] = []
    learner.ready = lambda: rests.append(True)

    async def run() -> None:
        await learner.begin(0, in_effect)
        await learner.settled(slashes(5))
        assert rests == []  # too few pages since the last time
        await learner.settled([page(f"http://b.test/{n}", f"other {n}") for n in range(20)])

    asyncio.run(run())
    assert bool(rests) is asked
