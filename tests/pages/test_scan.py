"""A scan of a page: what it finds, the same compiled and in Python, and as the page's tree has it."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlspace.exchange import Headers
from crawlspace.pages import links, scan, scanning
from crawlspace.pages.source import Source

try:
    from crawlspace.pages import _scan as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]

DOCUMENTATION = Path("/usr/share/doc")
Scanner = Callable[[bytes, int, bool], Any]
SCANNERS = [scanning.scan, *([compiled.scan] if compiled else [])]
BOTH = pytest.mark.parametrize("scanner", SCANNERS, ids=["python", "compiled"][: len(SCANNERS)])
needs_compiler = pytest.mark.skipif(compiled is None, reason="the compiled reader was not built here")


def read(scanner: Scanner, markup: str, most: int = 100) -> scanning.Scan:
    return scanning.Scan(*scanner(markup.encode(), most, True))


def text_of(scanner: Scanner, markup: str) -> str:
    return (read(scanner, markup).text or b"").decode()


# -- text -----------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("one<b>two</b>three", "one two three"),
        (" a \t\n b\u00a0\u00a0c&nbsp;d&#160;e&#32;f ", "a b c d e f"),
        ("a<!-- b -->c<!---->d<!-->e<!--->f<!-- g --!>h<!-- -- - > i", "a c d e f h"),
        ("a<!doctype b>c<?d e>f</ g>h</>i<![CDATA[j]]>k", "a c f h i k"),
        ("a < b <3 </", "a < b <3 </"),
        ("a<b", "a"),
        ("a<b c='>", "a"),
        ("a<b c=\"<p>\">d<b c='>'>e<b c=>f<b =>g", "a d e f g"),
        ("<title>T &amp; <b></title>u", "T & <b> u"),
        ("a<script>b</script>c<style>d</style>e<template>f<template></template>g</template>h", "a c e h"),
        ("</template>a</svg>b</select>", "a b"),
        ("<textarea>a &lt;</textarea><xmp>b &lt;</xmp>", "a < b &lt;"),
        ("<iframe>a</iframe><noembed>b</noembed><noframes>c</noframes>d<noscript>e</noscript>", "d e"),
        ("<plaintext>a <b> &lt;", "a <b> &lt;"),
        ("<script>a</scriptx></script", ""),
        ("<script><!-- <script> </script> --></script>a", "a"),
        ("<script><!-- <script> </script> </script>a", "a"),
        ("<script><!-- <script> <!-- --></script>a", "a"),
        ("<script><!--></script>a", "a"),
        ("<script><script></script>a", "a"),
        ("<STYLE>a</sTyLe >b</STYLE/>c", "b c"),
        ("\ufeffx", "\ufeffx"),
        ("", ""),
    ],
)
def test_the_text_is_what_stands_outside_of_markup(scanner: Scanner, markup: str, text: str) -> None:
    assert text_of(scanner, markup) == text


@BOTH
@pytest.mark.parametrize(
    ("markup", "text", "value"),
    [
        ("&amp;&lt;&eacute;&nGt;", "&<é≫⃒", "&<é≫⃒"),
        ("&copy2", "©2", "&copy2"),
        ("&copy=", "©=", "&copy="),
        ("&copy;=", "©=", "©="),
        ("&copyé", "©é", "©é"),
        ("&notit;&notin;", "¬it;∉", "&notit;∉"),
        ("&nosuch;&;&", "&nosuch;&;&", "&nosuch;&;&"),
        ("&" + "a" * 40 + ";", "&" + "a" * 40 + ";", "&" + "a" * 40 + ";"),
        ("&#65;&#x42&#X43;&#;&#x;&#xg", "ABC&#;&#x;&#xg", "ABC&#;&#x;&#xg"),
        ("&#0;&#xD800;&#x110000;&#99999999999999999999;", "\ufffd" * 4, "\ufffd" * 4),
        ("&#x80;&#x81;&#x9F;", "€\x81Ÿ", "€\x81Ÿ"),
    ],
)
def test_character_references_are_read_as_browsers_read_them(
    scanner: Scanner, markup: str, text: str, value: str
) -> None:
    """In an attribute, names without their semicolon are left alone before letters, digits and `=`."""
    assert text_of(scanner, markup) == text
    assert read(scanner, f'<a href="{markup}">').events == [(value.partition("#")[0], False)]


# -- links and declarations -----------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("markup", "events"),
    [
        ("<a href=x><area href=' y '><A\nHREF = 'z#f' >", [("x", False), ("y", False), ("z", False)]),
        ("<a href=x rel=nofollow><a href=x rel=nofollow>", [("x", True)]),
        ("<a href=x rel=nofollow><a href=x><a href=x rel=nofollow>", [("x", False)]),
        ("<a href=x rel='a NoFollow&#32;b' rel=c>", [("x", True)]),
        ("<a href=1 href=2><a><a name=3>", [("1", False)]),
        ("<a href='a\r\nb\rc'>", [("a\nb\nc", False)]),
        (
            "<a href=mailto:a><a href=tel:1><a href=HTTPS:x><a href=a.b:c><a href='a b:c'>",
            [("HTTPS:x", False), ("a b:c", False)],
        ),
        ("<a xlink:href=x><svg><a xlink:href=y><a href=z xlink:href=w></svg>", [("y", False), ("z", False)]),
        ("<abbr href=x><aside href=x><article href=x>", []),
        (
            "<base href=x><base><link href=y rel=a rel=b hreflang=c type=d id=e>",
            [("base", {"href": "x"}, True), ("link", {"href": "y", "rel": "a", "hreflang": "c", "type": "d"}, True)],
        ),
        (
            "<meta content><meta name=a><iframe></iframe><iframe src=x>",
            [("meta", {"content": ""}, True), ("iframe", {"src": "x"}, False)],
        ),
        (
            "<head></head> <link href=x>y<link href=z>",
            [("link", {"href": "x"}, True), ("link", {"href": "z"}, False)],
        ),
        (
            "<noscript><link href=x></noscript><p><meta content=y>",
            [("link", {"href": "x"}, True), ("meta", {"content": "y"}, False)],
        ),
        ("<link href=x", []),
        ("<a href=x", []),
        ("<a href='x", []),
        ("<a href=", []),
        ("<a href", []),
        ("<html lang=x", []),
    ],
)
def test_links_and_declarations_come_in_their_order(scanner: Scanner, markup: str, events: list[Any]) -> None:
    assert read(scanner, markup).events == events


@BOTH
def test_the_first_title_that_is_none_of_a_drawing_and_the_first_language(scanner: Scanner) -> None:
    found = read(
        scanner, "<html><html LANG='a'><html lang=b><svg><title>c</title></svg><title> d\r\n </title><title>e"
    )
    assert (found.title, found.language, found.odd) == (" d\n ", "a", False)
    assert read(scanner, "").title is read(scanner, "").language is None


@BOTH
def test_no_more_links_and_declarations_are_taken_than_may_be(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    anchors = "".join(f"<a href={number}><a href={number}>" for number in range(9))
    assert [address for address, _ in read(scanner, anchors, 3).events] == ["0", "1", "2", "3"]
    found = read(scanner, "<meta content=a>" * (scanning.DECLARATIONS_LIMIT + 1))
    assert (len(found.events), found.cut) == (scanning.DECLARATIONS_LIMIT, True)
    assert not read(scanner, anchors).cut


@BOTH
@pytest.mark.parametrize(
    "markup",
    [
        *("<template>", "<plaintext>", "<frameset>", "<frame>", "<noframes>", "<svg><html lang=a>", "<svg><title>"),
        *(
            "<select><a href=x>",
            "<select><style>",
            "<select><option><link href=x>",
            "<svg><![CDATA[",
            "<math><style><",
        ),
        "<svg><math></math><script><b></script>",
    ],
)
def test_a_page_in_which_a_tag_may_not_be_what_it_seems_is_odd(scanner: Scanner, markup: str) -> None:
    assert read(scanner, markup).odd


@BOTH
@pytest.mark.parametrize(
    "markup",
    [
        *(
            "<select><option></select><a href=x>",
            "<select><input><a href=x>",
            "<select><textarea></textarea><a href=x>",
        ),
        *(
            "<select><select><a href=x>",
            "<select><script>a</script><hr>",
            "<svg><style>a</style></svg><script><b></script>",
        ),
        *("<svg/><script><b></script>", "<svg a=b/ /><style><", "<![CDATA[", "<svg a=b></svg><math></math><html>"),
    ],
)
def test_other_pages_are_not(scanner: Scanner, markup: str) -> None:
    assert not read(scanner, markup).odd


@BOTH
def test_a_tag_closes_itself_by_its_last_slash_only(scanner: Scanner) -> None:
    assert read(scanner, "<svg a=b/><![CDATA[").odd
    assert not read(scanner, "<svg a=b /><![CDATA[").odd
    assert not read(scanner, "<svg/><math/><![CDATA[").odd


# -- whatever it is given -------------------------------------------------------------------------------------

PIECES = (
    *("<", ">", "</", "/", "=", '"', "'", " ", "\n", "\r", "\x0b", "\x0c", "a", "A", "-", "--", "!", "?", ";", "#"),
    *(
        "<a href=",
        "<a ",
        "href",
        "rel",
        "nofollow",
        "xlink:href=x",
        "<area href=",
        "http:",
        "mailto:",
        "<base href=z>",
    ),
    *("<script>", "</script>", "<SCRIPT", "</SCRIPT ", "<!--", "-->", "<style>", "</style>", "<title>", "</title>"),
    *("<textarea>", "</textarea>", "<xmp>", "</xmp>", "<iframe src=q>", "</iframe>", "<noframes>", "<plaintext>"),
    *("<svg>", "</svg>", "<svg/>", "<math", "</math>", "<![CDATA[", "]]>", "<select>", "</select>", "<input>"),
    *("<template>", "</template>", "<meta name=a content=b>", "<link rel=x href=y>", "<html lang=de>", "<head>"),
    *(
        "<body>",
        "<frame",
        "<noscript>",
        "<p>",
        "&",
        "&#",
        "&amp;",
        "&#x80;",
        "&#0;",
        "&not",
        "&notin;",
        "&copy=",
        "1",
    ),
    *("x", "\u00a0", "é", "&nbsp;", "&nGt;", "text"),
)
markups = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@needs_compiler
@given(
    st.one_of(markups.map(str.encode), st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))),
    st.sampled_from([0, 1, 100]),
)
@example(b"<a href=x\0><html lang\0=a><a\0>", 100)
def test_compiled_and_not_a_page_says_the_same(body: bytes, most: int) -> None:
    assert tuple(compiled.scan(body, most, True)) == tuple(scanning.scan(body, most, True))
    assert compiled.scan(body, most, False)[4] is None is scanning.scan(body, most, False).text


def by_both(body: bytes) -> tuple[links.Page, links.Page] | None:
    """The page as its scan and as its tree give it; None for an odd one."""
    source = Source(body, "utf-8")
    found = source.scan(10_000)
    if found.odd:
        return None
    limits, headers = links.PageSettings(), Headers(())
    scanned, planted = links._Reading("http://a.test/b", limits), links._Reading("http://a.test/b", limits)
    for reading in (scanned, planted):
        reading.hear(headers)
    scanned.read_scan(found)
    links._read_tree(planted, source)
    return scanned.page("utf-8"), planted.page("utf-8")


PLAIN = [
    piece for piece in PIECES if not piece.startswith(("<svg", "</svg", "<math", "</math", "xlink", "<head", "<body"))
]


@given(st.lists(st.sampled_from(PLAIN), max_size=30).map("".join))
def test_a_page_that_is_not_odd_says_what_its_tree_says(markup: str) -> None:
    """Drawings apart: an element that HTML does not allow in them ends them for the tree."""
    if (both := by_both(markup.encode())) is not None:
        assert both[0] == both[1]


@pytest.mark.realsite
def test_real_pages_say_what_their_trees_say() -> None:
    files = sorted((DOCUMENTATION / "python3.11-doc" / "html").rglob("*.html"))[::20]
    files += sorted((DOCUMENTATION / "postgresql-doc-15" / "html").rglob("*.html"))[::50]
    odd = 0
    for file in files:
        body = file.read_bytes()
        both = by_both(body)
        odd += both is None
        assert both is None or both[0] == both[1], file
        for scanner in SCANNERS:
            assert tuple(scanner(body, 10_000, True)) == tuple(SCANNERS[0](body, 10_000, True)), file
    assert len(files) > 40
    assert odd < 2


@BOTH
@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "&",
        "&aaaaaa",
        "<a href=&copy>",
        "<a href=x ",
        "<!--",
        "<!-- -",
        "<script>",
        "</",
        "<b a='",
        "<title>",
        "<svg>",
        "\u00a0",
        "=",
        "<a",
    ],
)
def test_the_cost_grows_with_the_size_only(scanner: Scanner, piece: str) -> None:
    def cost(size: int) -> float:
        body = (piece * (size // len(piece.encode()))).encode()
        begin = time.process_time()
        scanner(body, 100, True)
        return time.process_time() - begin

    small, large = (min(cost(size) for _ in range(3)) for size in (10_000, 80_000))
    assert large < 40 * small + 0.02


# -- which of them is taken -----------------------------------------------------------------------------------


def test_bytes_that_are_no_utf_8_are_replaced_and_nul_is_passed_over() -> None:
    assert scan.scan(b"a\xff<a href=\xe9>", 9).text == "a\ufffd".encode()
    assert scan.scan("é".encode(), 9, text=False).text is None
    found = scan.scan(b"a\0b<a hr\0ef=x>", 9)
    assert (found.text, found.events, found.odd) == (b"ab", [("x", False)], True)


def test_the_text_is_read_again_where_it_was_not_asked_for_at_first() -> None:
    for wants_text in (False, True):
        source = Source(b"<a href=x>b</a>", "utf-8", wants_text=wants_text)
        assert source.scan(9) is source.scan(1)
        assert (source.scan(9).text is None) is not wants_text
        assert source.text == b"b"
        assert source.tree is source.tree
    assert Source("é".encode("latin-1"), "windows-1252").text == "é".encode()


@needs_compiler
def test_what_it_takes_it_gives_back() -> None:
    body = (
        b"<html lang=a><title>b&amp;</title><base href=c><a href='&amp;d' rel='&amp;e'><a href=f rel=nofollow>"
        b"<a href=f><meta content='&amp;' name=g><meta content=h content=i>j &eacute; &nosuch; k" * 50
    )
    compiled.scan(body, 9, True)
    tracemalloc.start()
    try:
        compiled.scan(body, 9, True)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            compiled.scan(body, 9, True)
        assert tracemalloc.get_traced_memory()[0] - before < 2_000
    finally:
        tracemalloc.stop()
