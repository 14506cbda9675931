"""In which order queued URLs leave: the front class of a new one, 0 first and 9 last.

A class is a band of depths, read from one table. Class 0 is left to what people and the crawl itself put first. A
redirect's target is the same page as its source and keeps its class. In breadth-first order a sitemap's URLs, of
which there may be millions, let those go first that are linked near a seed.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import StrEnum, unique
from typing import Annotated, assert_never

from msgspec import Meta, Struct

from crawlspace.types import Relation

MIDDLE = 5
LAST = 9

_BANDS = (1, 2, 3, 4, 5, 7, 10, 15)
"""Depths at which the next class begins: a class each up to depth 4, then wider; class 1 is depth 0 alone."""


@unique
class Order(StrEnum):
    """Which URLs of the whole frontier are asked for first."""

    BREADTH = "breadth"
    """Those near a seed."""
    DEPTH = "depth"
    """Those far from one."""
    ARRIVAL = "arrival"
    """Those found first."""


class PrioritySettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """In which order URLs are asked for."""

    order: Annotated[
        Order, Meta(description="URLs near a seed first (`breadth`), far ones first (`depth`), or by `arrival`.")
    ] = Order.BREADTH


def front_class(settings: PrioritySettings, depth: int, relation: Relation, source: int | None = None) -> int:
    """The class of a new URL at this depth; `source` is the class of the URL whose redirect led to it."""
    if relation is Relation.REDIRECT and source is not None:
        return source
    band = 1 + bisect_right(_BANDS, depth)
    match settings.order:
        case Order.BREADTH:
            return max(band, MIDDLE) if relation is Relation.SITEMAP else band
        case Order.DEPTH:
            return 1 + LAST - band
        case Order.ARRIVAL:
            return MIDDLE
        case _ as unknown:
            assert_never(unknown)
