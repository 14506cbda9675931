"""Hosts whose URLs look as if they never end.

Two kinds are seen in the addresses alone, and only told, since only a person can know. A calendar has pages for more
months than any archive; a page of filters leads to itself under ever new combinations of parameters. Both are counted
by host in bounded memory: months as a set, combinations in a small bitmap for each of a host's busiest paths, so that
a repeat counts once. Loops in the path are refused outright, by `scope.path_repeat`.

A third kind shows in the content, and is stopped: addresses of one *shape* whose pages, one after another, say
nothing that the shape's earlier pages did not say, and lead only further into the shape. Such a run is counted by
host and shape (`after`): a shape that has a long one is slowed, its URLs leave last; then it is stopped, its URLs are
refused. One page that says something new, or leads elsewhere, ends the run: an archive with a text for each day has
none, and the empty days of a sparse one are forgiven as long as they are fewer in a row than it takes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum, unique
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct

from crawlspace.types import Address, Relation, host_id

HOSTS = 500
"""Hosts that are watched at once; the one watched longest gives way."""
PATHS = 16
"""Paths of a host that are watched at once; the one with the fewest combinations gives way."""
MONTHS = 360
"""Thirty years: more months than an archive that people wrote is likely to have."""
COMBINATIONS = 1000
"""Ways to combine the parameters of one path: more than anybody reads."""

_BITS = 8192
"""Eight for each combination that is counted: seldom do two share one."""

# That no digit stands before the year is asked behind its first one: so the search goes from one 1 or 2 to the next.
_MONTH = re.compile(r"((?:1(?<![0-9]1)[6-9]|2(?<![0-9]2)[0-9])[0-9]{2})[-/_.]?(0[1-9]|1[0-2])(?![0-9]{3})")
_NAMED = "year="
_NAMED_MONTH = re.compile(
    rf"{_MONTH.pattern}|year=([0-9]{{4}})[^#]*?&month=([0-9]{{1,2}})|month=([0-9]{{1,2}})[^#]*?&year=([0-9]{{4}})"
)


@unique
class Trap(StrEnum):
    """What a host's URLs look like."""

    CALENDAR = "calendar"
    PARAMETERS = "parameters"


class Alarm(NamedTuple):
    """A host that looks like a trap; each kind is told once for as long as the host is watched."""

    hid: int
    host: str
    kind: Trap
    example: str
    """The URL that was one too many."""


