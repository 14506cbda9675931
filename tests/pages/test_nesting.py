"""The nesting that is told of a page is never less than the parser's."""

from __future__ import annotations

import random
import time

import pytest
from selectolax.lexbor import LexborHTMLParser

from crawlspace.pages.nesting import Nesting, nesting

NO_LIMIT = 10**9

TOLD = [
    (b"", (0, 0)),
    (b"just text < and > </", (0, 0)),
    (b"<p>a<p>b", (2, 0)),
    (b"<div><p>a</p><p>b</p></div>", (2, 0)),
    (b"<DIV><p>a</P></diV><div></div>", (2, 0)),
    (b"<div></p></p><div>", (2, 0)),
    (b"<!doctype html><html><head><meta charset=utf-8></head><body><br><img></body></html>", (0, 0)),
    (b"<p><b><i>x</i></b><a href=/x><b>y</b></a></p>", (3, 2)),
    (b"<b></b>" * 9, (1, 1)),
    (b"<b><p></b></p>" * 9, (10, 9)),
    (b"<div title='</div>'><div title=\"<div>\"><div title=</div><div a='b'c=d>", (4, 0)),
    (b"<div a = '>' b = >x</div>" * 9, (1, 0)),
    (b"<div><!-- </div> --><div><!--></div><!---></div><!-- <!-- </div> --!></div>", (2, 0)),
    (b"<div><!x </div> ><?x </div> ></ </div> ></div>" * 9, (1, 0)),
    (b"<div><script>'</div>' a<b </scripting></script></div>" * 9, (2, 0)),
    (b"<div><style></div></style><title></div></title><textarea></div></textarea></div>" * 9, (2, 0)),
    (b"<script><!-- x --></script>" * 9, (1, 0)),
    (b"<div><span class=\"a\">x</span><span title='a'>x</span></div>" * 9, (2, 0)),
    (b"<svg viewBox='0'><title>x</title><g><path d='M0'/><path d='M1'></path></g></svg>" * 9, (0, 0)),
    (b"<form><input><select><option>a</option></select></form>" * 9, (3, 0)),
    (b"</form><form></form>", (1, 0)),
    (b"<table><tr><td><b>x</b></td></tr></table>" * 9, (4, 1)),
    (b"<div a='", (1, 0)),
    (b"<div><!-- ", (1, 0)),
]
NOT_TOLD = [
    b"<template>",
    b"<svg><p></svg>",
    b"<svg>" + b"<g>" * 61 + b"</svg>",
    b"<math><mi>x</mi></math>",
    b"<object><applet>",
    b"<form><form>",
    b"<form><p></form>",
    b"<select><style>",
    b"<script><!--<script></script>",
    b"<frameset><plaintext>",
]


@pytest.mark.parametrize(("page", "expected"), TOLD)
def test_only_what_its_own_end_tag_closes_counts_as_closed(page: bytes, expected: tuple[int, int]) -> None:
    assert nesting(page, NO_LIMIT) == Nesting(*expected)


@pytest.mark.parametrize("page", NOT_TOLD)
def test_where_rules_of_their_own_hold_nothing_is_told(page: bytes) -> None:
    assert nesting(page, NO_LIMIT) is None


def test_nesting_beyond_the_limit_is_not_told() -> None:
    assert nesting(b"<div>" * 10, 10) == Nesting(10, 0)
    assert nesting(b"<div>" * 11, 10) is None


# -- against the parser -------------------------------------------------------------------------------------

NAMES = [
    *(
        "div",
        "p",
        "span",
        "b",
        "i",
        "a",
        "font",
        "nobr",
        "code",
        "li",
        "ul",
        "dl",
        "dd",
        "table",
        "tr",
        "td",
        "caption",
    ),
    *(
        "colgroup",
        "col",
        "form",
        "select",
        "option",
        "button",
        "h1",
        "br",
        "input",
        "script",
        "style",
        "title",
        "xmp",
    ),
    *(
        "textarea",
        "iframe",
        "noscript",
        "svg",
        "path",
        "g",
        "math",
        "mi",
        "foreignobject",
        "desc",
        "template",
        "object",
    ),
    *("frameset", "noframes", "head", "body", "x-y", "ruby", "rt", "listing", "image", "plaintext"),
]
TABLES = (b"<t", b"<c")
PIECES = [
    *(
        "x",
        "x",
        "x",
        " ",
        "<",
        "</",
        "<!--",
        "-->",
        "<!-->",
        "<![CDATA[",
        "]]>",
        "<!",
        "<?",
        '"',
        "'",
        ">",
        "/>",
        "\0",
    ),
    *("<!--<script>", "</script>", "</style>", "</title>", '<a b="', "<a b='", '="'),
]
ATTRIBUTES = [
    *([""] * 8),
    *(" a", " a=b", " a='b'", ' a="b"', " /", "'/", ' a="<div>"', ' a="</div>"', " a='>'", ' "a=">"', ' a=b"', "\n"),
    *(" color=red", " a = 'b'", " type=hidden"),
]


def random_tags(chance: random.Random, names: list[str], most: int) -> str:
    pieces = []
    for _ in range(chance.randint(0, most)):
        kind = chance.random()
        if kind < 0.45:
            pieces.append(f"<{chance.choice(names)}{chance.choice(ATTRIBUTES)}>")
        elif kind < 0.85:
            pieces.append(f"</{chance.choice(names)}>")
        else:
            pieces.append(chance.choice(PIECES))
    return "".join(pieces)


def depth(page: bytes) -> int:
    """Of the tree that the parser makes."""
    deepest = 0
    waiting = [(LexborHTMLParser(page).root, 1)]
    while waiting:
        node, place = waiting.pop()
        deepest = max(deepest, place)
        child = node.child if node is not None else None
        while child is not None:
            waiting.append((child, place + 1))
            child = child.next
    return deepest


@pytest.mark.parametrize("seed", range(10))
def test_the_parser_never_nests_deeper_than_was_told(seed: int) -> None:
    """Few names and many repeats: what one round leaves open that was not told of shows forty times."""
    chance = random.Random(seed)
    told = 0
    for _ in range(400):
        names = chance.sample(NAMES, chance.randint(2, 8))
        start, again = random_tags(chance, names, 6), random_tags(chance, names, 14)
        page = (start + again * chance.choice([1, 5, 40]) + random_tags(chance, names, 4)).encode()
        found = nesting(page, NO_LIMIT)
        if found is not None:
            told += 1
            implied = 2 * found.depth if any(table in page for table in TABLES) else 0
            drawing = 60 if b"svg" in page else 0
            assert depth(page) <= found.depth + implied + drawing + 4, page
    assert told > 200


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "page",
    [
        b"<a " * 300_000,
        b"<a b='" * 300_000,
        b"<svg><g a='" * 100_000,
        b"<svg>" + b"<g>" * 50 + b"<svg>" * 200_000,
        b"<script" * 300_000,
        b"<!--" * 300_000,
        b'<span class="' * 300_000,
        b"<p =" * 300_000,
        b"<" * 2_000_000,
    ],
)
def test_the_cost_grows_with_the_size_alone(page: bytes) -> None:
    start = time.process_time()
    nesting(page, 100)
    assert time.process_time() - start < 5
