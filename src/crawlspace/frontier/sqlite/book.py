"""The counters that one transaction moves: totals, and those of each host it touches.

They are collected and written once, in the same transaction as the moves they count. A move is counted here and
nowhere else, so that the states always add up.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from crawlspace.frontier.counters import STATE_NAMES, HostDelta
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.states import Event, UrlState, advance

_SQL = statements(__package__, "book.sql")


class Book:
    """The counters of one transaction."""

    def __init__(self, connection: sqlite3.Connection, settings: FrontierSettings) -> None:
        self._connection = connection
        self._settings = settings
        self._totals: dict[str, int] = {}
        self._hosts: dict[int, HostDelta] = {}
        self._grown: dict[int, int] = {}

    def host(self, hid: int) -> HostDelta:
        """The counters of this host, to be moved."""
        delta = self._hosts.get(hid)
        if delta is None:
            delta = self._hosts[hid] = HostDelta()
        return delta

    def grow(self, hid: int, n: int) -> None:
        """URLs join the queue of a met host in which one of as good a class waits: only numbers change."""
        self._grown[hid] = self._grown.get(hid, 0) + n

    def add(self, name: str, n: int) -> None:
        """Move a total."""
        self._totals[name] = self._totals.get(name, 0) + n

    def arrive(self, state: UrlState, n: int = 1) -> None:
        """URLs become known, in this state."""
        self.add(STATE_NAMES[state], n)

    def move(self, state: UrlState, event: Event, n: int = 1) -> UrlState:
        """Count `n` URLs that make this move; raises `IllegalMove` when the table of states forbids it."""
        after = advance(state, event)
        self.add(STATE_NAMES[state], -n)
        self.add(STATE_NAMES[after], n)
        return after

    def write_host(self, hid: int) -> None:
        """Write what one host has moved so far, for those who read its row next."""
        self.write_hosts([hid])

    def write_hosts(self, hosts: Sequence[int]) -> None:
        """The same of some."""
        moved: list[dict[str, int | None]] = []
        for hid in hosts:
            self._count_grown(hid)
            delta = self._hosts.pop(hid, None)
            if delta is not None:
                moved.append(self._parameters(hid, delta))
        self._connection.executemany(_SQL["host_delta"], moved)

    def write(self) -> None:
        """Write everything."""
        for hid in self._grown.keys() & self._hosts.keys():
            self._count_grown(hid)
        self._connection.executemany(_SQL["host_grows"], [(n, n, hid) for hid, n in self._grown.items()])
        self._connection.executemany(
            _SQL["host_delta"], [self._parameters(hid, delta) for hid, delta in self._hosts.items()]
        )
        self._connection.executemany(_SQL["tally_delta"], [(n, name) for name, n in self._totals.items() if n])
        self._grown.clear()
        self._hosts.clear()
        self._totals.clear()

    def _count_grown(self, hid: int) -> None:
        """Let what a host has only grown by be written with the rest."""
        grown = self._grown.pop(hid, 0)
        if grown:
            delta = self.host(hid)
            delta.queued += grown
            delta.discovered += grown

    def _parameters(self, hid: int, delta: HostDelta) -> dict[str, int | None]:
        return {
            "hid": hid,
            "seed": delta.seed,
            "met": delta.met,
            "class": delta.best_class,
            "queued": delta.queued,
            "leased": delta.leased,
            "delayed": delta.delayed,
            "fetched": delta.fetched,
            "done": delta.done,
            "dead": delta.dead,
            "discovered": delta.discovered,
            "duplicates": delta.duplicates,
            "pages": self._settings.pages_per_host,
            "seed_pages": self._settings.pages_per_seed_host,
        }
