"""What a parser is: its name, version, pages, and what becomes of its errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from crawlspace.errors import ConfigError, UsageError
from crawlspace.parsers import PAGE_KEY, Document, Match, Router, Way, as_parser, parser
from crawlspace.parsers.definition import rank_of

MakeDocument = Callable[..., Document]


def nothing(page: Document) -> None:
    """Gives nothing."""


@pytest.mark.parametrize("name", ["", "A", "a b", "1a", "a" * 65, "a/b"])
def test_a_name_is_a_plain_word(name: str) -> None:
    with pytest.raises(UsageError, match="no name for a parser"):
        parser(name, 1)


@pytest.mark.parametrize("version", ["", "1.", "v1", -1, True, "1..2"])
def test_a_version_is_numbers(version: int | str) -> None:
    with pytest.raises(UsageError, match="no version"):
        parser("a", version)(nothing)


def test_versions_compare_as_numbers() -> None:
    ordered = ["0.9", "1", "1.2", "1.10", "2"]
    assert sorted(ordered, key=rank_of) == ordered
    assert rank_of("1.0") == rank_of("1") == parser("a", 1)(nothing).rank


def test_a_class_and_a_function_are_parsers_alike(document: MakeDocument) -> None:
    @parser("f", 1, key=PAGE_KEY)
    def function(page: Document) -> dict[str, str]:
        return {"title": page.title}

    @parser("c", "1.2", key=PAGE_KEY)
    class Code:
        def parse(self, page: Document) -> dict[str, str]:
            return {"title": page.title}

    page = document("<title>T</title>")
    assert function(page) == Code(page) == {"title": "T"}
    found = Code.run(page)
    assert found is not None
    assert (found.parser, found.version, found.records[0].data) == ("c", "1.2", b'{"title":"T"}')


def test_what_can_do_nothing_is_no_parser() -> None:
    with pytest.raises(UsageError, match="can do nothing"):
        parser("a", 1)("text")
    with pytest.raises(UsageError, match="is no parser"):
        as_parser(nothing)


def test_an_error_is_kept_with_its_place_and_stops_nothing(document: MakeDocument) -> None:
    @parser("a", 1, significant="price")
    def half(page: Document) -> Iterator[dict[str, str]]:
        yield {"a": "b"}
        raise ValueError("boom \ud800")

    found = half.run(document(""))
    assert found is not None
    assert found.error is not None
    assert found.error.startswith("ValueError: boom ? at test_definition.py:")
    assert (found.records, found.significant) == ((), ("price",))


MATCHES = [
    (Match.of(), True),
    (Match.of("glob:https://shop.test/**"), True),
    (Match.of("/b/"), False),
    (Match.of(["/b/", "/a/"]), True),
    (Match.of(host="shop.test"), True),
    (Match.of(host="*.test"), True),
    (Match.of(host=["b.test", "*.shop.test"]), False),
    (Match.of(type="html"), True),
    (Match.of(type="text/*"), True),
    (Match.of(type="text/html"), True),
    (Match.of(type=("image/*", "application/json")), False),
    (Match.of(label="item"), True),
    (Match.of(label="list"), False),
    (Match.of("/a/", host="shop.test", type="html", label="item"), True),
]


@pytest.mark.parametrize(("match", "fits"), MATCHES)
def test_a_page_fits_when_each_kind_of_rule_does(document: MakeDocument, match: Match, fits: bool) -> None:
    page = document("<p>", way=Way("item"))
    assert match.fits(page) is fits
    assert match.may_fit(page.url, page.host, "text/html", "item") is fits
    assert (parser("a", 1, match=match)(nothing).run(page) is not None) is fits


def test_what_was_not_read_may_fit_unless_its_type_says_no() -> None:
    html, picture = Match.of(type="html"), Match.of(type="image/*")
    assert html.may_fit("https://a.test/", "a.test", None, None)
    assert html.may_fit("https://a.test/", "a.test", "application/xhtml+xml", None)
    assert not html.may_fit("https://a.test/", "a.test", "application/pdf", None)
    assert picture.may_fit("https://a.test/", "a.test", "image/png", None)


def test_a_pattern_that_is_none_is_told() -> None:
    with pytest.raises(ConfigError, match="match, pattern 1"):
        parser("a", 1, match="(")


def test_a_router_gives_each_page_to_the_first_route_that_fits(document: MakeDocument) -> None:
    router = Router("shop", 3, key=PAGE_KEY)

    @router.route("/item/", label="item")
    def item(page: Document) -> dict[str, str]:
        return {"is": "item"}

    @router.route("/item/")
    def other(page: Document) -> dict[str, str]:
        return {"is": "other"}

    def told(url: str, label: str | None = None) -> list[bytes]:
        found = as_parser(router).run(document("", url, way=Way(label)))
        assert found is not None
        return [record.data for record in found.records]

    assert told("https://a.test/item/1", "item") == [b'{"is":"item"}']
    assert told("https://a.test/item/1") == [b'{"is":"other"}']
    assert told("https://a.test/") == []
    assert (router.parser.name, router.parser.version) == ("shop", "3")
