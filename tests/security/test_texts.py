"""Rows 10 to 13: what a text can do to whoever reads it. Times are bounds against what grows without measure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchResult, Headers, RobotsFile
from crawlspace.pages.links import PageSettings, read_page
from crawlspace.pages.robots import RobotsRules, RobotsSettings, judge
from crawlspace.pages.sitemap import ENTRIES, SitemapReader
from crawlspace.policy.patterns import Patterns
from crawlspace.states import UrlState

HTML = Headers(((b"Content-Type", b"text/html; charset=utf-8"),))
SLOW = 10.0
"""Seconds of CPU, many times what each of these takes."""


@contextmanager
def quickly() -> Iterator[None]:
    """All in here is done in time."""
    began = time.process_time()
    yield
    assert time.process_time() - began < SLOW


# -- row 10: sitemaps ---------------------------------------------------------------------------------------------

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 30))
QUADRATIC = "&a;" * 50_000
XML_BOMBS = {
    "billion laughs": f'<!DOCTYPE u [<!ENTITY l0 "ha">{LAUGHS}]><urlset><url><loc>/&l29;</loc></url></urlset>',
    "quadratic": f'<!DOCTYPE u [<!ENTITY a "{"x" * 50_000}">]><urlset><url><loc>{QUADRATIC}</loc></url></urlset>',
    "external": '<!DOCTYPE u [<!ENTITY x SYSTEM "http://a.test/evil">]><urlset><url><loc>/&x;</loc></url></urlset>',
    "external DTD": '<!DOCTYPE u SYSTEM "http://a.test/evil"><urlset><url><loc>/fine</loc></url></urlset>',
    "file": '<!DOCTYPE u [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>/&x;</loc></url></urlset>',
}


def announced(body: bytes) -> list[str]:
    reader = SitemapReader()
    return [entry.url for entry in [*reader.feed(body), *reader.close()]]


@pytest.mark.parametrize("bomb", XML_BOMBS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-7"])
def test_row_10_no_entity_is_ever_replaced_in_any_encoding(bomb: str, encoding: str) -> None:
    with quickly():
        found = announced(XML_BOMBS[bomb].encode(encoding))
    assert all(len(url) < 4096 for url in found)
    assert not [url for url in found if "haha" in url or "root:" in url or "xxxx" in url]


def test_row_10_what_an_entity_names_is_not_fetched_and_an_index_in_a_circle_ends(web: Any) -> None:
    web.put("http://a.test/robots.txt", b"Sitemap: http://a.test/bomb.xml\nSitemap: http://a.test/index.xml\n")
    web.put("http://a.test/bomb.xml", XML_BOMBS["external"].encode(), b"Content-Type: application/xml")
    circle = b"<sitemapindex><sitemap><loc>http://a.test/%s.xml</loc></sitemap></sitemapindex>"
    for name, other in ((b"index", b"other"), (b"other", b"index")):
        web.put(f"http://a.test/{name.decode()}.xml", circle % other, b"Content-Type: application/xml")
    web.page("http://a.test/")
    web.crawl("http://a.test/")
    assert "http://a.test/evil" not in web.urls
    assert web.urls.count("http://a.test/index.xml") == web.urls.count("http://a.test/other.xml") == 1


def test_row_10_a_file_gives_no_more_than_its_share() -> None:
    with quickly():
        assert len(announced(b"<urlset>" + b"<url><loc>/x</loc></url>" * (ENTRIES + 5_000))) == ENTRIES


# -- row 11: robots.txt -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("User-agent: *\nDisallow: /" + "*a" * 8 + "b\n", "/" + "a" * 3000),
        ("User-agent: *\nDisallow: " + "*" * 5000 + "x\n", "/" + "a" * 3000),
        ("User-agent: *\n" + "".join(f"Disallow: /{n}*x\n" for n in range(20_000)), "/1" + "a" * 300),
        ("User-agent: *\n" + "".join(f"Disallow: /{n}\n" for n in range(100_000)), "/x"),
        ("User-agent: *\r" * 50_000 + "Disallow: /x\r", "/"),
        ("\0" * 100_000 + "\nUser-agent: *\nDisallow: /\0\n", "/"),
    ],
    ids=["wildcards", "stars", "wild rules", "rules", "groups with CR alone", "NUL"],
)
def test_row_11_no_file_costs_more_than_its_length(text: str, path: str) -> None:
    with quickly():
        rules = RobotsRules(text, "crawlspace")
        for number in range(5):
            rules.check(f"http://a.test{path}{number}")


def judged(body: bytes) -> RobotsFile:
    result = FetchResult("http://a.test/robots.txt", 0, status=200, body=body)
    return judge(result, "http://a.test", 0, RobotsSettings())


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_row_11_marks_and_line_ends_hide_no_rule(mark: bytes, end: bytes) -> None:
    body = mark + end.join([b"User-agent: *", b"Disallow: /secret", b""])
    file = judge(
        FetchResult("http://a.test/robots.txt", 0, status=200, body=body), "http://a.test", 0, RobotsSettings()
    )
    assert not RobotsRules(file.text, "crawlspace").check("http://a.test/secret").allowed


def test_row_11_a_file_without_end_is_cut_at_its_last_whole_line() -> None:
    body = b"User-agent: *\nDisallow: /secret\n" + b"Allow: /secret-but-cut\n" * 100_000
    file = judge(
        FetchResult("http://a.test/robots.txt", 0, status=200, body=body), "http://a.test", 0, RobotsSettings()
    )
    assert len(file.text) <= RobotsSettings().max_size
    assert file.text.endswith("Allow: /secret-but-cut\n")
    assert not RobotsRules(file.text, "crawlspace").check("http://a.test/secret").allowed


# -- row 12: patterns ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"^(a|aa)+$", r"(.*a){20}$", r"^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_row_12_no_pattern_takes_longer_than_its_text(pattern: str) -> None:
    with quickly():
        Patterns.of([pattern], "scope.exclude").match("a" * 20_000 + "!")


@pytest.mark.parametrize("pattern", [r"(a)\1", r"(?=a)b", r"(?<!a)b", "((((a{100}){10}){10}){10}){10}"])
def test_row_12_what_could_take_long_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        Patterns.of([pattern], "scope.exclude")


# -- row 13: pages ------------------------------------------------------------------------------------------------

PAGES: dict[str, Callable[[], bytes]] = {
    "a million nested divs": lambda: b"<div>" * 1_000_000,
    "very many attributes": lambda: b"<a " + b"".join(b"a%d=1 " % n for n in range(150_000)) + b"href=/x>x</a>",
    "nested inline elements": lambda: b"<b><i>" * 50_000,
    "nested tables": lambda: b"<table><tr><td>" * 60_000,
    "one long text": lambda: b"<p>" + b"text " * 2_000_000,
    "one long attribute": lambda: b'<a href="' + b"x" * 5_000_000 + b'">x</a>',
    "nothing but links": lambda: b"<a href=/x>x" * 100_000,
    "open comment": lambda: b"<!--" + b"-" * 5_000_000,
}


@pytest.mark.parametrize("page", PAGES)
def test_row_13_reading_a_page_ends_and_gives_no_more_than_its_share(page: str) -> None:
    settings = PageSettings(max_links=1000)
    with quickly():
        read = read_page(PAGES[page](), "http://a.test/", HTML, settings)
    assert len(read.links) <= settings.max_links


def test_row_13_a_page_made_to_break_its_reader_ends_the_crawl_of_nothing(web: Any) -> None:
    web.put("http://a.test/", b"<a href=/deep>x</a><a href=/fine>x</a>")
    web.put("http://a.test/deep", b"<div>" * 200_000 + b"<a href=/below>x</a>")
    web.page("http://a.test/fine")
    web.crawl("http://a.test/")
    assert web.story("http://a.test/deep").state is UrlState.DONE
    assert web.story("http://a.test/fine").state is UrlState.DONE
