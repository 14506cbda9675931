"""What every frontier must do about visits beyond the first: inherit the suite beside the frontier's own.

A URL that is due leaves its outcome for the queue; how it ended is kept; nobody scans for it.
"""

from __future__ import annotations

import random
from typing import Protocol

from crawlspace.frontier.rounds import LATER_MS
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.policy.commands import Hold
from crawlspace.ports import Control, Revisits
from crawlspace.states import UrlState
from crawlspace.testing.frontier_contract_words import (
    DELAY,
    T0,
    FrontierSuite,
    Store,
    address,
    link,
    links,
    one_lease,
    released,
    seen,
    spend,
    states,
    wish,
)
from crawlspace.types import (
    Again,
    Answer,
    Died,
    Evidence,
    Finished,
    GenerationFigures,
    Lease,
    Plan,
    Pointer,
    QueuedUrl,
    Reason,
    Refused,
    RetryAt,
    Settlement,
    Unchanged,
    WasRedirect,
    host_id,
)

WEEK = 7 * 86_400_000
_ON = FrontierSettings(revisits=True)


class _Store(Store, Revisits, Control, Protocol):
    """A frontier of which all is asked."""


def _done(
    lease: Lease, url: QueuedUrl, again: Again | None = None, body: bytes | None = None, **more: object
) -> Finished:
    evidence = Evidence(T0, 200, pointer=Pointer("0001.warc.gz", 0, 100), digest=seen(body=body).digest, **more)  # type: ignore[arg-type]
    return Finished(lease.token, lease.host.hid, url, evidence, again or Again(WEEK))


async def _round(store: Store, now: int, again: Again, status: int = 200) -> Lease:
    """Lease what there is, end it so, and give the host back."""
    lease = await one_lease(store, now)
    ends: list[Finished | Died] = []
    for url in lease.urls:
        if status == 200:
            ends.append(_done(lease, url, again, url.url.encode()))
        else:
            ends.append(Died(lease.token, lease.host.hid, url, seen(status, error=f"http_{status}"), again))
    answers = await store.settle([*ends, released(lease, now + DELAY)], [], now)
    assert set(answers) == {Answer.SETTLED}
    return lease


def _ended(figures: GenerationFigures) -> dict[str, int]:
    return {state.name.lower(): n for state, n in figures.ended.items() if n}


def _adds_up(generations: list[GenerationFigures]) -> bool:
    return all(each.begun == each.waiting + sum(each.ended.values()) for each in generations)


