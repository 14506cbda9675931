"""The clock of a host, or of a pace group, inside this process: who may send the next request, and when.

A lease makes a worker the only one to visit a host; the turn makes its requests leave one after another, no closer
than the delay from start to start. Times are monotonic, so that a step of the wall clock neither hurries nor
stalls a host. A turn outlives the visit for a while, so that a robots.txt fetched for another host's sake counts.

Who has taken a turn may still have to wait for a slot of the whole crawl, and others that waited for one too may
start at the same moment. So the last word is `lack`, asked when nothing else is left to wait for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from crawlspace.clock import Clock

KEPT = 10_000


class Turn:
    """The right to send to one host. A start is reserved before it is waited for, so no two can share one."""

    __slots__ = ("_clock", "_earliest", "_next_start", "_slots")

    def __init__(self, clock: Clock, concurrency: int = 1) -> None:
        self._clock = clock
        self._slots = asyncio.Semaphore(concurrency)
        self._next_start = 0.0
        self._earliest = 0.0

    async def take(self, delay: float) -> None:
        """Wait for a free slot and for the time; `delay` seconds must pass before the next start."""
        await self._slots.acquire()
        try:
            start = max(self._clock.monotonic(), self._next_start)
            self._next_start = start + delay
            # Event loops round timers, some of them down: a start that came early waits again.
            while (wait := start - self._clock.monotonic()) > 0:
                await self._clock.sleep(wait)
        except BaseException:
            self._slots.release()
            raise

    def give_back(self) -> None:
        """The request has ended."""
        self._slots.release()

    def lack(self) -> float:
        """Seconds before a request may really be sent, whatever start was reserved for it."""
        return max(0.0, self._earliest - self._clock.monotonic())

    def sent(self, delay: float) -> None:
        """A request is sent now: the next one `delay` seconds later."""
        self.hold_until(self._clock.monotonic() + delay)

    def hold_until(self, start: float) -> None:
        """No start before this monotonic time."""
        self._next_start = max(self._next_start, start)
        self._earliest = max(self._earliest, start)

    def wait(self) -> float:
        """Seconds until the next start is allowed."""
        return max(0.0, self._next_start - self._clock.monotonic())

    def idle(self) -> bool:
        """True when forgetting this turn would change nothing."""
        return not self._slots.locked() and self.wait() == 0

    async def rest(self, seconds: float) -> None:
        """Let this much of its time pass."""
        await self._clock.sleep(seconds)


class Turns:
    """The turns of the hosts this process has to do with, bounded by forgetting idle ones."""

    def __init__(self, clock: Clock, concurrency: Callable[[str], int] = lambda host: 1) -> None:  # noqa: ARG005
        """`concurrency` says how many requests may be open to a host at once."""
        self._clock = clock
        self._concurrency = concurrency
        self._turns: dict[str, Turn] = {}

    def of(self, host: str) -> Turn:
        """The turn of this host."""
        turn = self._turns.get(host)
        if turn is None:
            if len(self._turns) >= KEPT:
                self._turns = {name: kept for name, kept in self._turns.items() if not kept.idle()}
            turn = self._turns[host] = Turn(self._clock, self._concurrency(host))
        return turn


async def take_slot(
    slots: asyncio.Semaphore, turns: Mapping[Turn, float], may: Callable[[], bool], longest: float
) -> bool:
    """Wait for a slot at a moment at which all of the turns, which are taken, allow a start.

    Each turn's delay counts from then. False, and no slot, once `may` says no, or when a turn asks for a wait longer
    than `longest` seconds.
    """
    while True:
        await slots.acquire()
        waits = {turn.lack(): turn for turn in turns}
        lack = max(waits)
        if lack == 0 and may():
            break
        slots.release()
        if lack > longest or not may():
            return False
        await waits[lack].rest(lack)
    for turn, delay in turns.items():
        turn.sent(delay)
    return True
