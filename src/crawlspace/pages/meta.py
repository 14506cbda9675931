"""What a page says about itself to crawlers: refresh, and the robots directives of meta elements and headers.

Everything is read leniently, as browsers and the large crawlers do, and nothing here decides what is obeyed.

Sources: HTML Standard, "shared declarative refresh steps"; RFC 8288 (Link header); the robots meta tag and the
X-Robots-Tag header as their inventors document them; the W3C community group's TDM Reservation Protocol.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from crawlspace.exchange import Headers

_REFRESH: Final = re.compile(
    r"[\t\n\f\r ]*([0-9]+|(?=\.))[0-9.]*"
    r"(?:[\t\n\f\r ]*\Z|(?:[\t\n\f\r ]*[;,]|[\t\n\f\r ])[\t\n\f\r ]*(.*))",
    re.S,
)
_REFRESH_URL: Final = re.compile(r"url[\t\n\f\r ]*=[\t\n\f\r ]*", re.I)
_AGENT: Final = re.compile(r"[\t ]*([A-Za-z0-9_\-*]+)[\t ]*:(.*)", re.S)
_WITH_VALUES: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_LINK: Final = re.compile(r"<([^<>]*)>((?:[^<>\",]|\"[^\"]*\")*)")
_REL: Final = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", re.I)


class Refresh(NamedTuple):
    """A declarative refresh."""

    delay: int
    """Seconds."""
    target: str
    """Where to, as text; empty when the page reloads itself."""


class Directives(NamedTuple):
    """What robots directives come to."""

    noindex: bool = False
    nofollow: bool = False
    noai: bool = False
    """Not to be used for training models."""
    noimageai: bool = False
    """Nor its pictures."""


class Reservation(NamedTuple):
    """What a page says of text and data mining (TDM Reservation Protocol)."""

    reserved: bool | None = None
    """Whether the rights are reserved; None when nothing is said."""
    policy: str = ""
    """Address of the terms under which it may be mined."""


NOTHING_SAID: Final = Reservation()
NO_DIRECTIVES: Final = Directives()


def read_refresh(text: str) -> Refresh | None:
    """The refresh that a content attribute or a Refresh header declares; None when it declares none."""
    found = _REFRESH.match(text)
    if found is None:
        return None
    delay = int((found[1] or "0")[:9])
    rest = found[2] or ""
    prefix = _REFRESH_URL.match(rest)
    if prefix:
        rest = rest[prefix.end() :]
    if rest[:1] in ("'", '"'):
        rest = rest[1:].partition(rest[0])[0]
    return Refresh(delay, rest)


def read_directives(texts: Iterable[str], product: str) -> Directives:
    """The directives in these texts that are meant for all crawlers or for `product`.

    A text is a list such as `noindex, nofollow`; behind a name and a colon it is meant for that crawler alone, up
    to the next name.
    """
    words: set[str] = set()
    for text in texts:
        ours = True
        for part in text.split(","):
            named = _AGENT.match(part)
            if named and named[1].lower() not in _WITH_VALUES:
                ours = named[1].lower() in (product.lower(), "*")
                part = named[2]
            if ours:
                words.add(part.strip().lower())
    none = "none" in words
    return Directives(none or "noindex" in words, none or "nofollow" in words, "noai" in words, "noimageai" in words)


def read_reservation(reserved: Iterable[str], policies: Iterable[str]) -> Reservation:
    """What values of `tdm-reservation` and `tdm-policy` come to; the first of each that says something holds."""
    said = next((text.strip() for text in reserved if text.strip() in ("0", "1")), None)
    policy = next((text.strip() for text in policies if text.strip()), "")
    return Reservation(None if said is None else said == "1", policy)


def header_links(headers: Headers, relation: str) -> list[str]:
    """Targets of the Link headers with this relation, as text (RFC 8288)."""
    targets: list[str] = []
    for value in headers.all("link"):
        for target, parameters in _LINK.findall(value):
            rel = _REL.search(parameters)
            if rel and relation in (rel[1] or rel[2]).lower().split():
                targets.append(target)
    return targets
