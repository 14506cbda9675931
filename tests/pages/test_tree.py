"""No page costs more than its size allows, and pages that could are read all the same."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlspace.exchange import Headers
from crawlspace.pages.links import Page, read_page
from crawlspace.pages.tree import ATTRIBUTES_LIMIT, KEPT_LIMIT, READ_LIMIT, TAGS_LIMIT, may_cost_too_much

DATA = Path(__file__).parent.parent / "data" / "html-links"
HTML = Headers(((b"Content-Type", b"text/html; charset=utf-8"),))
LINK = b"<a href=/found>"
MANY = b"<wbr>" * (TAGS_LIMIT + 1) + b"<template>"
"""Makes any page one that is flattened: it has many tags, and one by which their nesting cannot be told."""


def read(body: bytes) -> Page:
    return read_page(body, "http://site.test/", HTML)


def numbered(pattern: bytes, count: int) -> bytes:
    return b"".join(pattern % number for number in range(count))


HOSTILE = {
    "a million nested elements": lambda: b"<div>" * 1_000_000 + LINK,
    "nested lists": lambda: b"<ul><li>" * 200_000 + LINK,
    "nesting behind end tags that end nothing": lambda: b"<div></b>" * 200_000 + LINK,
    "nesting hidden from those who count end tags": lambda: b"<div><!--</div>-->" * 100_000 + LINK,
    "nesting in a value of a script": lambda: (
        b"<script><a href='</script>" + b"<div>" * 300_000 + b"'></script>" + LINK
    ),
    "nested frame sets": lambda: b"<frameset>" * 40_000 + b"<frame src=/found>",
    "a million attributes": lambda: b"<a href=/found " + numbered(b"a%d=1 ", 1_000_000) + b">",
    "a million attributes without an end": lambda: LINK + b"<a " + numbered(b"a%d=1 ", 1_000_000),
    "attributes with quoted ends of tags": lambda: b"<a href=/found " + numbered(b'a%d=">" ', 300_000) + b">",
    "attributes with tags in them": lambda: b"<a href=/found " + numbered(b'a%d=">" <b c', 100_000) + b">",
    "open elements that every block makes again": lambda: (
        b"<p>" + numbered(b"<font a=%d>", 3000) + b"</p>" + b"<p>x</p>" * 3000 + LINK
    ),
    "open elements with a trick in their quotes": lambda: (
        b"<p>" + numbered(b'<font "a=">%d">', 3000) + b"</p>" + b"<p>x</p>" * 3000 + LINK
    ),
    "a text of fifty megabytes": lambda: b"x" * 50_000_000 + LINK,
    "comments": lambda: b"<!--" * 500_000 + b"-->" + LINK,
    "nothing but less-than signs": lambda: b"<" * 3_000_000 + b" " + LINK,
    "the same link half a million times": lambda: LINK * 500_000,
}
"""Made when they are asked for: together they are two hundred megabytes."""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_page_is_read_in_time_that_grows_with_its_size(make: Callable[[], bytes]) -> None:
    """Ten seconds of CPU are a hundred times what is needed, and far less than what a plain parser takes."""
    body = make()
    start = time.process_time()
    page = read(body)
    assert time.process_time() - start < 10
    assert [link.url for link in page.links] == ["/found"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<div>" * TAGS_LIMIT, False),
        (b"<div>" * (TAGS_LIMIT + 1), True),
        (b"<div><p>x</p></div>" * TAGS_LIMIT, False),
        (b"<div><p>x</div>" * TAGS_LIMIT, True),
        (b"<b><p>x</p>" * 40 + b"<p>x</p>" * 15_000, True),
        (b"<p>" * 40 + b"<p>x</p>" * 15_000, False),
        (b"<br>" * READ_LIMIT, False),
        (b"<br>" * (READ_LIMIT + 1), True),
        (b"<a " + b"x " * (ATTRIBUTES_LIMIT // 2 - 2) + b">", False),
        (b"<a " + b"x " * ATTRIBUTES_LIMIT + b">", True),
        (b"<p>" + b"x" * ATTRIBUTES_LIMIT + b"</p>", True),
        (b"<a " + b"x " * ATTRIBUTES_LIMIT + b"y='" + b"<p>'>" * 30_000, True),
        (b"<a " + b"x='>' " * ATTRIBUTES_LIMIT + b">", True),
        (b"<a " + b'x=">\'=" ' * ATTRIBUTES_LIMIT + b">", True),
        (b"<a title='" + b"<p>some text</p>\n" * 7_000 + b"'>", False),
        (b'<p title=a>It\'s > "this" = that</p>\n' * 3_000, False),
        (b"<p title='>'>some text</p>\n" * 3000, False),
        (b"<p>some text</p>\n" * 3900, False),
        (b"<p>" + b"<i class=a>" * 1000 + b"</p>" + b"<p>x</p>" * 1000, False),
        (b"<p>" + numbered(b"<i class=a%d>", 1000) + b"</p>" + b"<p>x</p>" * 1000, True),
        (b"<p>" + b"<i class=a'b>" * 1000 + b"</p>" + b"<p>x</p>" * 1000, True),
        (b"<p>" + numbered(b"<i class=a%d>", 1000) + b"</p>", False),
        (b"<input>" * 3000, False),
    ],
)
def test_only_pages_beyond_a_bound_are_flattened(body: bytes, expected: bool) -> None:
    assert may_cost_too_much(body) is expected


@pytest.mark.parametrize(
    "row",
    [row for row in json.loads((DATA / "pages.json").read_text()) if "html" in row],
    ids=lambda row: str(row["id"]),
)
def test_a_flattened_page_says_what_the_page_says(row: dict[str, str]) -> None:
    body = row["html"].encode()
    assert read(body + MANY) == read(body)


@pytest.mark.parametrize(
    ("body", "links"),
    [
        (b'<A CLASS=c HREF="/x?a=1&amp;b=2">', ["/x?a=1&b=2"]),
        (b"<a href='/q\"uote'>", ['/q"uote']),
        (b"<a href='/b' href='/c'>", ["/b"]),
        (b"<a href='/lost<'><a href=/kept>", ["/kept"]),
        (b"<script>if (a<b && c>d) '<a href=/no>'</script><a href=/x>", ["/x"]),
        (b"<style><a href=/no></style><textarea><a href=/no></textarea><!-- <a href=/no> --><a href=/x>", ["/x"]),
        (b"<base href=/b/><iframe src=/f></iframe><link rel=next href=/n>", ["/f", "/n"]),
    ],
)
def test_flattening_keeps_what_links_are_made_of(body: bytes, links: list[str]) -> None:
    assert [link.url for link in read(body + MANY).links] == links


def test_a_flattened_page_keeps_its_title_and_declarations() -> None:
    page = read(b"<html lang=de><title>A &amp; b</title><meta name=robots content=none>" + MANY)
    assert (page.title, page.language, page.noindex) == ("A & b", "de", True)


def test_a_flattened_page_that_loses_tags_says_so() -> None:
    assert not read(b"<base>" * KEPT_LIMIT + b"<template>").links_cut
    assert read(b"<base>" * KEPT_LIMIT + b"<template>" + LINK).links_cut