# -- in the addresses -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Path:
    """Combinations of parameters seen under one path."""

    bitmap: bytearray = field(default_factory=lambda: bytearray(_BITS // 8))
    n: int = 0

    def add(self, key: bytes) -> int:
        """Count this URL unless it was counted before; how many there are."""
        place, bit = divmod(int.from_bytes(key[-4:], "big") % _BITS, 8)
        if not self.bitmap[place] >> bit & 1:
            self.bitmap[place] |= 1 << bit
            self.n += 1
        return self.n


@dataclass(slots=True)
class _Host:
    months: set[tuple[str, str]] = field(default_factory=set)
    paths: dict[str, _Path] = field(default_factory=dict)
    told: set[Trap] = field(default_factory=set)


@dataclass(slots=True)
class TrapWatch:
    """Sees the URLs that a crawl finds."""

    _hosts: dict[str, _Host] = field(default_factory=dict)

    def see(self, address: Address) -> Alarm | None:
        """Count a URL; the alarm, when it was one too many of a kind that was not told yet."""
        canonical = address.canonical
        month = month_in(canonical)
        combined = "&" in canonical and "&" in canonical.partition("?")[2]
        if month is None and not combined:
            return None
        host = self._host(address.host)
        kind: Trap | None = None
        if month is not None and self._is_calendar(host, month):
            kind = Trap.CALENDAR
        elif combined and self._path(host, canonical.partition("?")[0]).add(address.key) > COMBINATIONS:
            kind = Trap.PARAMETERS
        if kind is None or kind in host.told:
            return None
        host.told.add(kind)
        return Alarm(host_id(address.key), address.host, kind, canonical)

    def _is_calendar(self, host: _Host, month: tuple[str, str]) -> bool:
        if len(host.months) <= MONTHS:
            host.months.add(month)
        return len(host.months) > MONTHS

    def _host(self, name: str) -> _Host:
        host = self._hosts.get(name)
        if host is None:
            if len(self._hosts) >= HOSTS:
                del self._hosts[next(iter(self._hosts))]
            host = self._hosts[name] = _Host()
        return host

    def _path(self, host: _Host, before: str) -> _Path:
        path = host.paths.get(before)
        if path is None:
            if len(host.paths) >= PATHS:
                del host.paths[min(host.paths, key=lambda name: host.paths[name].n)]
            path = host.paths[before] = _Path()
        return path


def month_in(canonical: str) -> tuple[str, str] | None:
    """The first year and month that a URL names, four digits and two; None when it names none."""
    if _NAMED not in canonical:
        # Most URLs, each link of a crawl: the other ways to write a month need not be looked for.
        found = _MONTH.search(canonical)
        return None if found is None else (found[1], found[2])
    found = _NAMED_MONTH.search(canonical)
    if found is None:
        return None
    year, number, year_first, number_second, number_first, year_second = found.groups()
    return year or year_first or year_second, (number or number_second or number_first).zfill(2)


# -- in the content ---------------------------------------------------------------------------------------------

LEADING: Final = frozenset({Relation.HYPERLINK, Relation.FRAME, Relation.REFRESH, Relation.REDIRECT, Relation.HINT})
"""Relations in which a trap leads on. What a person or a sitemap names is taken at its word."""
SHAPE_LIMIT: Final = 200
"""Characters of a shape; what is longer is cut, and shares its shape with others."""
SEGMENTS: Final = 8
"""Segments of a path that its shape tells apart."""
LEAST_SAID: Final = 256
"""Characters of text below which a page is no evidence of a trap: galleries and script shells say little."""

_ID: Final = re.compile(
    r"(?=[^/?&=]*[0-9])[0-9A-Za-z]{16,}|(?=[0-9a-f-]*[0-9])[0-9a-f]{8,}(?:-[0-9a-f]{4,})*|\([a-zA-Z][^/]*\)", re.ASCII
)
_NUMBER: Final = re.compile(r"(?<!%)(?<!%[0-9A-Fa-f])[0-9]+")
_LONG_WORD: Final = 40


class TrapSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When addresses of one shape count as a trap."""

    slow_after: Annotated[
        int,
        Meta(
            description="Pages of one shape of address in a row that say nothing new and lead only to more of the "
            "shape, after which its URLs leave last. 0: never.",
            ge=0,
        ),
    ] = 10
    stop_after: Annotated[
        int,
        Meta(description="Such pages in a row after which further URLs of the shape are refused. 0: never.", ge=0),
    ] = 40


@unique
class Tread(IntEnum):
    """How a shape is dealt with."""

    FREELY = 0
    SLOWLY = 1
    """Its URLs leave last."""
    NOT = 2
    """Its URLs are refused."""


class Said(NamedTuple):
    """What one page of a shape brought."""

    new: bool
    """Its text, but for its own address, was not there among the shape's latest."""
    length: int
    """Characters of its text."""
    into: int
    """URLs that it made known, of its own host and shape."""
    elsewhere: int
    """URLs that it made known, of others."""


def after(run: int, said: Said) -> int:
    """How long the run of empty pages is after one more page."""
    if said.new or said.elsewhere:
        return 0
    # A page that leads nowhere new is harmless, and one with few words may show a picture.
    return run + 1 if said.into and said.length >= LEAST_SAID else run


def tread(run: int, settings: TrapSettings) -> Tread:
    """How a shape with such a run is dealt with."""
    if settings.stop_after and run >= settings.stop_after:
        return Tread.NOT
    return Tread.SLOWLY if settings.slow_after and run >= settings.slow_after else Tread.FREELY


def shape_of(canonical: str) -> str:
    """The shape of a canonical URL: its path and the names of its parameters, numbers and ids left out."""
    place = canonical.partition("://")[2].partition("/")[2]
    path, mark, query = place.partition("?")
    segments = path.split("/")
    if len(segments) > SEGMENTS:
        segments = [*segments[:SEGMENTS], "…"]
    shape = "/" + "/".join(_segment(segment) for segment in segments)
    if mark:
        names = sorted({_segment(part.partition("=")[0]) for part in query.split("&")})
        shape += "?" + "&".join(names)
    return shape[:SHAPE_LIMIT]


def _segment(text: str) -> str:
    if len(text) > _LONG_WORD or _ID.fullmatch(text):
        return "{id}"
    return _NUMBER.sub("{n}", text)


def scope_rule(host: str, shape: str) -> str:
    """A pattern for `scope.exclude` that fits every URL of the shape on the host; an RE2 expression."""
    path, mark, names = shape.partition("?")
    place = "".join(_rule_of(part) for part in _PARTS.split(path))
    rule = rf"^https?://{re.escape(host)}{place}"
    if not mark:
        return rule if "…" in path else rule + "$"
    first = names.split("&")[0]
    return rule + rf"\?(?:[^#]*&)?{''.join(_rule_of(part) for part in _PARTS.split(first))}(?:[=&]|$)"


_PARTS: Final = re.compile(r"(\{n\}|\{id\}|…)")
_RULES: Final = {"{n}": "[0-9]+", "{id}": "[^/?&=]+", "…": ".*"}


def _rule_of(part: str) -> str:
    return _RULES.get(part) or re.escape(part)
