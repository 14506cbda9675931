"""Who crawls together, as stores keep it: a fact for each worker that takes hosts, and until when it holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

FACT = "crew "
"""Before the number of a worker. These facts change all the time, and are nobody's to read but ours."""

SOON_MS = 5_000
"""A free host whose time comes within that counts as one that can be had."""
LONGEST_MS = 600_000
"""Nobody takes hosts for longer without a word: a time beyond that was written by a wrong clock."""
FRESH = 4
"""A word is given again when so much of it, as a fraction, has passed: not at every meeting."""


class Words(NamedTuple):
    """Who takes hosts now, apart from the one who asks."""

    others: dict[int, int]
    """How many each visits at once, by number."""
    mine: str | None
    """What the one who asks has said before; None when that holds no longer."""


def heard(facts: Iterable[tuple[str, str]], worker: int, now: int) -> Words:
    """What all have said, as far as it holds."""
    others: dict[int, int] = {}
    mine = None
    for key, value in facts:
        number, (until, most) = int(key.removeprefix(FACT)), map(int, value.split())
        if number == worker:
            mine = value
        elif now < until <= now + LONGEST_MS:
            others[number] = most
    return Words(others, mine)


def word(most: int, ttl_ms: int, now: int) -> str:
    """What a worker says."""
    return f"{now + ttl_ms} {most}"


def must_be_said(mine: str | None, most: int, ttl_ms: int, now: int) -> bool:
    """Whether what it has said is not enough any more."""
    if mine is None:
        return True
    until, before = map(int, mine.split())
    return before != most or not now + ttl_ms - ttl_ms // FRESH < until <= now + ttl_ms
