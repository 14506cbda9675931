"""A page gives the links and declarations that browsers and large crawlers see in it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.exchange import Headers
from crawlspace.pages.links import (
    DECLARATIONS,
    NOFRAMES,
    TEXT_LIMIT,
    Page,
    PageSettings,
    is_html,
    read_page,
)
from crawlspace.types import Address, Link, Relation
from crawlspace.urls import CONSERVATIVE, Identity

DATA = Path(__file__).parent.parent / "data" / "html-links"
URL = "http://site.test/dir/page.html"
IDENTITY = Identity(CONSERVATIVE)
ODD = "<template></template>"
"""Of a page that begins so the tree is read."""


def html(*headers: tuple[bytes, bytes], charset: str | None = "utf-8") -> Headers:
    kind = f"text/html; charset={charset}" if charset else "text/html"
    return Headers(((b"Content-Type", kind.encode()), *headers))


def read(body: str, *headers: tuple[bytes, bytes], url: str = URL, **limits: Any) -> Page:
    return read_page(body.encode(), url, html(*headers), PageSettings(**limits))


def texts(page: Page, *relations: Relation) -> list[str]:
    return [link.url for link in page.links if not relations or link.relation in relations]


def resolved(page: Page, *relations: Relation) -> list[str]:
    """Addresses as they are requested, those left out that are none."""
    addresses = IDENTITY.identify_many(texts(page, *relations), page.base_url, encoding=page.charset)
    return [address.fetch_url for address in addresses if isinstance(address, Address)]


def body_of(row: dict[str, Any]) -> bytes:
    if "html_b64" in row:
        return base64.b64decode(row["html_b64"])
    return str(row["html"]).encode(row.get("encoding") or "utf-8", "xmlcharrefreplace")


# -- data of other tools ------------------------------------------------------------------------------------

POLICY = {
    "page-008": "we refuse no link for its suffix",
    "page-010": "images are no hyperlinks",
    "page-012": "areas are hyperlinks",
    "page-014": "links are in the attributes that are for links",
    "page-017": "ftp is not fetched",
    "page-026": "a link that is not to be followed is told, and marked",
    "page-027": "a link that is not to be followed is told, and marked",
    "page-028": "forms are not filled in",
}


@pytest.mark.parametrize("row", json.loads((DATA / "pages.json").read_text()), ids=lambda row: row["id"])
def test_pages_of_other_tools_give_the_links_that_these_expect(row: dict[str, Any]) -> None:
    if row["id"] in POLICY:
        pytest.skip(POLICY[row["id"]])
    limits = PageSettings(requisites=row["source"] == "nutch")
    page = read_page(body_of(row), row["url"], html(charset=row.get("encoding")), limits)
    itself, *expected = (IDENTITY.identify(link) for link in [row["url"], *row["links"]])
    wanted = {address.fetch_url for address in {*expected} - {itself} if isinstance(address, Address)}
    assert isinstance(itself, Address)
    assert wanted == {*resolved(page)} - {itself.fetch_url}


OTHER_BASES = {
    "test_base_url_in_script": "without scripts, what is in noscript holds",
    "test_get_base_url_utf8": "the encoding was an argument there",
    "test_get_base_url_latin1": "the encoding was an argument there",
}


@pytest.mark.parametrize("row", json.loads((DATA / "base-url.json").read_text()), ids=lambda row: row["test"])
def test_links_are_relative_to_the_base_that_the_page_names(row: dict[str, Any]) -> None:
    page = read_page(body_of(row), row["document_url"], html(charset=row.get("encoding")))
    if page.base_url != row["base"]:
        assert row["test"] in OTHER_BASES


OTHER_REFRESHES = {
    "test_get_meta_refresh_unterminated_tag": "a tag that the page ends in is none",
    "test_nonascii_url_utf8": "the encoding was an argument there",
    "test_inside_noscript": "without scripts, what is in noscript holds",
    "test_inside_script": "what a script writes is not known",
}


@pytest.mark.parametrize(
    "row", json.loads((DATA / "meta-refresh.json").read_text())["html"], ids=lambda row: row["test"]
)
def test_a_meta_refresh_is_a_link(row: dict[str, Any]) -> None:
    page = read_page(body_of(row), row["document_url"], html(charset=row.get("encoding")))
    if resolved(page, Relation.REFRESH) != ([row["target"]] if row["target"] else []):
        assert row["test"] in OTHER_REFRESHES


SITES = {
    "BadURIs": {"index.html", "one.html", "two.html", "three.html"},
    "Frames": {"index.html", "topframe.html", "leftframe.html", "rightframe.html", "noframe.html"},
    "Refresh": {"index.html", "refresh.html", "refresh2.html"},
    "SpacesInHref": {"index.html", "spaces%20in%20path.html"},
    "TrickyRelative": {"index.html", "reluptricky.html"},
    "Charset": {"index.html", "link.html"},
    "Javascript": {"index.html"},
}


@pytest.mark.parametrize(("site", "expected"), SITES.items(), ids=SITES)
def test_small_sites_are_reached_from_their_first_page(site: str, expected: set[str]) -> None:
    folder = DATA / "heritrix" / site
    root = "http://site.test/TrickyRelativeURIs/"
    reached: set[str] = set()
    waiting = [f"{root}index.html"]
    while waiting:
        url = waiting.pop()
        name = url.removeprefix(root)
        file = folder / name.replace("%20", " ")
        if name in reached or not url.startswith(root) or not file.is_file():
            continue
        reached.add(name)
        waiting += resolved(read_page(file.read_bytes(), url, html(charset=None)))
    assert expected <= reached


def test_a_background_is_a_requisite() -> None:
    body = (DATA / "heritrix" / "BackgroundImage" / "index.html").read_bytes()
    page = read_page(body, URL, html(), PageSettings(requisites=True))
    assert "example-background-image.jpeg" in texts(page, Relation.REQUISITE)
    assert not read_page(body, URL, html()).links or Relation.REQUISITE not in {
        link.relation for link in read_page(body, URL, html()).links
    }


# -- links --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<a href=x>", [Link("x")]),
        ("<A HREF='\n x\t'>", [Link("x")]),
        ("<a href=x?a=1&amp;b=2&copy=3>", [Link("x?a=1&b=2&copy=3")]),
        ("<a href=x#top>", [Link("x")]),
        ("<area href=x>", [Link("x")]),
        ("<a href=x rel='external NoFollow'>", [Link("x", nofollow=True)]),
        ("<a href=x rel=nofollowing>", [Link("x")]),
        ("<iframe src=x></iframe>", [Link("x", Relation.FRAME)]),
        ("<frameset><frame src=x>", [Link("x", Relation.FRAME)]),
        ("<frameset><frame src=x></frameset><noframes><a href=y></noframes>", [Link("x", Relation.FRAME), Link("y")]),
        ("<link rel=alternate hreflang=de href=x>", [Link("x", Relation.ALTERNATE)]),
        ("<link rel='next nofollow' href=x>", [Link("x", Relation.ALTERNATE, nofollow=True)]),
        ("<link rel='alternate stylesheet' href=x>", []),
        ("<link rel=icon href=x>", []),
        (f"<link rel='{'x ' * 60}next' href=x>", [Link("x", Relation.ALTERNATE)]),
        ("<meta http-equiv=Refresh content='0; url=x'>", [Link("x", Relation.REFRESH)]),
        ("<meta http-equiv=refresh content='600'>", []),
        ("<meta http-equiv=refresh content=soon>", []),
        ("<meta http-equiv=refresh>", []),
        ("<a href=x><a href=x><a href=x#y>", [Link("x")]),
        ("<iframe src=x></iframe><iframe src=x></iframe><a href=x>", [Link("x", Relation.FRAME), Link("x")]),
        ("<a href=x rel=nofollow><a href=x>", [Link("x")]),
        ("<a href=x><a href=x rel=nofollow>", [Link("x")]),
        ("<a>no address</a><a href><a href='#'><a href='  '>", []),
        ("<iframe src=about:blank></iframe><iframe src></iframe>", []),
        ("<a href=javascript:go()><a href=MAILTO:a@b.test><a href='data:,x'><a href=tel:1>", []),
        ("<a href=HTTP://a.test/><a href=//b.test:80/x>", [Link("HTTP://a.test/"), Link("//b.test:80/x")]),
        ("<a href='a b:c'>", [Link("a b:c")]),
        ("<script>'<a href=x>'</script><!-- <a href=x> --><textarea><a href=x></textarea>", []),
        ("<noscript><a href=x></noscript>", [Link("x")]),
        ("<template><a href=x></template>", []),
        ("<img src=x><script src=x></script><link rel=stylesheet href=x>", []),
        ("<a href=", []),
        ("<a href=x", []),
        ("", []),
    ],
)
def test_a_link_is_the_text_of_the_page(body: str, expected: list[Link]) -> None:
    assert list(read(body).links) == expected
    assert list(read(ODD + body).links) == expected


def test_requisites_are_links_when_they_are_asked_for() -> None:
    body = "<img src=i srcset='j 2x'><link rel=stylesheet href=c><script src=s></script><img src='data:,x'><a href=x>"
    assert texts(read(body, requisites=True), Relation.REQUISITE) == ["i", "j", "c", "s"]
    assert texts(read(body, requisites=True), Relation.HYPERLINK) == ["x"]


def test_a_refresh_header_is_a_link() -> None:
    assert read("", (b"Refresh", b"5; url=/next")).links == (Link("/next", Relation.REFRESH),)


def test_a_page_gives_no_more_links_than_its_cap_and_says_so() -> None:
    body = "".join(f"<a href={number}>" for number in range(6)) + "<iframe src=f></iframe><title>t</title>"
    page = read(body, max_links=5)
    assert (texts(page), page.links_cut, page.title) == (["0", "1", "2", "3", "4"], True, "t")
    assert not read(body, max_links=7).links_cut
    assert read(body, max_links=6).links_cut


def test_only_so_many_elements_for_browsers_without_frames_are_looked_into() -> None:
    body = "".join(f"<noframes><a href={number}></noframes>" for number in range(NOFRAMES + 1))
    assert len(texts(read(body))) == NOFRAMES


@pytest.mark.parametrize(
    ("body", "base", "links"),
    [
        ("<base href=/b/><a href=x>", "http://site.test/b/", ["x"]),
        ("<base target=_top><base href=' /b/ '><base href=/c/>", "http://site.test/b/", []),
        ("<base href><a href=''>", URL, []),
        ("<base href='http://['><a href=x>", URL, ["x"]),
        ("<base href='javascript:x'>", URL, []),
        ("<base href='data:,x'>", URL, []),
        ("<a href=''><a href='#y'><base href=/b/>", "http://site.test/b/", ["http://site.test/b/"]),
        ("<a href=''><a href='#y'>", URL, []),
        ("<base href='#x'><a href=''>", URL, []),
        ("<base href=/b/><a href=http://site.test/b/><a href=''>", "http://site.test/b/", ["http://site.test/b/"]),
    ],
)
def test_the_first_base_with_an_address_holds(body: str, base: str, links: list[str]) -> None:
    page = read(body)
    assert (page.base_url, texts(page)) == (base, links)


# -- declarations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<link rel=canonical href=/c>", "/c"),
        ("<link rel='canonical' href=' /c '><link rel=canonical href=http://site.test/c>", "/c"),
        ("<link rel=canonical href=/c><link rel=canonical href=/d>", None),
        ("<link rel=canonical href=/c><link rel=canonical href='http://['>", None),
        ("<link rel=canonical href>", None),
        ("", None),
    ],
)
def test_declared_addresses_that_agree_are_one_and_others_none(body: str, expected: str | None) -> None:
    page = read(body)
    assert page.canonical == expected
    assert not page.links


def test_a_canonical_in_the_header_is_relative_to_what_was_requested() -> None:
    page = read(
        "<base href=/elsewhere/>", (b"Link", b'<c>; rel="canonical"'), (b"Link", b"<http://[>; rel=canonical")
    )
    assert page.canonical == "http://site.test/dir/c"


@pytest.mark.parametrize(
    ("body", "headers", "noindex", "nofollow"),
    [
        ("<meta name=robots content='noindex, nofollow'>", [], True, True),
        ("<meta name=Robots content=none>", [], True, True),
        ("<meta name=crawlspace content=nofollow>", [], False, True),
        ("<meta name=otherbot content=nofollow>", [], False, False),
        ("<meta name=robots><meta content=noindex>", [], False, False),
        ("", [(b"X-Robots-Tag", b"noindex"), (b"X-Robots-Tag", b"otherbot: nofollow")], True, False),
    ],
)
def test_robots_directives_of_page_and_header_add_up(
    body: str, headers: list[tuple[bytes, bytes]], noindex: bool, nofollow: bool
) -> None:
    page = read(body, *headers)
    assert (page.noindex, page.nofollow) == (noindex, nofollow)


def test_directives_are_read_for_the_name_that_is_set() -> None:
    assert read("<meta name=mybot content=noindex>", product="MyBot").noindex


def test_only_so_many_declarations_are_looked_at() -> None:
    many = DECLARATIONS + 1
    assert not read("<meta name=robots content=all>" * DECLARATIONS + "<meta name=robots content=noindex>").noindex
    assert read("<link rel=canonical href=/c>" * many + "<link rel=canonical href=/d>").canonical == "/c"


def test_links_of_drawings_are_links() -> None:
    page = read('<svg><a xlink:href="/x"></a><a xlink:href></a><use href="#u" xlink:href="#v"/><html lang=de></svg>')
    assert (texts(page), page.language) == (["/x"], None)


def test_an_attribute_that_means_something_elsewhere_means_nothing_here() -> None:
    page = read(
        "<a content=a src=b><area src=c><iframe href=d content=e></iframe><base src=f><link src=g rel=canonical>"
        "<meta href=h name=robots><a href>"
    )
    assert (texts(page), page.base_url, page.canonical, page.nofollow) == ([], URL, None, False)


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("<title> A\n  title &amp; more </title><title>another</title>", "A title & more"),
        ("<svg><title>drawing</title></svg><title>page</title>", "page"),
        ("<title></title>", ""),
        ("<title>" + "x" * 5000 + "</title>", "x" * TEXT_LIMIT),
        ("<p>", ""),
    ],
)
def test_the_title_is_that_of_the_page(body: str, title: str) -> None:
    assert read(body).title == title


def test_the_language_is_the_page_s_or_else_the_header_s() -> None:
    header = (b"Content-Language", b"fr, en")
    assert read("<html lang=de>", header).language == "de"
    assert read("<html lang=''>", header).language == "fr"
    assert read("<html>").language is None


# -- encodings and types ------------------------------------------------------------------------------------


def test_links_are_read_in_the_encoding_of_the_page() -> None:
    body = '<meta charset=windows-1251><a href="/поиск?q=мир">'.encode("cp1251")
    page = read_page(body, URL, html(charset=None))
    assert (page.charset, texts(page)) == ("windows-1251", ["/поиск?q=мир"])
    assert resolved(page) == ["http://site.test/%D0%BF%D0%BE%D0%B8%D1%81%D0%BA?q=%EC%E8%F0"]


def test_bytes_that_are_no_text_spoil_only_their_own_link() -> None:
    page = read_page(b'<a href="a\xff"><a href="b\0c"><a href=d>', URL, html())
    assert texts(page) == ["a\ufffd", "b\ufffdc", "d"]


@pytest.mark.parametrize("kind", [b"text/plain", b"image/png", b"application/json"])
def test_what_is_no_html_has_no_links_but_its_headers_count(kind: bytes) -> None:
    headers = Headers(((b"Content-Type", kind), (b"X-Robots-Tag", b"noindex"), (b"Link", b"</c>; rel=canonical")))
    page = read_page(b"<html><a href=x>", URL, headers)
    assert not is_html(headers, b"<html>")
    assert (page.links, page.base_url, page.noindex, page.canonical) == ((), URL, True, "http://site.test/c")


# -- bugs of other crawlers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "body", "expected"),
    [
        pytest.param(
            "http://forum.test/",
            '<a href="/index.php?/topic/57-abc/&do=last">t</a>',
            ["http://forum.test/index.php?/topic/57-abc/&do=last"],
            id="bug-002",
        ),
        pytest.param(
            "https://site.test/",
            '<a href="https://info@site.test">m</a><a href="https://user:pw@site.test/a">a</a><a href="/a">a</a>',
            ["https://site.test/", "https://site.test/a", "https://site.test/a"],
            id="bug-004",
        ),
        pytest.param(
            "http://shop.test/list",
            '<a href="/list?&amp;p=2">2</a><a href="/list?&amp;p=3">3</a>',
            ["http://shop.test/list?&p=2", "http://shop.test/list?&p=3"],
            id="bug-007",
        ),
        pytest.param(
            "http://site.test/",
            '<a href="/a%%30%30">1</a><a href="/100%">2</a><a href="/x%zz">3</a><a href="/ok">4</a>',
            ["http://site.test/a%%30%30", "http://site.test/100%", "http://site.test/x%zz", "http://site.test/ok"],
            id="bug-013",
        ),
        pytest.param(
            "https://site.test/p",
            '<a href="javascript:window.print();">p</a><a href="">self</a><a href="#top">top</a>'
            '<a href="mailto:a@site.test">m</a><a href="data:text/html,x">d</a><a href="tel:1">t</a>'
            '<a href=" \n/ok ">ok</a>',
            ["https://site.test/ok"],
            id="bug-021",
        ),
        pytest.param(
            "http://site.test/",
            '<a href="/a HTTP/1.1&#13;&#10;Host: evil.test&#13;&#10;&#13;&#10;GET /b">x</a><a href="/li\nne">y</a>',
            ["http://site.test/a%20HTTP/1.1Host:%20evil.testGET%20/b", "http://site.test/line"],
            id="bug-022",
        ),
        pytest.param(
            "http://forum.test/",
            '<a href="http://[email=%22info@x.test/">1</a><a href="http://www.site.test]">2</a>'
            '<a href="http://[http//w.site.test/r">3</a><a href="http://[IP-Address">4</a><a href="/next">5</a>',
            ["http://x.test/", "http://forum.test/next"],  # by the URL Standard the first is a user's name and a host
            id="bug-023",
        ),
        pytest.param(
            "http://social.test/home",
            '<noscript><meta http-equiv="refresh" content="0; URL=/home?_noscript=1"></noscript><p>text</p>'
            '<a href="/a">a</a>',
            ["http://social.test/home?_noscript=1", "http://social.test/a"],
            id="bug-074",
        ),
    ],
)
def test_what_other_crawlers_got_wrong(url: str, body: str, expected: list[str]) -> None:
    assert resolved(read(body, url=url)) == expected


def test_bug_073_a_page_that_reloads_itself_is_no_new_work() -> None:
    body = '<meta http-equiv="refresh" content="1800"><meta http-equiv="refresh" content="1800; url=/p">'
    assert resolved(read(body, url="http://news.test/p")) == ["http://news.test/p"]


def test_bug_056_the_mark_wins_over_the_header() -> None:
    body = base64.b64decode("77u/PCFET0NUWVBFIGh0bWw+0J/RgNC40LLQtdGCIQ==")
    assert read_page(body, URL, html(charset="cp1251")).charset == "utf-8"


# -- anything -----------------------------------------------------------------------------------------------

PIECES = (
    *("<a href=", '<a href="x"', "<a href=x rel=nofollow>", "<b>", "</b>", "<p>", "</p>", "<base href=/y>", "<base"),
    *("<meta name=robots", "<table>", "<svg>", "<title>", "</title>", "<!--", "-->", "<script>", "</script>"),
    *("<template>", "<iframe src=z>", "<frameset>", "<noframes>", '"', "'", ">", "<", "=", "&", "&amp", "&#0;", "\0"),
    *("é", "<link rel=canonical href=c>", "<link rel=next href=x>", "<form>", "<select>", "<font color=a>"),
    *("<plaintext>", "<![CDATA[", "]]>", "<img src=x srcset='y 2x'>", "<a href='#x'>"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=40), st.booleans())
def test_no_page_is_too_odd_to_be_read_and_each_text_comes_once_for_each_relation(
    pieces: list[str], requisites: bool
) -> None:
    page = read(" ".join(pieces), requisites=requisites)
    keys = [(link.url, link.relation) for link in page.links]
    assert len(keys) == len(set(keys))
    assert all(link.url and "#" not in link.url for link in page.links)
