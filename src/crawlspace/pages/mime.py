"""What kind of thing an answer is: the Content-Type as browsers read it, and HTML known by its first bytes.

Several Content-Type lines count as one list, of which the last that can be read holds. A body is looked at only when
no type was given: a site that says `text/plain` means it.

Sources: MIME Sniffing Standard, "parsing a MIME type" and "identifying a resource with an unknown MIME type"; Fetch
Standard, "extract a MIME type".
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from crawlspace.exchange import Headers

HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
SNIFFED: Final = 1445
"""Bytes that may be looked at: the standard's own number."""

_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_ESSENCE: Final = re.compile(rf"[\t\n\r ]*({_TOKEN}/{_TOKEN})[\t\n\r ]*(?:;|\Z)")
_PARAMETER: Final = re.compile(r"[\t\n\r ]*([^;=]*)(?:=(?:\"((?:[^\"\\]|\\.)*\\?)[^;]*|([^;]*)))?(?:;|\Z)", re.S)
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")
_NAME: Final = re.compile(rf"{_TOKEN}\Z")
_LISTED: Final = re.compile(r"(?:[^\",]|\"(?:[^\"\\]|\\.)*(?:\"|\\?\Z))+", re.S)
_HTML_START: Final = re.compile(
    rb"[\t\n\f\r ]*<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|!--)[ >]",
    re.I,
)


class ContentType(NamedTuple):
    """A media type and its charset; both empty when there is none that can be read."""

    essence: str
    """In lower case, as `text/html`."""
    charset: str
    """The label as it stands there."""


def content_type(headers: Headers) -> ContentType:
    """The type that an answer declares."""
    return _content_type(", ".join(headers.all("content-type")))


@lru_cache(maxsize=256)
def _content_type(values: str) -> ContentType:
    """Asked several times of each answer, and nearly all answers have one of a few."""
    found = ContentType("", "")
    for value in _LISTED.findall(values):
        read = _parse(value)
        if read.essence in ("", "*/*"):
            continue
        same = read.essence == found.essence
        found = ContentType(read.essence, read.charset or (found.charset if same else ""))
    return found


def is_html(headers: Headers, body: bytes) -> bool:
    """Whether links can be read from it: declared as HTML or XHTML, or without a type and starting like HTML."""
    essence = content_type(headers).essence
    return essence in HTML if essence else looks_like_html(body)


def looks_like_html(body: bytes) -> bool:
    """Whether the first bytes are those of HTML."""
    return _HTML_START.match(body[:SNIFFED].removeprefix(b"\xef\xbb\xbf")) is not None


def _parse(value: str) -> ContentType:
    start = _ESSENCE.match(value)
    if start is None:
        return ContentType("", "")
    position = start.end()
    while position < len(value) and (parameter := _PARAMETER.match(value, position)):
        name, quoted, plain = parameter.groups()
        text = re.sub(r"\\(.)", r"\1", quoted, flags=re.S) if quoted is not None else (plain or "").rstrip("\t\n\r ")
        if name.lower() == "charset" and (text or quoted is not None) and _VALUE.match(text):
            return ContentType(start[1].lower(), text)
        position = parameter.end()
    return ContentType(start[1].lower(), "")
