"""The contract of URLs that somebody else has asked for: settled without a lease, and without a request counted.

class TestMyFrontier(AdoptContract):
    async def open(self, settings):
        return await MyFrontier.open(...)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.testing.frontier_contract_words import (
    T0,
    Store,
    address,
    end_all,
    finished,
    link,
    links,
    names,
    one_lease,
    released,
    retry,
    seen,
    states,
    wish,
)
from crawlspace.types import (
    Adopted,
    Claim,
    Died,
    Finished,
    QueuedUrl,
    Reason,
    Refused,
    WasRedirect,
    host_id,
)


class AdoptingStore(Store, Protocol):
    """A store that takes in what others have asked for."""

    async def adopt(
        self, settlements: Sequence[Adopted], claims: Sequence[Claim], now: int | None = None
    ) -> list[bool]:
        """See `app.store.Store`."""
        ...


AdoptStory = Callable[[AdoptingStore], Awaitable[None]]


async def known(store: Store, name: str, host: str = "a.test") -> QueuedUrl:
    """The page as settlements name it."""
    where = address(name, host)
    [story] = await store.find([where.key])
    assert story is not None
    return QueuedUrl(story.id, where.key, story.url, story.front_class or 0, story.depth)


def done(url: QueuedUrl, body: bytes | None = None) -> Finished:
    return Finished(0, host_id(url.key), url, seen(body=body))


class AdoptContract:
    """A backend's tests inherit it and say how a fresh store is opened."""

    async def open(self, settings: FrontierSettings) -> AdoptingStore:
        """A fresh, empty store."""
        raise NotImplementedError

    def play(self, story: AdoptStory, settings: FrontierSettings | None = None) -> None:
        """Run one test's coroutine on a fresh store."""

        async def run() -> None:
            store = await self.open(settings or FrontierSettings())
            try:
                await story(store)
            finally:
                await store.close()

        asyncio.run(run())

    def test_what_waits_is_settled_in_each_way_and_nothing_is_fetched_for_it(self) -> None:
        async def story(store: AdoptingStore) -> None:
            await store.claim(links(5), T0)
            urls = [await known(store, str(number)) for number in range(5)]
            hid = host_id(urls[0].key)
            settlements: list[Adopted] = [
                done(urls[0], b"x"),
                WasRedirect(0, hid, urls[1], seen(301), "http://a.test/new"),
                Died(0, hid, urls[2], seen(404, error="http_404")),
                Refused(0, hid, urls[3], Reason.IMPORTED, "visited before"),
            ]
            assert await store.adopt(settlements, [link("new")], T0 + 1) == [True] * 4
            assert await states(store) == {"done": 1, "redirected": 1, "dead": 1, "skipped": 1, "queued": 2}
            counts = await store.counts()
            assert (counts.known, counts.fetches, counts.bytes, counts.pages) == (6, 0, 0, 1)
            [host] = await store.hosts()
            assert (host.queued, host.fetched, host.done, host.dead) == (2, 0, 1, 1)
            stories = await store.find([url.key for url in urls])
            assert [each.reason for each in stories if each] == [None, None, "http_404", "imported", None]
            assert stories[0] is not None
            assert stories[0].evidence is not None
            assert stories[0].evidence.pointer is not None
            assert {*names((await one_lease(store)).urls)} == {"4", "new"}

        self.play(story)

    def test_it_changes_nothing_a_second_time(self) -> None:
        async def story(store: AdoptingStore) -> None:
            await store.claim(links(2), T0)
            urls = [await known(store, str(number)) for number in range(2)]
            assert await store.adopt([done(urls[0]), done(urls[0]), done(urls[1])], [], T0) == [True, False, True]
            before = await store.counts()
            assert await store.adopt([done(url) for url in urls], [], T0 + 9) == [False, False]
            assert await store.counts() == before

        self.play(story)

    def test_what_a_worker_holds_is_left_to_it(self) -> None:
        async def story(store: AdoptingStore) -> None:
            await store.claim(links(2), T0)
            lease = await one_lease(store, urls_per_host=1)
            [held] = lease.urls
            other = "1" if names([held]) == ["0"] else "0"
            assert await store.adopt([done(held), done(await known(store, other))], [], T0) == [False, True]
            await store.settle([finished(lease, held), released(lease)], [], T0)
            assert await states(store) == {"done": 2}
            assert (await store.counts()).fetches == 1

        self.play(story)

    def test_what_waits_for_a_time_of_its_own_is_settled_too(self) -> None:
        async def story(store: AdoptingStore) -> None:
            await store.claim(links(1), T0)
            lease = await one_lease(store)
            await store.settle([retry(lease, lease.urls[0], T0 + 10**6), released(lease)], [], T0)
            assert await store.adopt([done(lease.urls[0])], [], T0) == [True]
            assert await states(store) == {"done": 1}
            assert await store.lease(wish(), T0 + 10**7) == []

        self.play(story)

    def test_what_has_ended_stays_as_it_is(self) -> None:
        async def story(store: AdoptingStore) -> None:
            await store.claim([link("a"), link("out", refusal=Reason.OUT_OF_SCOPE)], T0)
            await end_all(store)
            urls = [await known(store, "a"), await known(store, "out")]
            assert await store.adopt([done(url) for url in urls], [], T0) == [False, False]
            assert await states(store) == {"done": 1, "skipped": 1}

        self.play(story)

    def test_copies_are_counted_as_those_of_fetched_pages(self) -> None:
        async def story(store: AdoptingStore) -> None:
            await store.claim(links(3), T0)
            urls = [await known(store, str(number)) for number in range(3)]
            await store.adopt([done(url, b"same") for url in urls], [], T0)
            stories = await store.find([url.key for url in urls])
            assert [each.copy_of for each in stories if each] == [None, urls[0].url, urls[0].url]
            assert (await store.counts()).duplicates == 2

        self.play(story)

    def test_links_are_claimed_in_the_same_transaction(self) -> None:
        async def story(store: AdoptingStore) -> None:
            await store.claim([link("a")], T0)
            url = await known(store, "a")
            claims = [link("x", "b.test", parent=url.id, depth=1), link("out", refusal=Reason.OUT_OF_SCOPE)]
            await store.adopt([done(url)], claims, T0)
            [lease] = await store.lease(wish(), T0)
            assert (lease.host.name, lease.urls[0].parent, lease.urls[0].depth) == ("b.test", url.id, 1)
            assert await states(store) == {"done": 1, "leased": 1, "skipped": 1}

        self.play(story)

    def test_a_host_has_the_class_of_what_is_left_to_it(self) -> None:
        async def story(store: AdoptingStore) -> None:
            await store.claim([link("first", front_class=0), link("later", front_class=7)], T0)
            await store.claim([link("between", "b.test", front_class=3)], T0)
            await store.adopt([done(await known(store, "first"))], [], T0)
            leased = await store.lease(wish(hosts=1), T0)
            assert [lease.host.name for lease in leased] == ["b.test"]

        self.play(story)
