"""How deep the elements of a page can be open at once, told from its tags alone, without a tree. Pure.

A stack of the tags that were opened, from which one is taken only by its own end tag, and only from the top, is
never lower than the parser's stack of open elements: the parser closes more than that by itself (a paragraph where
a list begins, a list with all that is open in it), and never less, since whatever has its end tag at the top of this
stack is the current element of the parser, or below nothing but formatting elements, or closed already.

Left out are what the parser opens by itself (at most two elements a table, and three for the page), a leaf, and the
few parts of a drawing. There is no answer where a page has one of the odd parts of the language for which the above
is not so, and none where a tag may be text to the parser and a tag to us, or the other way round.

The cost is a quarter of a microsecond a tag.

Sources: HTML Standard, "tokenization", "the stack of open elements", "the rules for parsing tokens".
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

_BLANK: Final = rb"\t\n\f\r "
_NAME: Final = rb"[^" + _BLANK + rb"/>]*+"
_END_OF_NAME: Final = rb"(?=[" + _BLANK + rb"/>]|\Z)"
_VALUE: Final = (
    rb"[" + _BLANK + rb"]*+=[" + _BLANK + rb"]*+"
    rb"(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^" + _BLANK + rb">\"'][^" + _BLANK + rb">]*+|(?=>|\Z))"
)
_REST: Final = (
    rb"(?: [a-z-]++=\"[^\"]*+\")*+"  # the usual spelling first, which is told fastest
    rb"(?:>|(?:[" + _BLANK + rb"/]++|[^" + _BLANK + rb"/>][^" + _BLANK + rb"/>=]*+(?:" + _VALUE + rb")?+)*+(?:>|\Z))"
)
"""What follows a tag's name, as the tokenizer reads it; it always fits, so that no byte is looked at twice."""

_RAW_NAMES: Final = (b"script", b"style", b"title", b"textarea", b"xmp", b"iframe", b"noembed", b"noframes")
_RAW: Final = (
    rb"(?=[stxin])(?:"
    + b"|".join(
        name + _END_OF_NAME + _REST + rb"[^<]*+(?:<(?!/" + name + rb"[" + _BLANK + rb"/>])[^<]*+)*+"
        for name in _RAW_NAMES
    )
    + rb")"
)
"""An element whose content is text, up to the `<` of its end tag."""

_SHAPES: Final = (
    rb"(?:circle|clippath|defs|ellipse|g|line|lineargradient|mask|path|polygon|polyline|radialgradient|rect|stop|"
    rb"symbol|text|tspan|use)"
)
_PARTS: Final = 60
_DRAWING: Final = (
    rb"svg"
    + _END_OF_NAME
    + _REST
    + rb"(?:[^<]*+<(?:/?"
    + _SHAPES
    + _END_OF_NAME
    + _REST
    + rb"|title>[^<]*+</title>)){0,%d}+[^<]*+</svg" % _PARTS
    + _END_OF_NAME
    + _REST
)
"""A drawing of shapes only: nothing in it is HTML, so that its end closes all of it."""
_COMMENT: Final = rb"!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>|\Z))"
_LEAVES: Final = rb"(?:[^<]*+<span(?: (?:class|href|id)=\"[^\"<>]*+\")*+>[^<]*+</span>)*+"
"""The most frequent element where it holds but text, in the spelling of programs: half of the tags of some pages.

They are passed over together with the text before them and between.
"""
_NAMED: Final = rb"(/[a-z]" + _NAME + rb"|" + _RAW + rb"|[a-z]" + _NAME + rb")(?:(?!<)" + _REST + rb")?+"
_TAG: Final = _LEAVES + rb"[^<]*+(?:\Z|<(?:" + b"|".join((_DRAWING, _NAMED, _COMMENT, rb"[!?/][^>]*+")) + rb")?+)"
"""A tag with its name, or with all of its text as well; of comments, drawings and the like nothing is given.

With the text before it, so that no byte is looked at twice.
"""
_FIRST_NAME: Final = re.compile(_NAME)

