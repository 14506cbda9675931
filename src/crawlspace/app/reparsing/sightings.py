"""Visits that found their page as it was (304), also those of crawls without parsers: its records were seen again.

The store knows them by the capture: it is that of an earlier visit. What the records do not know of is written down
before captures are parsed; a line that is written twice counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path

from crawlspace.records import Records, Rules
from crawlspace.records.entries import again_line
from crawlspace.records.views import noted
from crawlspace.types import Captured, Pointer

AT_ONCE = 10_000
"""Lines that are written together."""


def note_sightings(
    records: Records, place: tuple[Path, Rules], visits: Iterable[Captured], is_here: Callable[[Pointer], bool]
) -> int:
    """Write down visits of which the records at a place do not know; how many.

    `visits` are all captures of URLs that were visited more than once, by number and generation.
    """
    seen_again = (each for each in unchanged(visits) if is_here(each.pointer))
    first = next(seen_again, None)
    if first is None:
        return 0
    count = 0
    unknown = _unknown(chain([first], seen_again), noted(*place))
    while some := list(islice(unknown, AT_ONCE)):
        records.write_lines([again_line(each) for each in some])
        count += len(some)
    return count


def unchanged(visits: Iterable[Captured]) -> Iterator[Captured]:
    """Those of the visits that found the page as it was, each with the capture that it found to hold still."""
    for _, of_url in groupby(visits, key=itemgetter(0)):
        known: set[Pointer] = set()
        for each in of_url:
            if each.pointer in known:
                yield each
            known.add(each.pointer)


def _unknown(visits: Iterable[Captured], known: Iterable[tuple[int, int]]) -> Iterator[Captured]:
    """Those of the visits that are not known; both are in order."""
    ahead = iter(known)
    have = next(ahead, None)
    for each in visits:
        while have is not None and have < each[:2]:
            have = next(ahead, None)
        if have != each[:2]:
            yield each
