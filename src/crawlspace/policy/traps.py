"""Hosts whose URLs look as if they never end: told, not stopped, since only a person can know.

Two kinds are seen in the addresses alone. A calendar has pages for more months than any archive; a page of filters
leads to itself under ever new combinations of parameters. Both are counted by host in bounded memory: months as a
set, combinations in a small bitmap for each of a host's busiest paths, so that a repeat counts once. Loops in the
path are refused outright, by `scope.path_repeat`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum, unique
from typing import NamedTuple

from crawlspace.types import Address, host_id

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

_MONTH = re.compile(
    r"(?<![0-9])((?:1[6-9]|2[0-9])[0-9]{2})[-/_.]?(0[1-9]|1[0-2])(?![0-9]{3})"
    r"|year=([0-9]{4})[^#]*?&month=([0-9]{1,2})"
    r"|month=([0-9]{1,2})[^#]*?&year=([0-9]{4})"
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
        before, _, query = address.canonical.partition("?")
        month = _MONTH.search(address.canonical)
        combined = "&" in query
        if month is None and not combined:
            return None
        host = self._host(address.host)
        kind: Trap | None = None
        if month is not None and self._is_calendar(host, month):
            kind = Trap.CALENDAR
        elif combined and self._path(host, before).add(address.key) > COMBINATIONS:
            kind = Trap.PARAMETERS
        if kind is None or kind in host.told:
            return None
        host.told.add(kind)
        return Alarm(host_id(address.key), address.host, kind, address.canonical)

    def _is_calendar(self, host: _Host, month: re.Match[str]) -> bool:
        if len(host.months) <= MONTHS:
            year, number, year_first, number_second, number_first, year_second = month.groups()
            host.months.add((year or year_first or year_second, (number or number_second or number_first).zfill(2)))
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
