"""The ports of one simulated worker: every effect is an event, and may be where something goes wrong.

A dead worker has no effects any more: whatever it still tries, waits for ever. A paused one waits at its next effect
until it may go on.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

from crawlspace.clock import Clock
from crawlspace.errors import ArchiveSuspect, DiskFull, StoreDamaged, StoreError
from crawlspace.exchange import Capture, FetchError, FetchRequest, FetchResult, Headers
from crawlspace.policy.commands import Asked
from crawlspace.testing.sim.breakable import Breakable
from crawlspace.testing.sim.web import Answer
from crawlspace.types import Crew, Pointer

if TYPE_CHECKING:
    from crawlspace.testing.sim.worker import Worker

QUIET = frozenset({"notes", "counts", "due_in", "robots", "find", "hosts", "segments", "refused"})
"""Calls that only read: no events."""
SELDOM_MET = 4
"""Workers meet each other as much less often as they would in earnest."""
WRITING = frozenset(
    {"claim", "lease", "renew", "settle", "reclaim", "keep_robots", "note", "revise", "rule", "hold", "alarm"}
)


class SimFrontier:
    """The store as this worker has it. Knows no list of methods: each is passed on, watched and disturbed."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_"):
            raise AttributeError(name)

        async def call(*args: Any, **named: Any) -> Any:
            return await self._call(name, args, named)

        return call

    async def asked(self, _limit: int = 100) -> list[Asked]:
        """Nobody commands; the store is not troubled for that once a second."""
        return []

    async def news(self, _edition: int) -> None:
        """And so there is no news."""

    async def meet(self, worker: int, most: int, ttl_ms: int) -> Crew:
        """No event: it is heard of so seldom, and for so much longer, that hours of it are not most of the work."""
        await self._worker.gate()
        return await self._worker.world.store.meet(worker, most, ttl_ms * SELDOM_MET)

    async def _call(self, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        worker, world = self._worker, self._worker.world
        method = self._void_if_alone if name == "void_leases" else getattr(world.store, name)
        if name in QUIET:
            await worker.gate()
            return await method(*args, **named)
        asked = world.clock.monotonic()
        await worker.step(f"{name}.sent {_told(name, args)}")
        if name in WRITING:
            world.troubles.before_write(name)
        answer = await world.troubles.through(lambda: method(*args, **named), name)
        world.checker.store_answered(worker, name, args, answer, asked)
        await world.repeat(name, args, answer)
        world.troubles.after_write(name)
        await worker.step(f"{name}.got {_short(answer)}")
        return answer

    async def _void_if_alone(self) -> int:
        """Unless somebody has come meanwhile: in earnest the lock of the directory keeps others out."""
        world = self._worker.world
        lost: int = await world.store.void_leases() if world.is_alone(self._worker) else 0
        return lost


class SimArchive:
    """An archive in memory that has only what was flushed; `shared` outlives the worker."""

    def __init__(self, worker: Worker, shared: dict[Pointer, Capture]) -> None:
        self._worker = worker
        self._shared = shared
        self._pending: dict[Pointer, Capture] = {}
        self._offset = 0
        self._file = 0

    async def append(self, capture: Capture) -> Pointer:
        await self._worker.gate()
        self._fail_when_full()
        pointer = Pointer(f"{self._worker.name}-{self._file}", self._offset, 1)
        self._offset += 1
        self._pending[pointer] = capture
        return pointer

    async def flush(self) -> None:
        worker = self._worker
        await worker.step(f"flush.sent {len(self._pending)}")
        self._fail_when_full()
        if worker.world.troubles.take_sync_failure():
            self._pending.clear()
            self._file += 1
            raise ArchiveSuspect("the simulated file could not be made durable")
        self._shared.update(self._pending)
        self._pending.clear()
        await worker.step("flush.got")

    def open(self, pointer: Pointer) -> Capture:
        try:
            return self._shared[pointer]
        except KeyError:
            raise StoreDamaged(f"{pointer} is not in the archive") from None

    def scan(self) -> Iterator[tuple[Pointer, Capture]]:
        return iter(sorted(self._shared.items()))

    async def close(self) -> None:
        await self.flush()

    def _fail_when_full(self) -> None:
        if self._worker.world.troubles.archive_is_full():
            self._pending.clear()
            raise DiskFull("the simulated archive is full")


class SimFetcher:
    """The web as this worker reaches it."""

    def __init__(self, worker: Worker, timeout: float) -> None:
        self._worker = worker
        self._timeout = timeout

    async def fetch(self, request: FetchRequest) -> FetchResult:
        worker, world = self._worker, self._worker.world
        if worker.dead:
            raise asyncio.CancelledError
        # No pause between decision and sending: a process can be stopped there, and nobody can help it.
        started, wall = world.clock.monotonic(), world.clock.now()
        world.checker.fetch_begins(worker, request.url)
        cookie = any(name == "Cookie" for name, _ in request.headers)
        answer = world.web.answer(request.url, started, cookie=cookie)
        # The server goes on whatever becomes of the worker, unless its connection is closed.
        open_ = asyncio.get_running_loop().call_later(
            min(answer.latency, self._timeout), world.checker.fetch_ends, worker, request.url, answer
        )
        try:
            await worker.step(f"fetch.sent {request.url}")
            await asyncio.sleep(max(0.0, open_.when() - world.clock.monotonic()))
            elapsed = world.clock.monotonic() - started
            await worker.step(f"fetch.got {answer.status or answer.error}")
        except asyncio.CancelledError:
            if open_.when() > world.clock.monotonic():
                open_.cancel()
                world.checker.fetch_ends(worker, request.url, None)
            raise
        return result_of(request, answer, wall, elapsed, self._timeout)

    async def close(self) -> None:
        await self._worker.gate()


def result_of(request: FetchRequest, answer: Answer, wall: int, seconds: float, timeout: float) -> FetchResult:
    """The answer as a fetcher gives it."""
    elapsed = round(seconds * 1000)
    if answer.latency > timeout:
        return FetchResult(request.url, wall, elapsed, FetchError.TOTAL_TIMEOUT, "the server took too long")
    if answer.status == 0:
        return FetchResult(request.url, wall, elapsed, answer.error, "simulated")
    fields = tuple((name.encode(), value.encode()) for name, value in answer.headers)
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in fields)
    head = f"HTTP/1.1 {answer.status} Simulated\r\n".encode() + lines + b"\r\n"
    return FetchResult(
        url=request.url,
        started_at=wall,
        elapsed_ms=elapsed,
        error=answer.error,
        detail="simulated" if answer.error else "",
        status=answer.status,
        headers=Headers(fields),
        request_head=f"{request.method} {request.url} HTTP/1.1\r\n\r\n".encode(),
        response_head=head,
        payload=answer.body,
        body=answer.body,
        truncated=answer.truncated,
        address="192.0.2.1:80",
    )


