"""In which order queued URLs leave: the front class of a new one, 0 first and 9 last.

A class is a band of depths, read from one table. Class 0 is left to what people and the crawl itself put first. A
redirect's target is the same page as its source and keeps its class. In breadth-first order a sitemap's URLs, of
which there may be millions, let those go first that are linked near a seed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Annotated, NamedTuple, assert_never

from msgspec import Meta, Struct, field

from crawlspace.errors import UsageError
from crawlspace.policy.patterns import Patterns
from crawlspace.types import Address, Relation

MIDDLE = 5
LAST = 9
PREFERRED = 0.8
NEGLECTED = 0.2
"""A site's own word on a page, from 0 to 1 with 0.5 for all it says nothing of (sitemaps.org, `priority`)."""
DAY_MS = 86_400_000
FRESH_MS = 7 * DAY_MS
STALE_MS = 730 * DAY_MS

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


class PriorityRule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A front class for some URLs, however they are found."""

    pattern: Annotated[
        str, Meta(min_length=1, max_length=2000, description="RE2, or a glob behind `glob:`, on the URL as found.")
    ]
    front_class: Annotated[int, Meta(ge=0, le=LAST, description="0 leaves first, 9 last.")] = field(name="class")


class PrioritySettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """In which order URLs are asked for."""

    order: Annotated[
        Order, Meta(description="URLs near a seed first (`breadth`), far ones first (`depth`), or by `arrival`.")
    ] = Order.BREADTH
    rules: Annotated[
        tuple[PriorityRule, ...],
        Meta(description="Tables with `pattern` and `class`; the first pattern that fits a URL gives it its class."),
    ] = ()


class Candidate(NamedTuple):
    """A new URL, as a user's own function is asked about it."""

    url: str
    host: str
    depth: int
    relation: Relation
    front_class: int
    """The class that it will have if nothing else is said."""


Score = Callable[[Candidate], int | None]
"""The front class of a new URL, from 0 to 9; None leaves it as it is. Pure and quick: it is asked for every link."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What people say of the order: patterns first, then their own function."""

    _rules: tuple[tuple[Patterns, int], ...]
    _score: Score | None = None

    @classmethod
    def of(cls, settings: PrioritySettings, score: Score | None = None) -> Ranking:
        """Raises `ConfigError` for a pattern that cannot be read."""
        rules = [
            (Patterns.of((rule.pattern,), f"priority.rules, rule {number}"), rule.front_class)
            for number, rule in enumerate(settings.rules, 1)
        ]
        return cls(tuple(rules), score)

    def front_class(self, address: Address, depth: int, relation: Relation, usual: int) -> int:
        """The class of a new URL whose depth and relation give it the class `usual`.

        Sitemap files are the crawl's own affair. Raises `UsageError` when a user's function answers with no class.
        """
        if relation is Relation.SITEMAP_FILE or (not self._rules and self._score is None):
            return usual
        best = next((number for patterns, number in self._rules if patterns.match(address.fetch_url)), usual)
        if self._score is None:
            return best
        scored = self._score(Candidate(address.fetch_url, address.host, depth, relation, best))
        if scored is None:
            return best
        if scored not in range(LAST + 1):
            raise UsageError(f"a scorer answered {scored!r} for {address.fetch_url}", hint="classes go from 0 to 9")
        return scored


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


def announced_class(settings: PrioritySettings, depth: int, priority: float | None, age_ms: int | None) -> int:
    """The class of a URL that a sitemap announces: one better or worse than its depth's, by what the site says of it.

    `priority` is from 0 to 1, `age_ms` the time since the page is said to have changed. Sites praise their own pages,
    so their word weighs no more than a link's distance does; in the order of arrival it weighs nothing.
    """
    usual = front_class(settings, depth, Relation.SITEMAP)
    if settings.order == Order.ARRIVAL:
        return usual
    praise = 0
    if priority is not None:
        praise += (priority >= PREFERRED) - (priority <= NEGLECTED)
    if age_ms is not None:
        praise += (0 <= age_ms <= FRESH_MS) - (age_ms > STALE_MS)
    return min(LAST, max(1, usual - max(-1, min(1, praise))))
