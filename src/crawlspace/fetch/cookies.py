"""Cookies as browsers keep them (RFC 6265 and its revision), held tighter. Pure.

A cookie goes back to the host that set it, or to hosts under a `Domain` that it named and that is no public suffix.
Beyond the standard it is bound to the scheme it came by, and without a `Domain` to the port too: what was said over
https is never repeated in clear. All is bounded, since servers say what is kept; nothing is written to a disk.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from crawlspace.fetch.request import Destination
from crawlspace.urls import registrable_domain

MAX_PAIR = 4096
"""Characters of a name with its value; a longer cookie is not kept."""
MAX_ATTRIBUTE = 1024
MAX_PER_SITE = 100
"""Cookies of one registrable domain; the oldest leaves first."""
MAX_KEPT = 16 << 20
"""Characters of all cookies; the site longest unused leaves first."""
MAX_SENT = 8192
"""Characters of a Cookie field."""
MAX_LINES = 100
"""Set-Cookie fields of one response that are read."""
LONGEST_MS = 400 * 86_400_000
"""No cookie is kept longer (RFC 6265bis, section 5.5)."""
_SESSION = 1 << 62
_COST = 200
"""What a cookie takes besides its texts."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_DELIMITERS = re.compile(r"[\x09\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?!\d)", re.ASCII)
_DAY = re.compile(r"(\d{1,2})(?!\d)", re.ASCII)
_YEAR = re.compile(r"(\d{2,4})(?!\d)", re.ASCII)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


class Cookie(Struct, frozen=True):
    """One cookie, and where it may go."""

    name: str
    value: str
    domain: str
    host_only: bool
    path: str
    secure: bool
    expires: int
    """Milliseconds since 1970 UTC."""
    scheme: str
    port: int
    order: int
    """When it was first set, among all."""

    @property
    def key(self) -> tuple[str, ...]:
        """What makes it the same cookie when it is set again; another scheme or port cannot replace it."""
        return self.name, self.domain, self.path, self.scheme, str(self.port) if self.host_only else ""

    @property
    def size(self) -> int:
        return len(self.name) + len(self.value) + len(self.domain) + len(self.path) + _COST

    def fits(self, to: Destination, path: str) -> bool:
        """Whether it may be sent there (RFC 6265, section 5.4, and the bounds of this module)."""
        origin = to.origin
        if origin.scheme != self.scheme or (self.host_only and origin.port != self.port):
            return False
        host = origin.host == self.domain or (not self.host_only and origin.host.endswith(f".{self.domain}"))
        return host and _path_fits(path, self.path)


_Site = dict[tuple[str, ...], Cookie]


class Jar:
    """The cookies of all sites, within bounds."""

    def __init__(self) -> None:
        self._sites: OrderedDict[str, _Site] = OrderedDict()
        self._size = 0
        self._order = 0

    def keep(self, lines: Iterable[str], source: Destination, now: int) -> None:
        """Read the Set-Cookie fields of an answer that came from there."""
        for line in list(lines)[:MAX_LINES]:
            self._order += 1
            cookie = read_cookie(line, source, now, self._order)
            if cookie is not None:
                self._put(cookie, registrable_domain(source.origin.host), now)

    def field(self, to: Destination, now: int) -> str:
        """The value of the Cookie field for a request there, or ""."""
        name = registrable_domain(to.origin.host)
        site = self._sites.get(name)
        if site is None:
            return ""
        self._sites.move_to_end(name)
        for key in [key for key, cookie in site.items() if cookie.expires <= now]:
            self._drop(site, key)
        path = to.target.partition("?")[0]
        fitting = [cookie for cookie in site.values() if cookie.fits(to, path)]
        fitting.sort(key=lambda cookie: (-len(cookie.path), cookie.order))
        return _joined(fitting)

    def _put(self, cookie: Cookie, name: str, now: int) -> None:
        site = self._sites.setdefault(name, {})
        self._sites.move_to_end(name)
        key = cookie.key
        before = site.get(key)
        if before is not None:
            self._drop(site, key)
        if cookie.expires > now:
            # One that is set again keeps its place in the order (RFC 6265, section 5.3, step 11).
            site[key] = cookie if before is None else replace(cookie, order=before.order)
            self._size += cookie.size
        if len(site) > MAX_PER_SITE:
            self._drop(site, min(site, key=lambda each: site[each].order))
        if not site:
            del self._sites[name]
        while self._size > MAX_KEPT:
            _, dropped = self._sites.popitem(last=False)
            self._size -= sum(each.size for each in dropped.values())

    def _drop(self, site: _Site, key: tuple[str, ...]) -> None:
        self._size -= site.pop(key).size


