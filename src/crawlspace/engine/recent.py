"""Keys claimed a short while ago: what stops most repeats before they cost a look into the store.

Only committed claims enter, so a key that is here is surely in the store. A key that is not here says nothing.
Most links of a page lead to pages seen minutes ago (Broder, Najork and Wiener, WWW 2003), which is why a small
set answers most questions.
"""

from __future__ import annotations

from collections.abc import Iterable

from crawlspace.types import Claim

REFUSED = (1 << 15, 1 << 15)
"""The way of a refused claim: it holds back its repeats, and no claim that would be queued."""


class Recent:
    """A bounded map from key to the best way in which it was claimed, in two generations.

    A full young generation becomes the old one and the old one is forgotten: two dictionary look-ups at most,
    and no list to keep in order.
    """

    __slots__ = ("_limit", "_old", "_young")

    def __init__(self, limit: int = 1 << 16) -> None:
        self._limit = max(1, limit // 2)
        self._young: dict[bytes, tuple[int, int]] = {}
        self._old: dict[bytes, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def holds(self, key: bytes, front_class: int, depth: int) -> bool:
        """True when this key was claimed with a class and a depth at least as good."""
        best = self._young.get(key)
        if best is None:
            best = self._old.get(key)
            if best is None:
                return False
            self._remember(key, best)
        return best[0] <= front_class and best[1] <= depth

    def commit(self, claims: Iterable[Claim]) -> None:
        """Remember claims that the store has taken, refused ones as the worst way there is."""
        known = self._young
        for claim in claims:
            way = (claim.front_class, claim.depth) if claim.refusal is None else REFUSED
            key = claim.address.key
            if key in known or len(known) + 1 >= self._limit:
                self._remember(key, way)
                known = self._young
            else:
                known[key] = way

    def _remember(self, key: bytes, way: tuple[int, int]) -> None:
        known = self._young.get(key)
        if known is not None:
            way = (min(way[0], known[0]), min(way[1], known[1]))
        self._young[key] = way
        if len(self._young) >= self._limit:
            self._old, self._young = self._young, {}
