"""What goes wrong in one simulation, drawn from its seed: each seed has a few kinds of faults, and has them often.

A fault strikes at an event of the history, so that any effect boundary can be hit.
"""

from __future__ import annotations

import random
from enum import Enum, unique

from msgspec import Struct


@unique
class Fault(Enum):
    """The kinds. All stop when the simulation heals."""

    KILL = "kill"
    """The worker is gone at once; a new one starts a while later."""
    PAUSE = "pause"
    """The worker does nothing for a while, perhaps longer than its leases last."""
    ARCHIVE_FULL = "archive full"
    STORE_FULL = "store full"
    SYNC_FAILS = "sync fails"
    """The archive cannot say what is on the disk; what was not flushed is gone."""
    ANSWER_LOST = "answer lost"
    """The next settle is done, and its caller is told that it failed."""
    BROKEN_OFF = "broken off"
    """The next transaction that writes fails in the middle."""
    CLOCK = "clock"
    """The wall clock is set forth or back."""

    def __repr__(self) -> str:
        return str(self)


class Strike(Struct, frozen=True):
    """One fault: the event at which it happens, and its size in seconds."""

    event: int
    fault: Fault
    seconds: float

    def __str__(self) -> str:
        return f"{self.fault.value} at event {self.event} ({self.seconds:+.0f} s)"


class Plan(Struct, frozen=True):
    """All that is decided before the start. After `events` events nothing goes wrong any more."""

    workers: int
    events: int
    strikes: tuple[Strike, ...]

    def __str__(self) -> str:
        faults = "; ".join(map(str, self.strikes)) or "none"
        return f"{self.workers} worker(s), faults until event {self.events}: {faults}"


_SECONDS = {
    Fault.KILL: (0, 200),
    Fault.PAUSE: (5, 400),
    Fault.ARCHIVE_FULL: (1, 900),
    Fault.STORE_FULL: (1, 300),
    Fault.SYNC_FAILS: (0, 0),
    Fault.ANSWER_LOST: (0, 0),
    Fault.BROKEN_OFF: (0, 0),
    Fault.CLOCK: (-3600, 3600),
}


def plan(chance: random.Random, events: int) -> Plan:
    """Which faults, and when."""
    workers = 2 if chance.random() < 0.35 else 1
    kinds = [fault for fault in Fault if chance.random() < 0.45]
    if workers > 1 and Fault.CLOCK in kinds:
        # Leases end by the wall clock: one that is set forth takes them from workers who cannot know.
        kinds.remove(Fault.CLOCK)
    strikes = [
        Strike(chance.randrange(1, events), fault, chance.uniform(*_SECONDS[fault]))
        for fault in kinds
        for _ in range(chance.randint(1, 4))
    ]
    return Plan(workers, events, tuple(sorted(strikes, key=lambda strike: (strike.event, strike.fault.value))))
