"""How workers that crawl together share out the hosts: none keeps more than its part while another could take more.

A part is a level up to which all are filled: who visits fewer hosts at once than the level leaves the rest to the
others. Small differences stay as they are, so that hosts do not wander to and fro.
"""

from __future__ import annotations

from collections.abc import Sequence

from crawlspace.types import Crew

TOLERANCE = 4
"""A worker keeps what it has above its part as long as that is at most one in so many of it."""


def part(most: int, crew: Crew) -> int:
    """How many of the hosts are for a worker that visits `most` at once; never fewer than one."""
    filled = sorted((most, *crew.others))
    left = crew.hosts
    for place, capacity in enumerate(filled):
        level = -(-left // (len(filled) - place))
        if level <= capacity:
            return max(1, min(most, level))
        left -= capacity
    return most


def surplus(held: int, its_part: int, crew: Crew) -> int:
    """How many of the hosts that it holds a worker should give back now.

    None while there are free ones: those who want more take these first.
    """
    if crew.free or held <= its_part + its_part // TOLERANCE:
        return 0
    return held - its_part


def left_alone(grouped: Sequence[bool], lone: int | None) -> list[bool]:
    """Which of these hosts a worker may have that is to have so many at most which are not grouped."""
    if lone is None:
        return [True] * len(grouped)
    may = []
    for is_grouped in grouped:
        may.append(is_grouped or lone > 0)
        lone -= not is_grouped
    return may
