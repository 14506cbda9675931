"""The words in which the frontier's contract is told: links, wishes, settlements, and a store to try them on.

Every test is a plain function that runs one coroutine on a fresh store. Time is an argument: `T0` and what is
added to it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.ports import Frontier, Ledger
from crawlspace.states import UrlState
from crawlspace.types import (
    FINGERPRINT_BYTES,
    HOST_BYTES,
    Address,
    Answer,
    Claim,
    Died,
    Evidence,
    Finished,
    Lease,
    Pace,
    Pointer,
    ProcessingFailed,
    QueuedUrl,
    Released,
    RetryAt,
    WasRedirect,
    Wish,
)

T0 = 1_700_000_000_000
TTL = 120_000
DELAY = 1_000


class Store(Frontier, Ledger, Protocol):
    """What the contract is about."""

    async def close(self) -> None:
        """Let go of the store; its contents stay where they are kept."""
        ...


Story = Callable[[Store], Awaitable[None]]


class FrontierSuite:
    """A part of the contract. A backend's tests inherit it and say how a fresh store is opened."""

    async def open(self, settings: FrontierSettings) -> Store:
        """A fresh, empty store."""
        raise NotImplementedError

    def play(self, story: Story, settings: FrontierSettings | None = None) -> None:
        """Run one test's coroutine on a fresh store."""

        async def run() -> None:
            store = await self.open(settings or FrontierSettings())
            try:
                await story(store)
            finally:
                await store.close()

        asyncio.run(run())


def address(name: str, host: str = "a.test") -> Address:
    """The address of a page; host and name alone decide who it is."""
    url = f"http://{host}/{name}"
    host_part = hashlib.blake2b(host.encode(), digest_size=HOST_BYTES).digest()
    own_part = hashlib.blake2b(url.encode(), digest_size=FINGERPRINT_BYTES - HOST_BYTES).digest()
    return Address(url, url, host, host_part + own_part)


def link(name: str, host: str = "a.test", **fields: object) -> Claim:
    """A claim to that page."""
    return Claim(address(name, host), **fields)  # type: ignore[arg-type]


def links(n: int, host: str = "a.test", **fields: object) -> list[Claim]:
    """Claims to `n` pages of one host, named 0, 1, 2, ..."""
    return [link(str(number), host, **fields) for number in range(n)]


def wish(hosts: int = 10, urls_per_host: int = 10, worker: int = 1, visit_ms: int = 60_000) -> Wish:
    """What a worker asks for."""
    return Wish(worker, hosts, urls_per_host, TTL, visit_ms)


def names(urls: Sequence[QueuedUrl]) -> list[str]:
    """The pages' names, for comparison."""
    return [url.url.rsplit("/", 1)[1] for url in urls]


def seen(status: int | None = 200, body: bytes | None = None, error: str | None = None, size: int = 100) -> Evidence:
    """What is kept of a request; each body without text of its own is one of a kind."""
    digest = None if body is None else hashlib.sha256(body).digest()
    pointer = None if status is None else Pointer("0001.warc.gz", 0, size)
    return Evidence(at=T0, status=status, error=error, digest=digest, size=size, pointer=pointer, mime="text/html")


def finished(lease: Lease, url: QueuedUrl, evidence: Evidence | None = None) -> Finished:
    return Finished(lease.token, lease.host.hid, url, evidence or seen())


def failed_processing(lease: Lease, url: QueuedUrl) -> ProcessingFailed:
    return ProcessingFailed(lease.token, lease.host.hid, url, seen(error="parser"))


def redirected(lease: Lease, url: QueuedUrl, target: str) -> WasRedirect:
    return WasRedirect(lease.token, lease.host.hid, url, seen(301), target)


def retry(lease: Lease, url: QueuedUrl, due: int) -> RetryAt:
    return RetryAt(lease.token, lease.host.hid, url, seen(503, error="http_503"), due)


def died(lease: Lease, url: QueuedUrl, error: str = "http_404") -> Died:
    return Died(lease.token, lease.host.hid, url, seen(404, error=error))


def released(lease: Lease, next_at: int = T0, condemned: str | None = None, **clock: int) -> Released:
    return Released(lease.token, lease.host.hid, Pace(next_at=next_at, **clock), condemned)


async def one_lease(store: Frontier, now: int = T0, urls_per_host: int = 10) -> Lease:
    """The only lease that can be had now."""
    [lease] = await store.lease(wish(urls_per_host=urls_per_host), now)
    return lease


async def spend(store: Frontier, lease: Lease, now: int = T0) -> None:
    """Finish all of a lease and give the host back."""
    await store.settle([*(finished(lease, url) for url in lease.urls), released(lease, now)], [], now)


async def end_all(store: Frontier, now: int = T0) -> None:
    """Finish everything that can be leased now."""
    while leases := await store.lease(wish(), now):
        for lease in leases:
            await spend(store, lease, now)


async def states(store: Frontier) -> dict[str, int]:
    """The states that are not empty; what is known is their sum."""
    counts = await store.counts()
    assert set(counts.states) == set(UrlState)
    assert all(n >= 0 for n in counts.states.values()), counts
    return {state.name.lower(): n for state, n in counts.states.items() if n}


async def only_state(store: Ledger, name: str, host: str = "a.test") -> UrlState:
    """The state of one page."""
    [story] = await store.find([address(name, host).key])
    assert story is not None
    return story.state


def all_answers(answer: Answer, answers: Sequence[Answer]) -> bool:
    """Whether all were answered so, and there were some."""
    return bool(answers) and set(answers) == {answer}
