"""An event loop whose time is a number: when nothing can run, it is set to the next timer.

Hours pass in milliseconds, and the order of events depends on nothing outside. What a real loop would hand to a
thread runs at once. When nobody can ever wake again, the loop raises `Stuck` instead of waiting for ever.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Any

ROUNDS = 3_000_000
"""Turns of the loop that one simulation may take; a crawl that polls without end takes more."""


class Stuck(Exception):
    """Nothing can run and nothing is due, or the loop turns without end."""


class _Selector(selectors.SelectSelector):
    """Knows of no sockets but the loop's own; instead of waiting it moves the time."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0
        self.rounds = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.rounds += 1
        if timeout is None:
            raise Stuck("nothing can run, and nothing is due")
        if self.rounds > ROUNDS:
            raise Stuck(f"{ROUNDS} turns of the loop, and no end")
        self.elapsed += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time starts at 0."""

    def __init__(self) -> None:
        self._time = _Selector()
        super().__init__(self._time)
        # Timers are floats that were added up: those of one moment shall ring together.
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._time.elapsed

    # Typeshed speaks of variadic types, which this one need not.
    def run_in_executor(  # type: ignore[override]
        self,
        executor: Any,  # noqa: ARG002 -- the signature is asyncio's
        func: Callable[..., Any],
        *args: Any,
    ) -> asyncio.Future[Any]:
        """At once: a thread would make the order a matter of chance."""
        done: asyncio.Future[Any] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


class WorldClock:
    """`crawlspace.clock.Clock` by the loop's time; the wall clock can be set, the monotonic one cannot."""

    def __init__(self, loop: VirtualLoop, start: int) -> None:
        self._loop = loop
        self._start = start
        self.offset_ms = 0
        """How far the wall clock was moved in all."""

    def now(self) -> int:
        return self._start + self.offset_ms + int(self._loop.time() * 1000)

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