_NEVER_OPEN: Final = frozenset(
    b"area base basefont bgsound body br col embed frame head hr html image img input keygen link meta param source "
    b"track wbr".split()
)
"""Elements without content, and those of which a page has one."""
_FORMATTING: Final = tuple(b"b big code em font i nobr s small strike strong tt u".split())
_UNTOLD: Final = frozenset(b"applet frameset marquee math object plaintext svg template".split())
"""Elements in which end tags, formatting or the tokenizer follow rules of their own."""
_BOTTOM: Final = 0
"""What no element has for its number."""
_LAST_FORMATTING: Final = len(_FORMATTING)
_NUMBERED: Final = {name: number for number, name in enumerate((*_FORMATTING, *_RAW_NAMES, b"form", b"select"), 1)}
_FORM: Final = _NUMBERED[b"form"]
_SELECT: Final = _NUMBERED[b"select"]
_DOES: Final = (
    {b"": 0}
    | {name: number for name, number in _NUMBERED.items() if name not in (*_RAW_NAMES, b"form")}
    | {b"/" + name: -number for name, number in _NUMBERED.items() if name != b"form"}
    | dict.fromkeys((name for name in _NEVER_OPEN), 0)
)
"""What tags do: a number opens that element, one below 0 ends it, 0 is nothing. Others are learned as they come."""


class Nesting(NamedTuple):
    """The most that is open at once."""

    depth: int
    """Elements of any kind."""
    formatting: int
    """Elements that the parser makes again where they were left open, `<b>` and its like.

    Links are not counted: the parser ends one where the next begins.
    """


class _Untold(Exception):
    """It cannot be told."""


def nesting(body: bytes, depth: int) -> Nesting | None:
    """How deep a page's elements are open at most; None when that is more than `depth`, or cannot be told."""
    try:
        return _measure(_tags().findall(body.lower()), depth)
    except _Untold:
        return None


@cache
def _tags() -> re.Pattern[bytes]:
    """Compiled when first asked for, since that takes 20 ms and most crawls meet no page that needs it."""
    return re.compile(_TAG)


def _measure(tags: list[bytes], limit: int) -> Nesting:
    does = _DOES.copy()
    stack = [_BOTTOM]
    top = _BOTTOM
    deepest = 1
    formatting = most_formatting = 0
    for tag in tags:
        number = does.get(tag)
        if number is None:
            number = _learn(tag, does, stack)
        if number > 0:
            stack.append(number)
            top = number
            if number <= _LAST_FORMATTING:
                formatting += 1
                most_formatting = max(formatting, most_formatting)
            if len(stack) > deepest:
                deepest = len(stack)
        elif number and number == -top:
            del stack[-1]
            top = stack[-1]
            if number >= -_LAST_FORMATTING:
                formatting -= 1
    if deepest > limit + 1:
        raise _Untold
    return Nesting(deepest - 1, most_formatting)


def _learn(tag: bytes, does: dict[bytes, int], stack: list[int]) -> int:
    """What a tag does that is not known; remembered unless it depends on the place."""
    if tag in (b"form", b"/form"):
        # The parser knows one form at a time, and forgets it at an end tag that does not close it.
        if _FORM in stack and (tag == b"form" or stack[-1] != _FORM):
            raise _Untold
        return _FORM if tag == b"form" else -_FORM
    if tag.startswith(b"/"):
        # Nothing that it could end was opened yet.
        return 0
    name = _FIRST_NAME.match(tag)[0]  # type: ignore[index]  # it fits the empty text too
    if name in _UNTOLD:
        raise _Untold
    if name in _RAW_NAMES:
        if _SELECT in stack or (b"<!--" in tag and b"<script" in tag):
            raise _Untold
        return _NUMBERED[name]
    number = len(does) + len(_NUMBERED)
    does[tag], does[b"/" + tag] = number, -number
    return number