class RecrawlContract(FrontierSuite):
    """Visits beyond the first."""

    def test_a_url_is_visited_again_when_it_is_due_and_not_before(self) -> None:
        async def story(store: _Store) -> None:
            await store.claim(links(3), T0)
            first = await _round(store, T0, Again(WEEK))
            assert [url.generation for url in first.urls] == [0, 0, 0]
            assert await store.lease(wish(), T0 + WEEK - 1) == []
            assert (await states(store)) == {"done": 3}
            again = await one_lease(store, T0 + WEEK)
            assert [(url.id, url.generation, url.attempts) for url in again.urls] == [(1, 1, 0), (2, 1, 0), (3, 1, 0)]
            assert await states(store) == {"leased": 3}
            counts = await store.counts()
            assert (counts.pages, counts.known, counts.fetches) == (0, 3, 3)

        self._play(story)

    def test_without_the_setting_nobody_is_visited_again(self) -> None:
        async def story(store: _Store) -> None:
            await store.claim(links(1), T0)
            await _round(store, T0, Again(WEEK))
            assert await store.lease(wish(), T0 + 2 * WEEK) == []
            assert await store.due_in(T0) is None

        self._play(story, FrontierSettings())

    def test_what_ends_for_good_is_never_due(self) -> None:
        async def story(store: _Store) -> None:
            await store.claim(links(2), T0)
            await _round(store, T0, Again(None))
            assert await store.next_visit() is None
            assert await store.lease(wish(), T0 + 99 * WEEK) == []

        self._play(story)

    def test_the_next_visit_knows_what_the_last_one_found(self) -> None:
        async def story(store: _Store) -> None:
            await store.claim(links(1), T0)
            lease = await one_lease(store)
            end = _done(lease, lease.urls[0], Again(WEEK), b"x", etag='"1"', last_modified="yesterday")
            await store.settle([end, released(lease)], [], T0)
            [url] = (await one_lease(store, T0 + WEEK)).urls
            before = url.before
            assert lease.urls[0].before is None
            assert before is not None
            assert (before.status, before.digest, before.at) == (200, end.evidence.digest, T0)
            assert (before.etag, before.last_modified, before.interval_ms) == ('"1"', "yesterday", WEEK)
            assert (before.url, before.misses) == (url.url, ())

        self._play(story)

    def test_a_page_that_is_as_it_was_keeps_its_capture_and_what_it_is_a_copy_of(self) -> None:
        async def story(store: _Store) -> None:
            await store.claim(links(2), T0)
            lease = await one_lease(store)
            ends = [_done(lease, url, Again(WEEK), b"the same", etag='"1"') for url in lease.urls]
            await store.settle([*ends, released(lease)], [], T0)
            again = await one_lease(store, T0 + WEEK)
            assert (await store.counts()).duplicates == 0
            told = Evidence(T0 + WEEK, 304, pointer=Pointer("0002.warc.gz", 0, 50), size=50)
            unchanged = [
                Unchanged(again.token, again.host.hid, url, told, Again(2 * WEEK, False)) for url in again.urls
            ]
            await store.settle([*unchanged, released(again)], [], T0 + WEEK)
            first, second = await store.find([address("0").key, address("1").key])
            assert first is not None
            assert second is not None
            assert second.evidence is not None
            assert (second.state, second.changed, second.copy_of) == (UrlState.DONE, False, first.url)
            assert (second.evidence.pointer, second.evidence.status) == (ends[1].evidence.pointer, 200)
            assert (second.evidence.at, second.evidence.etag) == (T0 + WEEK, '"1"')
            assert second.next_visit == T0 + 3 * WEEK
            counts = await store.counts()
            assert (counts.pages, counts.duplicates, counts.fetches, counts.bytes) == (2, 1, 4, 100)

        self._play(story)

    def test_failed_visits_are_told_to_the_next_until_one_succeeds(self) -> None:
        async def story(store: _Store) -> None:
            await store.claim(links(1), T0)
            await _round(store, T0, Again(WEEK))
            await _round(store, T0 + WEEK, Again(1000), status=404)
            assert await states(store) == {"dead": 1}
            await _round(store, T0 + WEEK + 1000, Again(1000), status=503)
            [url] = (await one_lease(store, T0 + WEEK + 2000)).urls
            assert url.before is not None
            assert url.generation == 3
            assert url.before.misses == ("http_404", "http_503")
            assert url.before.at == T0
            assert url.before.interval_ms == WEEK

        self._play(story)

    def test_a_redirect_is_visited_again_and_knows_where_it_led(self) -> None:
        async def story(store: _Store) -> None:
            await store.claim(links(1), T0)
            lease = await one_lease(store)
            end = WasRedirect(lease.token, lease.host.hid, lease.urls[0], seen(301), "http://b.test/", Again(WEEK))
            await store.settle([end, released(lease)], [], T0)
            [url] = (await one_lease(store, T0 + WEEK)).urls
            assert url.before is not None
            assert url.before.target == "http://b.test/"
            assert await states(store) == {"leased": 1}

        self._play(story)

    def test_rounds_are_told_in_order_and_the_numbers_of_generations_add_up(self) -> None:
        async def story(store: _Store) -> None:
            await store.claim([*links(3), link("refused", refusal=None)], T0)
            await _round(store, T0, Again(WEEK))
            await _round(store, T0 + WEEK, Again(WEEK, True))
            await _round(store, T0 + 2 * WEEK, Again(None, False), status=410)
            rounds, none = await store.rounds([address("0").key, address("unknown").key])
            assert none == []
            assert [(each.generation, each.state, each.changed) for each in rounds] == [
                (0, UrlState.DONE, None),
                (1, UrlState.DONE, True),
            ]
            assert rounds[0].pointer == Pointer("0001.warc.gz", 0, 100)
            generations = await store.generations()
            assert [(each.begun, each.waiting, _ended(each)) for each in generations] == [
                (4, 0, {"done": 4}),
                (4, 0, {"done": 4}),
                (4, 0, {"dead": 4}),
            ]
            assert [(each.changed, each.unchanged) for each in generations] == [(0, 0), (4, 0), (0, 4)]

        self._play(story)

    def test_generations_add_up_at_every_moment(self) -> None:
        async def story(store: _Store) -> None:
            assert await store.generations() == []
            await store.claim(links(5), T0)
            for number in range(3):
                now = T0 + number * WEEK
                lease = await one_lease(store, now, urls_per_host=5 - number)
                assert _adds_up(await store.generations())
                await store.settle([_done(lease, url, Again(WEEK)) for url in lease.urls], [], now)
                assert _adds_up(await store.generations())
                await store.settle([released(lease, now)], [], now)
                assert sum(each.waiting for each in await store.generations()) == number
            dead = await store.lease(wish(), T0 + 9 * WEEK)
            await store.settle(
                [
                    *(
                        Died(dead[0].token, dead[0].host.hid, url, seen(500, error="http_500"))
                        for url in dead[0].urls
                    ),
                    released(dead[0]),
                ],
                [],
                T0 + 9 * WEEK,
            )
            before = await store.generations()
            revived = await store.revive([url.id for url in dead[0].urls], T0 + 9 * WEEK)
            after = await store.generations()
            assert revived == 5
            assert _adds_up(before)
            assert _adds_up(after)
            assert sum(each.waiting for each in after) == sum(each.waiting for each in before) + 5

        self._play(story)

    def test_a_blocked_host_keeps_what_it_gave_and_is_thought_of_again_later(self) -> None:
        async def story(store: _Store) -> None:
            await store.claim(links(2), T0)
            await _round(store, T0, Again(WEEK))
            await store.hold([(host_id(address("0").key), "a.test")], Hold.BLOCKED)
            assert await store.lease(wish(), T0 + WEEK) == []
            assert await states(store) == {"done": 2}
            assert await store.next_visit() == T0 + WEEK + LATER_MS
            await store.hold([(host_id(address("0").key), "a.test")], None)
            assert len((await one_lease(store, T0 + WEEK + LATER_MS)).urls) == 2

        self._play(story)

    def test_a_crawl_that_waits_for_visits_knows_when_the_first_is_due(self) -> None:
        async def story(store: _Store) -> None:
            await store.claim(links(1), T0)
            await _round(store, T0, Again(WEEK))
            assert await store.due_in(T0) == WEEK
            assert await store.next_visit() == T0 + WEEK

        self._play(story, FrontierSettings(revisits=True, waits_for_visits=True))

    def test_what_was_done_without_a_plan_is_planned_in_bounded_steps(self) -> None:
        async def story(store: _Store) -> None:
            await store.claim(links(5), T0)
            lease = await one_lease(store)
            await spend(store, lease)
            by = Plan(first=WEEK, shortest=1000, longest=9 * WEEK)
            assert await store.plan_visits(0, 3, by) == 3
            assert await store.plan_visits(3, 3, by) == 5
            assert await store.plan_visits(5, 3, by) is None
            assert await store.next_visit() == T0 + WEEK
            assert await store.plan_visits(0, 9, Plan(5, 1, 50)) == 5
            assert await store.next_visit() == T0 + 50

        self._play(story)

    def test_a_sitemap_brings_a_visit_forward_when_the_page_changed_since(self) -> None:
        async def story(store: _Store) -> None:
            await store.claim(links(2), T0)
            await _round(store, T0, Again(WEEK))
            old, new = (link("0", modified=T0 - 1), link("1", modified=T0 + 1))
            assert await store.due_in(T0 + 60_000) is None
            await store.claim([old, new], T0 + 60_000)
            assert await store.due_in(T0 + 60_000) == 0, "who is about to end must see it"
            [url] = (await one_lease(store, T0 + 60_000)).urls
            assert url.url.endswith("/1")

        self._play(story)

    def test_many_that_are_due_come_back_some_at_a_time_and_all_of_them(self) -> None:
        async def story(store: _Store) -> None:
            await store.claim(links(1200), T0)
            [lease] = await store.lease(wish(urls_per_host=1200, visit_ms=10**9), T0)
            await store.settle([*(_done(lease, url) for url in lease.urls), released(lease)], [], T0)
            leased = 0
            for call in range(6):
                for each in await store.lease(wish(urls_per_host=600, visit_ms=10**9), T0 + WEEK + call):
                    leased += len(each.urls)
                    await store.settle(
                        [*(_done(each, url) for url in each.urls), released(each, T0 + WEEK)], [], T0 + WEEK
                    )
            assert leased == 1200
            first, second = await store.generations()
            assert (first.waiting, second.begun, second.waiting) == (0, 1200, 0)

        self._play(story)

    def _play(self, story: object, settings: FrontierSettings | None = None) -> None:
        self.play(story, settings or _ON)  # type: ignore[arg-type]


