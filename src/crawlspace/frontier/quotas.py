"""Which front classes leave next: each gets its share of the hosts that are leased, so that no class starves."""

from __future__ import annotations

from crawlspace.frontier.settings import CLASSES

DUE_AT_ONCE = 500
"""Delayed URLs and parked hosts that one call brings back: what is left, the next call takes."""

ROUNDS = 20
"""How often one call chooses again when hosts had to make room."""

_HUNDRED = 100


class Quotas:
    """Shares of the front classes, carried over from call to call.

    A class that has no due host saves nothing; one that has gets its share of a hundred hosts even when each call
    asks for one. Kept in memory: after a restart all begin anew.
    """

    def __init__(self, shares: tuple[int, ...]) -> None:
        self._shares = shares
        self._credit = [0] * CLASSES

    def turn(self, hosts: int) -> list[tuple[int, int]]:
        """Classes whose turn it is and how many hosts each may have, the longest owed first."""
        self._credit = [credit + hosts * share for credit, share in zip(self._credit, self._shares, strict=True)]
        owed = [(front_class, credit // _HUNDRED) for front_class, credit in enumerate(self._credit)]
        return sorted((pair for pair in owed if pair[1] > 0), key=lambda pair: (-pair[1], pair[0]))

    def took(self, front_class: int, hosts: int) -> None:
        """This many hosts of a class left on its quota."""
        self._credit[front_class] -= hosts * _HUNDRED

    def is_empty(self, front_class: int) -> None:
        """The class has no due host more: what it saved is void."""
        self._credit[front_class] = 0
