"""The parsers that come along: page, links, markdown."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from crawlspace.parsers import Document, Parser, maintext
from crawlspace.parsers.links import links
from crawlspace.parsers.markdown import markdown
from crawlspace.parsers.page import page

MakeDocument = Callable[..., Document]

FULL = """<!doctype html><html lang=en><head><title>The title</title>
<meta name=description content=" What  it is "><meta name=description content=second>
<meta property=og:title content=OG><meta property=og:type content=article><meta name=empty content="">
<meta property=article:published_time content="not a date"><meta name=date content=2026-01-02>
<link rel=canonical href=/canonical><link rel="alternate" hreflang="DE" href="/de">
<link rel=alternate type=application/json href=/api/1><link rel=alternate type=application/rss+xml href=/feed>
<link rel=next href=/2><link rel=alternate hreflang=fr href="javascript:x">
<script type="application/ld+json">{"@graph":[{"@type":"Article","dateModified":"2026-02-03T04:05:06Z"},[1]]}</script>
<script type="application/ld+json">not json</script><script type="application/ld+json">3</script>
</head><body><h1>One <b>two</b></h1><h2> </h2><p>Some text</p></body></html>"""


def record(parser: Parser, document: Document) -> dict[str, Any]:
    """The one record of a page."""
    found = parser.run(document)
    assert found is not None
    assert found.error is None
    (one,) = found.records
    assert one.key is None
    data: dict[str, Any] = json.loads(one.data)
    return data


def test_page_tells_what_a_page_says_of_itself(document: MakeDocument) -> None:
    data = record(page, document(FULL))
    main = data.pop("main", "")
    assert data.pop("text").split()[:3] == ["The", "title", "One"]
    assert isinstance(main, str)
    assert data == {
        "title": "The title",
        "language": "en",
        "description": "What it is",
        "headings": [{"level": 1, "text": "One two"}],
        "canonical": "https://shop.test/canonical",
        "opengraph": {"og:title": "OG", "og:type": "article"},
        "jsonld": [{"@graph": [{"@type": "Article", "dateModified": "2026-02-03T04:05:06Z"}, [1]]}],
        "published": "2026-01-02",
        "modified": "2026-02-03T04:05:06Z",
    }
    found = page.run(document(FULL))
    assert found is not None
    assert found.records[0].twins == ("https://shop.test/api/1",)


def test_page_leaves_out_what_a_page_does_not_have(document: MakeDocument) -> None:
    assert set(record(page, document("<p>x"))) <= {"text", "main"}


def test_a_script_that_is_too_large_is_not_read(document: MakeDocument, monkeypatch: pytest.MonkeyPatch) -> None:
    from crawlspace.parsers import page as module

    monkeypatch.setattr(sys.modules["crawlspace.parsers.page"], "SCRIPT_SIZE", 10)
    assert module is not None
    assert "jsonld" not in record(page, document(FULL))


def test_main_text_leaves_out_what_surrounds_it(document: MakeDocument) -> None:
    text = "This is the text of the article, which is long enough to be taken for one. " * 5
    body = f"<body><nav><ul><li><a href=/>Home</a></ul></nav><main><p>{text}</p></main><footer>Imprint</footer>"
    main = record(page, document(body))["main"]
    assert text.strip()[:70] in main
    assert "Imprint" not in main


def test_main_text_is_left_out_without_its_extra_and_for_pages_that_could_take_too_long(
    document: MakeDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert maintext.main_text(document("<div>" * 20_000)) is None
    assert maintext.main_text(document("<p>x")) is not None
    monkeypatch.setattr(maintext, "is_there", lambda: False)
    assert maintext.main_text(document("<p>x")) is None


def test_page_looks_at_its_markup_once(document: MakeDocument, monkeypatch: pytest.MonkeyPatch) -> None:
    from crawlspace.pages import source

    asked: list[str] = []
    for name in ("scan", "may_cost_too_much", "parse"):
        real = getattr(source, name)
        monkeypatch.setattr(
            source, name, lambda *a, name=name, real=real, **k: (asked.append(name), real(*a, **k))[1]
        )
    record(page, document(FULL))
    assert sorted(asked) == ["may_cost_too_much", "parse", "scan"]


def test_links_tells_links_in_full_with_what_is_unusual_of_them(document: MakeDocument) -> None:
    body = """<link rel=canonical href=/c><meta name=robots content=noindex><a href=x#a>x</a><a href=x#b>x</a>
    <a rel=nofollow href=/n>n</a><iframe src=/f></iframe><a href=mailto:a@b>m</a><a href="http://[">bad</a>
    <a href=https://u:p@b.test/>secret</a>"""
    assert record(links, document(body)) == {
        "canonical": "https://shop.test/c",
        "noindex": True,
        "links": [
            {"url": "https://shop.test/a/x"},
            {"url": "https://shop.test/n", "nofollow": True},
            {"url": "https://shop.test/f", "relation": "frame"},
            {"url": "https://b.test/"},
        ],
    }


