"""The contract of URLs whose processing failed and then succeeded: done without a lease, their links claimed.

class TestMyFrontier(ReprocessContract):
    async def open(self, settings):
        return await MyFrontier.open(...)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.testing.frontier_contract_words import (
    T0,
    Store,
    finished,
    link,
    links,
    one_lease,
    released,
    seen,
    states,
)
from crawlspace.types import Claim, Evidence, Finished, ProcessingFailed, QueuedUrl, host_id


class ReprocessingStore(Store, Protocol):
    """A store that takes in what was read again."""

    async def finish_stored(
        self, settlements: Sequence[Finished], claims: Sequence[Claim], now: int | None = None
    ) -> list[bool]:
        """See `app.store.Store`."""
        ...


ReprocessStory = Callable[[ReprocessingStore], Awaitable[None]]


async def failed(store: Store, n: int = 1, body: bytes | None = None) -> list[Finished]:
    """URLs whose processing fails; the settlements that will let each be done."""
    await store.claim(links(n), T0)
    lease = await one_lease(store, urls_per_host=n)
    good = [finished(lease, url, seen(body=body)) for url in lease.urls]
    bad = [
        ProcessingFailed(each.token, each.hid, each.url, replace(each.evidence, error="processing", detail="boom"))
        for each in good
    ]
    await store.settle([*bad, released(lease)], [], T0)
    return [replace(each, token=0) for each in good]


class ReprocessContract:
    """A backend's tests inherit it and say how a fresh store is opened."""

    async def open(self, settings: FrontierSettings) -> ReprocessingStore:
        """A fresh, empty store."""
        raise NotImplementedError

    def play(self, story: ReprocessStory) -> None:
        """Run one test's coroutine on a fresh store."""

        async def run() -> None:
            store = await self.open(FrontierSettings())
            try:
                await story(store)
            finally:
                await store.close()

        asyncio.run(run())

    def test_what_was_stored_is_done_and_its_links_are_claimed(self) -> None:
        async def story(store: ReprocessingStore) -> None:
            [good] = await failed(store)
            before = await store.counts()
            assert await states(store) == {"stored": 1}
            claims = [link("found", "b.test", parent=good.url.id, depth=1)]
            assert await store.finish_stored([good], claims, T0 + 5) == [True]
            assert await states(store) == {"done": 1, "queued": 1}
            after = await store.counts()
            assert (after.fetches, after.bytes) == (before.fetches, before.bytes)
            assert after.pages == before.pages + 1
            hosts = {host.name: host for host in await store.hosts()}
            assert hosts["a.test"].done == 1
            [told] = await store.find([good.url.key])
            assert told is not None
            assert (told.reason, told.detail, told.id) == (None, "", good.url.id)
            assert told.evidence is not None
            assert told.evidence.pointer == good.evidence.pointer

        self.play(story)

    def test_it_changes_nothing_a_second_time(self) -> None:
        async def story(store: ReprocessingStore) -> None:
            good = await failed(store, 2)
            assert await store.finish_stored([good[0], good[0]], [], T0) == [True, False]
            before = await store.counts()
            assert await store.finish_stored(good, [], T0) == [False, True]
            assert await store.finish_stored(good, [], T0) == [False, False]
            assert (await store.counts()).pages == before.pages + 1

        self.play(story)

    def test_only_what_is_stored_is_finished_so(self) -> None:
        async def story(store: ReprocessingStore) -> None:
            await store.claim(links(2), T0)
            lease = await one_lease(store, urls_per_host=2)
            await store.settle([finished(lease, lease.urls[0])], [], T0)
            other = [Finished(0, host_id(url.key), url, Evidence(at=T0)) for url in lease.urls]
            strange = Finished(
                0, lease.host.hid, QueuedUrl(999, lease.urls[0].key, "http://a.test/x", 5, 0), Evidence(T0)
            )
            assert await store.finish_stored([*other, strange], [], T0) == [False] * 3
            assert await states(store) == {"done": 1, "leased": 1}

        self.play(story)

    def test_copies_are_counted_as_those_of_fetched_pages(self) -> None:
        async def story(store: ReprocessingStore) -> None:
            good = await failed(store, 2, b"same")
            await store.finish_stored(good, [], T0)
            assert (await store.counts()).duplicates == 1

        self.play(story)
