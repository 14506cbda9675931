"""Turns of pace groups: a host that may be visited is leased only when its group has a turn for it.

A group has as many turns as it may have hosts visited at once. One worker has all that are given at a time, so that
its own clock can keep the requests to the group apart; from worker to worker the group's next time does. A host that
gets no turn leaves the queue of due hosts (`parked` says `group`) and is called again when a turn is free and its
time has come, the longest waiting first: what a lease reads does not grow with the number of those that wait.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from crawlspace.frontier.bounds import CALLED_AT_ONCE
from crawlspace.frontier.sql import statements
from crawlspace.policy.groups import Grouping, PaceGroup

_SQL = statements(__package__, "groups.sql")


@dataclass(slots=True)
class _Turns:
    """A group as a lease finds it, and as it goes on."""

    next_at: int
    free: int
    wanted: bool | None
    """None: as it was; a group that is met for the first time is written in any case."""


class Groups:
    """The groups that one call of lease meets."""

    def __init__(self, connection: sqlite3.Connection, grouping: Grouping, now: int) -> None:
        self._connection = connection
        self._grouping = grouping
        self._now = now
        self._met: dict[str, _Turns] = {}

    def call(self, worker: int) -> None:
        """Hosts that wait for a group which has turns and whose time has come may be visited again."""
        asked = {"now": self._now, "worker": worker, "limit": CALLED_AT_ONCE}
        for (name,) in self._connection.execute(_SQL["due"], asked).fetchall():
            group = self._grouping.named(name)
            # A group that the settings of now do not make keeps nobody waiting.
            turns = CALLED_AT_ONCE if group is None else self._of(group, worker).free
            called = self._connection.execute(_SQL["call"], (name, turns)).rowcount
            if called < turns or turns == 0:
                self._connection.execute(_SQL["want"], {"name": name, "wanted": False})

    def admit(self, hid: int, group: PaceGroup, worker: int) -> bool:
        """Give this host a turn of its group; without one it waits."""
        turns = self._of(group, worker)
        if turns.free > 0 and turns.next_at <= self._now:
            turns.free -= 1
            turns.wanted = turns.wanted if turns.free else False
            return True
        self._connection.execute(_SQL["park"], (group.name, hid))
        if turns.free > 0:
            turns.wanted = True
        return False

    def write(self) -> None:
        """Write which groups are to be looked after."""
        for name, turns in self._met.items():
            if turns.wanted is not None:
                self._connection.execute(_SQL["want"], {"name": name, "wanted": turns.wanted})

    def _of(self, group: PaceGroup, worker: int) -> _Turns:
        turns = self._met.get(group.name)
        if turns is None:
            asked = {"name": group.name, "worker": worker}
            next_at, leased, foreign = self._connection.execute(_SQL["clock"], asked).fetchone()
            free = 0 if foreign else max(0, group.concurrency - leased)
            turns = self._met[group.name] = _Turns(next_at or 0, free, None if next_at is not None else False)
        return turns


def give_back(connection: sqlite3.Connection, hid: int, next_at: int) -> None:
    """A host is about to be let go: its group's turn, if it has one, is free, and the group waits until this time."""
    connection.execute(_SQL["give_back"], {"hid": hid, "next_at": next_at})


def give_up(connection: sqlite3.Connection, grouping: Grouping, hid: int, now: int) -> None:
    """A lease is lost: nobody knows when its last request started, so the group waits its whole delay from now."""
    for (name,) in connection.execute(_SQL["of_host"], (hid,)).fetchall():
        group = grouping.named(name) if name is not None else None
        if name is not None:
            give_back(connection, hid, now + (0 if group is None else group.delay_ms))


def next_due(connection: sqlite3.Connection, worker: int) -> int | None:
    """When the first group is due that this worker may serve; None when no group has a turn and somebody waiting."""
    row = connection.execute(_SQL["next"], (worker,)).fetchone()
    return None if row is None else int(row[0])


def clamp(connection: sqlite3.Connection, bound: int) -> None:
    """Let no group wait for a time that only a wrong clock can have written."""
    connection.execute(_SQL["clamp"], {"bound": bound})
