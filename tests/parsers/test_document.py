"""A page as parsers see it."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from crawlspace.errors import UsageError
from crawlspace.parsers import Document, Way

MakeDocument = Callable[..., Document]

PAGE = """<html lang=de><head><title> A  title </title><link rel=canonical href=/c><base href="https://shop.test/b/"></head>
<body><script>hidden()</script><h1>Hä</h1><a href=x#y>x</a></body></html>"""


def test_what_a_page_says_of_itself(document: MakeDocument) -> None:
    page = document(PAGE, way=Way("item", '{"n":1}', 4), headers={"X-A": "1"})
    assert (page.title, page.language, page.canonical, page.links) == ("A title", "de", "/c", ["x"])
    assert (page.label, page.meta, page.depth, page.fetched_at, page.status) == ("item", {"n": 1}, 4, 1000, 200)
    assert (page.host, page.type, page.charset, page.is_html) == ("shop.test", "text/html", "utf-8", True)
    assert page.headers == {"content-type": "text/html; charset=utf-8", "x-a": "1"}
    assert page.headers is page.headers
    assert page.contexts == []
    assert repr(page) == "<Document 200 https://shop.test/a/page>"
    assert document("").meta == {}


def test_looking_into_a_page(document: MakeDocument) -> None:
    page = document(PAGE)
    assert [node.text() for node in page.css("h1")] == ["Hä"]
    assert page.first("h2") is None
    assert page.tree is page.tree
    assert page.plain.split() == ["A", "title", "Hä", "x"]
    assert page.selector.xpath("//h1/text()").get() == "Hä"
    assert "hidden()" in page.text


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("x#y", "https://shop.test/b/x"),
        ("https://user:secret@a.test/", "https://a.test/"),
        ("mailto:a@b", None),
        ("http://[", None),
    ],
)
def test_addresses_are_resolved_against_the_base_without_secrets(
    document: MakeDocument, address: str, target: str | None
) -> None:
    assert document(PAGE).resolve(address) == target


def test_what_is_no_html_has_text_or_json_too(document: MakeDocument) -> None:
    page = document('{"a": [1]}', type="application/json")
    assert page.json() == {"a": [1]}
    assert page.plain == '{"a": [1]}'
    assert (page.title, page.links, page.is_html) == ("", [], False)
    with pytest.raises(ValueError, match="JSON"):
        document("x").json()


def test_without_its_extra_the_selector_says_which(document: MakeDocument, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "parsel", None)
    with pytest.raises(UsageError, match="extra `parsel`"):
        _ = document("").selector


def test_a_tree_that_was_not_bounded_is_the_same_for_a_usual_page(document: MakeDocument) -> None:
    page = document(PAGE)
    free = type(page)(page._result, bounded=False)
    assert free.tree.html == page.tree.html