def test_links_tells_versions_and_twins(document: MakeDocument) -> None:
    data = record(links, document(FULL))
    assert data["alternates"] == [{"hreflang": "de", "url": "https://shop.test/de"}]
    found = links.run(document(FULL))
    assert found is not None
    assert found.records[0].twins == ("https://shop.test/api/1",)


def test_a_canonical_that_is_no_address_is_left_out(document: MakeDocument) -> None:
    assert record(links, document("<link rel=canonical href=mailto:x>")) == {"links": []}


MARKDOWN = [
    ("<h1>A</h1><h3>B</h3><p>c  d", "# A\n\n### B\n\nc d"),
    ("<p>a <b>b</b> <em> c </em>d<i></i>", "a **b** *c* d"),
    ("<p><a href=/x(1)>t</a> <a href=#f>f</a> <a href=/y></a><a>z</a>", "[t](https://shop.test/x%281%29) f z"),
    ("<ul><li>a<ul><li>b</ul><li>c</ul>", "- a\n\n  - b\n\n- c"),
    ("<ol><li>a<li>b</ol>", "1. a\n\n2. b"),
    ("<li>stray", "- stray"),
    ("<blockquote><p>q<p>r</blockquote>s", "> q\n\n> r\n\ns"),
    ("<pre>a\n  b```c</pre>", "````\na\n  b```c\n````"),
    ("<pre> </pre>x", "x"),
    ("<p><code>a b</code> <code>a`b</code><code> </code>", "`a b` `` a`b ``"),
    ("<p>a<br>b<hr>c", "a\\\nb\n\n---\n\nc"),
    ("<p><img src=/i.png alt='An  image'><img src=/j.png>", "![An image](https://shop.test/i.png)"),
    ("<table><tr><th>a<th>b<tr><td>1<p>x</p><td>2|3</table>", "| a | b |\n| --- | --- |\n| 1x | 2\\|3 |"),
    ("<table><tr></tr></table>x", "x"),
    (
        "<td>alone</td><p>- a<p># b<p>1. c<p>*d* [e] <p>&lt;b>",
        "alone\n\n\\- a\n\n\\# b\n\n\\1. c\n\n\\*d\\* \\[e\\]\n\n\\<b\\>",
    ),
    ("<script>x</script><nav>n</nav><header>h</header><p>a<footer>f</footer>", "a"),
    ("<nav>n</nav><main><header>h</header><p>a</main><p>out", "h\n\na"),
    ("<p>out<article><p>in</article>", "in"),
    ("<article>1</article><article>2</article>", "1\n\n2"),
    ("<b><p>across</b></p></a></ul>", "**across**"),
    ("", ""),
]


@pytest.mark.parametrize(("body", "expected"), MARKDOWN, ids=[str(number) for number in range(len(MARKDOWN))])
def test_markdown_says_what_the_page_says(document: MakeDocument, body: str, expected: str) -> None:
    assert record(markdown, document(body))["markdown"] == expected


def test_markdown_ends_whatever_the_page_is(document: MakeDocument, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = "<div><ul><li><blockquote>" * 1_500 + "x"
    assert record(markdown, document(deep))["markdown"].endswith("x")
    monkeypatch.setattr(sys.modules["crawlspace.parsers.markdown"], "TEXT_LIMIT", 100)
    assert len(record(markdown, document("<p>abcdefgh</p>" * 1000))["markdown"]) < 200
