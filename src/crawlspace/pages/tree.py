"""The tree of a page, built by lexbor, at a cost that stays near its size whatever the page holds.

Three things make a tree cost far more than its page. Depth costs time with its square: half a megabyte of `<div>`
keeps the parser busy for half a minute, ten megabytes for hours, and nothing can interrupt it. So do the attributes
of one tag. And elements such as `<font>` that are left open are made again in every block that follows: fifty
kilobytes can become gigabytes. A page that could be such a one, by bounds that no trick evades, is flattened first:
tags that say nothing of links are dropped, the others keep the few attributes that are read. Other pages, which is
nearly all, are parsed as they are.

The bounds are cheap counts; only a page beyond them has its tags read one by one, which clears the large pages of
careful authors.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser

from crawlspace.pages.nesting import nesting

TAGS_LIMIT: Final = 12_000
"""A page with no more `<` than this may be nested as it likes: a quarter of a second."""
ATTRIBUTES_LIMIT: Final = 65_536
"""Bytes of attributes that one tag may have: sixteen thousand names, half a second."""
STEPS_LIMIT: Final = 72_000_000
"""Tags times the depth of their nesting: what `TAGS_LIMIT` costs at its worst."""
READ_LIMIT: Final = 250_000
"""Tags of a page above which its nesting is not looked at: 15 MB of memory, a tenth of a second."""
COPIES_LIMIT: Final = 1_000_000
"""Elements that the parser may make again by itself: 300 MB."""
KEPT_LIMIT: Final = 50_000
"""Tags that a flattened page keeps."""

_STRIDE: Final = ATTRIBUTES_LIMIT // 2
_EQUAL_COPIES: Final = 3
"""How many equal elements are made again (HTML Standard, "the list of active formatting elements")."""

_RAW: Final = frozenset({"script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "plaintext"})
_KEPT: Final = _RAW | {
    *("a", "area", "base", "body", "embed", "frame", "frameset", "html", "img", "link", "meta", "source")
}
_CLOSED: Final = frozenset(f"/{name}" for name in _RAW | {"a", "frameset"})
_READ: Final = frozenset({"background", "content", "href", "http-equiv", "lang", "name", "rel", "src", "srcset"})

_QUOTED_END: Final = re.compile(rb"=[\t\n\f\r ]*(?:\"[^\">]*>|'[^'>]*>)")
_VALUE: Final = rb"[\t\n\f\r ]*+(?:\"[^\"]*+\"|'[^']*+'|[^\t\n\f\r >\"'][^\t\n\f\r >]*+|(?=>))"
_MAYBE_VALUE: Final = rb"(?:[\t\n\f\r ]*+=" + _VALUE + rb"|(?![\t\n\f\r ]*+=))"
_TO_END: Final = rb"(?:[\t\n\f\r /]++|[^\t\n\f\r />][^\t\n\f\r />=]*+" + _MAYBE_VALUE + rb")*+>"
_FROM_WITHIN: Final = [
    *(re.compile(state + _TO_END) for state in (b"", _MAYBE_VALUE, _VALUE, rb"[^\t\n\f\r >]*+")),
    *(re.compile(rb"[^%s]*+(?:\Z|%s" % (quote, quote) + _TO_END + rb")") for quote in (b'"', b"'")),
]
"""The rest of a tag from each state of the tokenizer: before an attribute, after its name, before or in its value.

A value in quotes may go on to the end, since a value, unlike a name, costs nothing.
"""
_FORMATTING: Final = re.compile(
    rb"<(?=[bceifnstuBCEIFNSTU])(?=(?i:[bisu]|big|code|em|font|nobr|small|strike|strong|tt)[\t\n\f\r /])"
    rb"([A-Za-z]++(?:[\t\n\f\r /]++[^\t\n\f\r /<>\"'=]++"
    rb"(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"[^\"<>]*+\"|'[^'<>]*+'|[^\t\n\f\r \"'<>=]++))?)*+[\t\n\f\r /]*+>)?"
)
"""Tags of formatting elements with attributes; of those that are not plainly spelled nothing is given.

