"""In which order queued URLs leave: the front class of a new one, 0 first and 9 last.

A class is a band of depths, read from one table. Class 0 is left to what people and the crawl itself put first. A
redirect's target is the same page as its source and keeps its class. In breadth-first order a sitemap's URLs, of
which there may be millions, let those go first that are linked near a seed.

Who has a word on a class speaks in this order, each on what came of the one before: the order with the depth, the
site in its sitemap, people's rules that name a class, their rules that move it, and their own function.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
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

NEAR = 1
FAR = 7
"""Depths that count in the order of the best: what seeds link to leaves a class earlier, what is far a later."""

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
    BEST = "best"
    """Those that rules, sitemaps and the user's function praise; of others those found first."""


AT_ONCE = frozenset({Order.DEPTH, Order.BEST})
"""Orders in which what a page has just led to may be next: a host's URLs are taken one by one, not many at a time."""


_Pattern = Annotated[str, Meta(min_length=1, max_length=2000)]


class PriorityRule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A front class for some URLs, or a better or worse one than they would have, by their address or their link."""

    pattern: Annotated[_Pattern | None, Meta(description="RE2, or a glob behind `glob:`, on the URL as found.")] = (
        None
    )
    text: Annotated[
        _Pattern | None,
        Meta(description="RE2, or a glob behind `glob:`, on the words of the link, its title or its picture's."),
    ] = None
    front_class: Annotated[
        Annotated[int, Meta(ge=0, le=LAST)] | None, Meta(description="0 leaves first, 9 last.")
    ] = field(name="class", default=None)
    shift: Annotated[
        Annotated[int, Meta(ge=-LAST, le=LAST)] | None,
        Meta(description="Classes by which it leaves later; below 0: earlier. All rules that fit add up."),
    ] = None

    def __post_init__(self) -> None:
        if self.pattern is None and self.text is None:
            raise ValueError("a rule needs `pattern`, `text` or both")
        if (self.front_class is None) == (self.shift is None):
            raise ValueError("a rule needs either `class` or `shift`")


class PrioritySettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """In which order URLs are asked for."""

    order: Annotated[
        Order,
        Meta(
            description="URLs near a seed first (`breadth`), far ones first (`depth`), those praised by rules, "
            "sitemaps or a scorer (`best`), or by `arrival`."
        ),
    ] = Order.BREADTH
    rules: Annotated[
        tuple[PriorityRule, ...],
        Meta(
            description="Tables with `pattern` or `text`, and `class` or `shift`; the first with a class that fits a "
            "URL gives it, then those with a shift move it."
        ),
    ] = ()

    @property
    def reads_text(self) -> bool:
        """Whether the words of links must be read."""
        return any(rule.text is not None for rule in self.rules)


class Candidate(NamedTuple):
    """A new URL, as a user's own function is asked about it."""

    url: str
    host: str
    depth: int
    relation: Relation
    front_class: int
    """The class that it will have if nothing else is said."""
    text: str = ""
    """The words of its link, where the crawl reads them (`discovery.context`, or a rule on them)."""


class Found(NamedTuple):
    """How a URL was found, as far as it matters here."""

    depth: int
    relation: Relation
    text: str = ""


Score = Callable[[Candidate], int | None]
"""The front class of a new URL, from 0 to 9; None leaves it as it is. Pure and quick: it is asked for every link."""


class _Rule(NamedTuple):
    url: Patterns | None
    text: Patterns | None
    front_class: int | None
    shift: int

    def fits(self, url: str, text: str) -> bool:
        return (self.url is None or self.url.match(url)) and (self.text is None or self.text.match(text))


class Ranking(Struct, frozen=True):
    """What people say of the order: rules first, then their own function."""

    _rules: tuple[_Rule, ...]
    _score: Score | None = None

    @classmethod
    def of(cls, settings: PrioritySettings, score: Score | None = None) -> Ranking:
        """Raises `ConfigError` for a pattern that cannot be read."""
        rules = [
            _Rule(_patterns(rule.pattern, number), _patterns(rule.text, number), rule.front_class, rule.shift or 0)
            for number, rule in enumerate(settings.rules, 1)
        ]
        return cls(tuple(rules), score)

    def front_class(self, address: Address, way: Found, usual: int) -> int:
        """The class of a new URL to which depth and relation give the class `usual`.

        Sitemap files are the crawl's own affair. Raises `UsageError` when a user's function answers with no class.
        """
        if way.relation is Relation.SITEMAP_FILE or (not self._rules and self._score is None):
            return usual
        fitting = [rule for rule in self._rules if rule.fits(address.fetch_url, way.text)]
        named = next((rule.front_class for rule in fitting if rule.front_class is not None), usual)
        best = max(0, min(LAST, named + sum(rule.shift for rule in fitting)))
        if self._score is None:
            return best
        candidate = Candidate(address.fetch_url, address.host, way.depth, way.relation, best, way.text)
        scored = self._score(candidate)
        if scored is None:
            return best
        if scored not in range(LAST + 1):
            raise UsageError(f"a scorer answered {scored!r} for {address.fetch_url}", hint="classes go from 0 to 9")
        return scored


def _patterns(text: str | None, number: int) -> Patterns | None:
    return None if text is None else Patterns.of((text,), f"priority.rules, rule {number}")


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
        case Order.BEST:
            return MIDDLE + (depth > FAR) - (depth <= NEAR)
        case _ as unknown:
            assert_never(unknown)


def announced_class(settings: PrioritySettings, depth: int, priority: float | None, age_ms: int | None) -> int:
    """The class of a URL that a sitemap announces: one better or worse than its depth's, by what the site says of it.

    `priority` is from 0 to 1, `age_ms` the time since the page is said to have changed. Sites praise their own pages,
    so their word weighs no more than a link's distance does, or twice as much where the best are wanted first; in the
    order of arrival it weighs nothing.
    """
    usual = front_class(settings, depth, Relation.SITEMAP)
    weight = 2 if settings.order == Order.BEST else 1
    if settings.order == Order.ARRIVAL:
        return usual
    praise = 0
    if priority is not None:
        praise += (priority >= PREFERRED) - (priority <= NEGLECTED)
    if age_ms is not None:
        praise += (0 <= age_ms <= FRESH_MS) - (age_ms > STALE_MS)
    return min(LAST, max(1, usual - weight * max(-1, min(1, praise))))
