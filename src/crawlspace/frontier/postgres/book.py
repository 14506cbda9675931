"""The counters that one transaction moves: totals, and those of each host it touches.

They are collected here and written together by the transaction whose moves they count. A move is counted here and
nowhere else, so that the states always add up.
"""

from __future__ import annotations

from crawlspace.frontier.counters import (
    BYTES,
    DUPLICATES,
    FETCHES,
    HOSTS,
    PAGES,
    REFUSED_BEYOND_CAP,
    STATE_NAMES,
    HostDelta,
)
from crawlspace.frontier.postgres.columns import numbers
from crawlspace.frontier.postgres.place import Shards
from crawlspace.states import Event, UrlState, advance

TOTALS = (*STATE_NAMES.values(), PAGES, FETCHES, BYTES, DUPLICATES, HOSTS, REFUSED_BEYOND_CAP)
"""Columns of `tally`."""
SLOTS = 64


class Book:
    """The counters of one transaction."""

    def __init__(self, slot: int) -> None:
        self._slot = slot % SLOTS
        self._totals = dict.fromkeys(TOTALS, 0)
        self._hosts: dict[int, HostDelta] = {}

    def host(self, hid: int) -> HostDelta:
        """The counters of this host, to be moved."""
        delta = self._hosts.get(hid)
        if delta is None:
            delta = self._hosts[hid] = HostDelta()
        return delta

    def add(self, name: str, n: int) -> None:
        """Move a total."""
        self._totals[name] += n

    def arrive(self, state: UrlState) -> None:
        """A URL becomes known, in this state."""
        self.add(STATE_NAMES[state], 1)

    def move(self, state: UrlState, event: Event, n: int = 1) -> UrlState:
        """Count `n` URLs that make this move; raises `IllegalMove` when the table of states forbids it."""
        after = advance(state, event)
        self.add(STATE_NAMES[state], -n)
        self.add(STATE_NAMES[after], n)
        return after

    def take_hosts(self, shards: Shards) -> dict[str, str] | None:
        """What hosts have moved since the last time, as columns; None when nothing."""
        if not self._hosts:
            return None
        hids = sorted(self._hosts)
        deltas = [self._hosts.pop(hid) for hid in hids]
        return {
            "shards": numbers(shards.each(hids)),
            "hids": numbers(hids),
            "classes": numbers([delta.best_class for delta in deltas]),
            "seed": _moved([delta.seed for delta in deltas]),
            "met": _moved([delta.met for delta in deltas]),
            "queued": _moved([delta.queued for delta in deltas]),
            "leased": _moved([delta.leased for delta in deltas]),
            "delayed": _moved([delta.delayed for delta in deltas]),
            "fetched": _moved([delta.fetched for delta in deltas]),
            "done": _moved([delta.done for delta in deltas]),
            "dead": _moved([delta.dead for delta in deltas]),
            "discovered": _moved([delta.discovered for delta in deltas]),
            "duplicates": _moved([delta.duplicates for delta in deltas]),
        }

    def take_totals(self) -> dict[str, int] | None:
        """What totals have moved, with the slot to write it to; None when nothing."""
        if not any(self._totals.values()):
            return None
        moved, self._totals = self._totals, dict.fromkeys(TOTALS, 0)
        return {"slot": self._slot, **moved}


def _moved(values: list[int]) -> str:
    """A column of the statement `host_delta`, which reads no list at all as zeros."""
    return numbers(values) if any(values) else "{}"