def read_cookie(line: str, source: Destination, now: int, order: int = 0) -> Cookie | None:
    """The cookie of one Set-Cookie field, or None for one that is not to be kept; an old date means: forget it."""
    if _CONTROL.search(line):
        return None
    pair, *rest = line.split(";")
    name, sign, value = pair.partition("=")
    name, value = name.strip(" \t"), value.strip(" \t")
    if not sign or not name or len(name) + len(value) > MAX_PAIR:
        return None
    attributes = _attributes(rest)
    origin = source.origin
    domain = _domain(attributes.get("domain", ""), origin.host)
    secure = "secure" in attributes
    if domain is None or (secure and origin.scheme != "https"):
        return None
    path = attributes.get("path", "")
    cookie = Cookie(
        name=name,
        value=value,
        domain=domain or origin.host,
        host_only=not domain,
        path=path if path.startswith("/") else _default_path(source.target),
        secure=secure,
        expires=_expiry(attributes, now),
        scheme=origin.scheme,
        port=origin.port,
        order=order,
    )
    return cookie if _keeps_its_prefix(cookie) else None


def read_date(text: str) -> int | None:
    """A cookie's date, in milliseconds since 1970 UTC, by the standard's lenient rules (RFC 6265, section 5.1.1)."""
    clock: tuple[int, ...] | None = None
    day = month = year = None
    for token in _DELIMITERS.split(text[:MAX_ATTRIBUTE]):
        if clock is None and (found := _TIME.match(token)):
            clock = tuple(map(int, found.groups()))
        elif day is None and (found := _DAY.match(token)):
            day = int(found[1])
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and (found := _YEAR.match(token)):
            year = int(found[1])
    if clock is None or day is None or month is None or year is None:
        return None
    if year < 100:
        year += 1900 if year >= 70 else 2000
    try:
        moment = datetime(year, month, day, *clock, tzinfo=UTC)  # type: ignore[arg-type,misc]  # three numbers
    except ValueError:
        return None
    return round(moment.timestamp()) * 1000 if year >= 1601 else None


def _attributes(pieces: Iterable[str]) -> Mapping[str, str]:
    """Attributes by name; of repeated ones the last stands, one that is too long does not count."""
    found: dict[str, str] = {}
    for piece in pieces:
        name, _, value = (text.strip(" \t") for text in piece.partition("="))
        name = name.lower()
        if len(value) <= MAX_ATTRIBUTE and (value or name != "domain"):
            found[name] = value
    return found


def _domain(wanted: str, host: str) -> str | None:
    """The domain that a host may set cookies for: "" for itself alone, None when it asks for too much."""
    domain = wanted.removeprefix(".").lower()
    if not domain:
        return ""
    site = registrable_domain(host)
    if site == host and registrable_domain(f"x.{host}") != host:
        # An address or a public suffix speaks for itself alone.
        return "" if domain == host else None
    within = f".{domain}".endswith(f".{site}") and f".{host}".endswith(f".{domain}")
    return domain if within else None


def _expiry(attributes: Mapping[str, str], now: int) -> int:
    age = attributes.get("max-age", "")
    if age and age.isascii() and age.removeprefix("-").isdigit():
        return now + min(int(age[:12]) * 1000, LONGEST_MS) if not age.startswith("-") else 0
    date = read_date(attributes["expires"]) if "expires" in attributes else None
    return _SESSION if date is None else min(date, now + LONGEST_MS)


def _keeps_its_prefix(cookie: Cookie) -> bool:
    """RFC 6265bis, section 4.1.3: a name can promise how the cookie was set."""
    if cookie.name.startswith("__Host-"):
        return cookie.secure and cookie.host_only and cookie.path == "/"
    return cookie.secure or not cookie.name.startswith("__Secure-")


def _default_path(target: str) -> str:
    return target.partition("?")[0].rpartition("/")[0] or "/"


def _path_fits(path: str, prefix: str) -> bool:
    return path == prefix or (path.startswith(prefix) and (prefix.endswith("/") or path[len(prefix)] == "/"))


def _joined(cookies: Iterable[Cookie]) -> str:
    text = ""
    for cookie in cookies:
        pair = f"{cookie.name}={cookie.value}"
        if len(text) + len(pair) + 2 > MAX_SENT:
            break
        text += f"; {pair}" if text else pair
    return text