The first letter is looked at first, without regard to case by itself: most tags are done with it.
"""
_REST: Final = rb"(?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+'|[\"'])*"
_TAG: Final = re.compile(rb"<(/?[A-Za-z][^\t\n\f\r />]*+)(" + _REST + rb")>?")
_IDLE: Final = re.compile(
    rb"<(?!/?(?i:" + "|".join(sorted(_KEPT)).encode() + rb")[\t\n\f\r />])/?[A-Za-z]" + _REST + rb">?"
)
"""Tags that are dropped, told in one go since they are most."""
_ATTRIBUTE: Final = re.compile(
    rb"([^\t\n\f\r />=][^\t\n\f\r />=]*+)[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\t\n\f\r >\"']++))"
)


class Tree(NamedTuple):
    """A parsed page."""

    document: LexborHTMLParser
    cut: bool = False
    """Tags behind the limit were left out."""
    charset: str = ""
    """The page's encoding, where it is known already."""


def parse(body: bytes, charset: str = "", *, bounded: bool = True) -> Tree:
    """The tree of a page that was brought to UTF-8 from `charset`.

    `bounded=False` is for who can bear a parser that does not end.
    """
    if not bounded or not may_cost_too_much(body):
        return Tree(LexborHTMLParser(body), False, charset)
    flattening = _Flattening()
    flat = _TAG.sub(flattening.tag, _IDLE.sub(b" ", body))
    return Tree(LexborHTMLParser(flat), flattening.kept > KEPT_LIMIT, charset)


def may_cost_too_much(body: bytes) -> bool:
    """Whether parsing could take much longer than the size of the page says. False is certain, True is not."""
    tags = body.count(b"<")
    if _many_attributes(body):
        return True
    return (tags > TAGS_LIMIT or _many_copies(body, tags)) and _nested(body, tags)


def _nested(body: bytes, tags: int) -> bool:
    """Whether a page with many tags has many of them open at once too, or may have."""
    found = nesting(body, STEPS_LIMIT // tags) if tags <= READ_LIMIT else None
    return found is None or tags * found.formatting > COPIES_LIMIT


def _many_attributes(body: bytes) -> bool:
    """Whether a tag could be too long.

    Such a tag goes through a whole stride that is not all value. Most pages are cleared by that: no stride of theirs
    could be one, whatever the state of the tokenizer at its start. For the others: a tag ends at the first `>`
    outside quotes, so its attributes lie between those within its quotes, and take no more than (quoted `>` of the
    page + 1) times the longest run without any `>`.
    """
    if all(_ends_within(body, start) for start in range(_STRIDE, len(body) - _STRIDE + 1, _STRIDE)):
        return False
    quoted = sum(1 for _ in _QUOTED_END.finditer(body))
    return (quoted + 1) * max(map(len, body.split(b">"))) > ATTRIBUTES_LIMIT


def _ends_within(body: bytes, start: int) -> bool:
    return all(state.match(body, start, start + _STRIDE) for state in _FROM_WITHIN)


def _many_copies(body: bytes, tags: int) -> bool:
    """Every element that is left open may be made again at every tag.

    Equal ones count up to three times; those that are not plainly spelled count as all different.
    """
    if (tags // 2) ** 2 <= COPIES_LIMIT:
        return False
    found: list[bytes] = _FORMATTING.findall(body)
    odd = found.count(b"")
    return tags * (odd + _EQUAL_COPIES * len(set(found))) > COPIES_LIMIT


class _Flattening:
    """Drops the tags that say nothing of links, and what is not read of the others.

    What is left cannot be nested, save in frame sets, which cost nothing. A tag that only seems to be one, inside a
    quoted value of another, is taken for one; a value with a `<` is lost.
    """

    def __init__(self) -> None:
        self.kept = 0

    def tag(self, found: re.Match[bytes]) -> bytes:
        """What is left of a tag."""
        name = found[1].decode("latin-1").lower()
        if name in _CLOSED:
            return b"<%s>" % found[1]
        if name not in _KEPT:
            return b" "
        self.kept += 1
        if self.kept > KEPT_LIMIT:
            return b" "
        return b"<%s%s>" % (found[1], b"".join(_attributes(found[2])))


def _attributes(text: bytes) -> list[bytes]:
    """The attributes that are read, spelled so that they mean the same in any quotes."""
    kept: dict[str, bytes] = {}
    for found in _ATTRIBUTE.finditer(text):
        name = found[1].decode("latin-1").lower()
        if name in _READ and name not in kept:
            value = b"".join(found.groups(b"")[1:])
            kept[name] = b' %s="%s"' % (found[1], value.replace(b"<", b"&lt;").replace(b'"', b"&quot;"))
    return list(kept.values())