class Troubles:
    """What is wrong with store and archive just now."""

    def __init__(self, clock: Clock, chance: random.Random) -> None:
        self._clock = clock
        self._chance = chance
        self.archive_full_until = 0.0
        self.store_full_until = 0.0
        self.sync_failures = 0
        self.lose_answer = False
        self.break_off = False
        self.connection: Breakable
        """The store's own, whose work is broken off in the middle."""

    def heal(self) -> None:
        """All is well from now on."""
        self.archive_full_until = self.store_full_until = 0.0
        self.sync_failures = 0
        self.lose_answer = self.break_off = False

    def archive_is_full(self) -> bool:
        return self._clock.monotonic() < self.archive_full_until

    def take_sync_failure(self) -> bool:
        """Whether this flush is one of those that fail."""
        if self.sync_failures <= 0:
            return False
        self.sync_failures -= 1
        return True

    def before_write(self, name: str) -> None:
        """Raise what a full disk raises."""
        if self._clock.monotonic() < self.store_full_until:
            raise DiskFull(f"the simulated disk is full at {name}")

    async def through(self, work: Callable[[], Awaitable[Any]], name: str) -> Any:
        """Do the work, or a part of it that is then undone."""
        if not (self.break_off and name in WRITING):
            return await work()
        code = self._chance.choice((sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL))
        self.connection.break_off(self._chance.randrange(0, 30), code)
        try:
            return await work()
        finally:
            self.break_off = not self.connection.struck
            self.connection.mend()

    def after_write(self, name: str) -> None:
        """Keep the answer of a settle from its caller."""
        if self.lose_answer and name == "settle":
            self.lose_answer = False
            raise StoreError("the simulated answer was lost")


def _told(name: str, args: tuple[Any, ...]) -> str:
    if name == "settle":
        return f"{len(args[0])} settlements, {len(args[1])} claims"
    if name == "renew":
        return f"{list(args[0])}"
    return ""


def _short(answer: Any) -> str:
    if isinstance(answer, list) and answer and hasattr(answer[0], "token"):
        return ", ".join(f"{lease.token}:{lease.host.name}x{len(lease.urls)}" for lease in answer)
    if isinstance(answer, list):
        return f"{[int(each) if isinstance(each, int) else type(each).__name__ for each in answer[:20]]}"
    return str(answer)