async def wander(store: _Store, seed: int, steps: int) -> None:
    """Visits, losses, refusals, revivals and plans by chance; after each the generations add up.

    Whoever calls audits the store in the end.
    """
    chance = random.Random(seed)
    now = T0
    held: list[Lease] = []
    for _ in range(steps):
        now += chance.choice((0, DELAY, WEEK // 3))
        if held and chance.random() < 0.6:
            lease = held.pop(chance.randrange(len(held)))
            await store.settle([*_some_ends(lease, chance, now), released(lease, now)], [], now)
        elif chance.random() < 0.5:
            held += await store.lease(wish(hosts=chance.randint(1, 3), urls_per_host=3), now)
        else:
            await _stir(store, chance, now)
        generations = await store.generations()
        assert _adds_up(generations), (seed, generations)
        assert all(min(each.waiting, *each.ended.values()) >= 0 for each in generations), (seed, generations)
        assert sum(each.waiting for each in generations) == _waiting(await states(store)), (seed, generations)


def _waiting(found: dict[str, int]) -> int:
    return found.get("queued", 0) + found.get("leased", 0)


async def _stir(store: _Store, chance: random.Random, now: int) -> None:
    match chance.randrange(5):
        case 0 | 1:
            host = f"{chance.choice('abc')}.test"
            modified = chance.choice((None, now))
            await store.claim([link(str(chance.randrange(12)), host, modified=modified) for _ in range(4)], now)
        case 2:
            await store.reclaim(now)
        case 3:
            await store.revive([letter.id for letter in await store.dead(limit=2)], now)
        case _:
            await store.plan_visits(0, 50, Plan(WEEK, 1000, 2 * WEEK))


def _some_ends(lease: Lease, chance: random.Random, now: int) -> list[Settlement]:
    return [_some_end(lease, url, chance, now) for url in lease.urls if chance.random() < 0.9]


def _some_end(lease: Lease, url: QueuedUrl, chance: random.Random, now: int) -> Settlement:
    token, hid = lease.token, lease.host.hid
    again = Again(chance.choice((None, 1000, WEEK)), chance.choice((None, True, False)))
    match chance.randrange(7):
        case 0 if url.before is not None:
            return Unchanged(token, hid, url, seen(304), again)
        case 1:
            return WasRedirect(token, hid, url, seen(301), "http://z.test/", again)
        case 2:
            return Died(token, hid, url, seen(404, error="http_404"), again)
        case 3:
            return RetryAt(token, hid, url, seen(503, error="http_503"), now + DELAY)
        case 4:
            return Refused(token, hid, url, Reason.ROBOTS)
        case _:
            return Finished(token, hid, url, seen(body=b"body %d" % chance.randrange(5)), again)
