"""Sitemaps and feeds give the addresses they announce, however they are written."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.pages.packed import pieces
from crawlspace.pages.sitemap import ADDRESS, ENTRIES, EXTRAS, Entry, Kind, SitemapReader, looks_like_sitemap
from crawlspace.pages.timestamps import read_time

DATA = Path(__file__).parent.parent / "data" / "sitemaps"
CASES: dict[str, list[dict[str, Any]]] = json.loads((DATA / "cases.json").read_text())


def read(body: bytes, size: int = 65_536, charset: str = "", **more: Any) -> tuple[SitemapReader, list[Entry]]:
    """Read a body in pieces of this size."""
    reader = SitemapReader(charset, **more)
    found = [
        entry for start in range(0, len(body), size) for entry in reader.feed(body[start : start + size])
    ] + reader.close()
    return reader, found


def urls(body: bytes | str, **more: Any) -> list[str]:
    return [entry.url for entry in read(body.encode() if isinstance(body, str) else body, **more)[1]]


# -- public data --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", CASES["files"], ids=lambda row: row["file"])
def test_a_real_file_gives_its_addresses(row: dict[str, Any]) -> None:
    body = b"".join(pieces((DATA / row["file"]).read_bytes()))
    reader, found = read(body)
    assert (reader.kind, reader.problem) == (row["kind"], "")
    assert [entry.url for entry in found] == row.get("locs", [entry.url for entry in found])
    assert len(found) == row.get("count", len(found)) > 0
    assert found[0].url == row.get("first", found[0].url)
    assert reader.count == len(found)
    assert read(body, 97)[1] == found


@pytest.mark.parametrize("row", CASES["inline"], ids=lambda row: row["name"])
@pytest.mark.parametrize("size", [1, 7, 65_536])
def test_a_broken_text_gives_what_can_be_saved(row: dict[str, Any], size: int) -> None:
    found = read(row["content"].encode(), size)[1]
    assert [entry.url for entry in found] == row["locs"]
    if "lastmods" in row:
        assert [entry.lastmod for entry in found] == [read_time(text) if text else None for text in row["lastmods"]]


# -- what an entry says -------------------------------------------------------------------------------------


def entry_of(inside: str) -> Entry:
    (entry,) = read(f"<urlset><url>{inside}</url></urlset>".encode())[1]
    return entry


@pytest.mark.parametrize(
    ("text", "priority"),
    [("0.8", 0.8), (" 1 ", 1.0), ("0", 0.0), ("1.1", None), ("-1", None), ("high", None), ("nan", None)],
)
def test_a_priority_is_a_number_from_0_to_1(text: str, priority: float | None) -> None:
    assert entry_of(f"<loc>/a</loc><priority>{text}</priority>").priority == priority


def test_an_entry_keeps_pictures_films_and_other_languages() -> None:
    entry = entry_of(
        "<loc>/a</loc><image:image><image:loc>/p.jpg</image:loc><image:title>/no</image:title></image:image>"
        "<video:video><video:content_loc>/f.mp4</video:content_loc><video:player_loc>/no</video:player_loc></video:video>"
        '<xhtml:link rel="alternate" hreflang="de" href="/de"/><xhtml:link rel="alternate" href="/no"/>'
        '<xhtml:link rel="alternate" hreflang="fr"/><xhtml:link rel="stylesheet" hreflang="x" href="/no"/>'
    )
    assert entry == Entry("/a", media=("/p.jpg", "/f.mp4"), alternates=("/de",))


def test_a_picture_is_known_by_its_vocabulary_and_not_by_its_prefix() -> None:
    body = (
        '<s:urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://elsewhere.test/"'
        " xmlns:x='http://www.google.com/schemas/sitemap-image/1.1'><s:url><s:loc>/a</s:loc>"
        "<x:loc>/p.jpg</x:loc><image:loc>/no</image:loc><loc>/b</loc></s:url></s:urlset>"
    )
    assert read(body.encode())[1] == [Entry("/a", media=("/p.jpg",)), Entry("/b")]


def test_extras_of_one_entry_are_capped() -> None:
    many = "<image:loc>/p</image:loc>" * (EXTRAS + 5)
    many += '<xhtml:link rel="alternate" hreflang="de" href="/de"/>' * (EXTRAS + 5)
    entry = entry_of(f"<loc>/a</loc>{many}")
    assert len(entry.media) == len(entry.alternates) == EXTRAS


def test_more_names_than_are_remembered_are_still_read() -> None:
    odd = "".join(f'<n{number}:x xmlns:n{number}="y"/>' for number in range(EXTRAS + 9))
    odd += "".join(f"<m{number}/>" for number in range(EXTRAS + 9))
    assert urls(f"<urlset><url>{odd}<loc>/a</loc></url></urlset>") == ["/a"]


@pytest.mark.parametrize(
    ("inside", "found"),
    [
        ("<url><loc></loc></url>", []),
        ("<url><lastmod>2020</lastmod></url>", []),
        ("<loc>/a</loc><loc>/b</loc>", ["/a", "/b"]),
        ("<lastmod>2020-01-01</lastmod><url><loc>/a</loc></url>", ["/a"]),
        ("<url>http://a.test/</url>", ["http://a.test/"]),
        ("<url>nothing</url>", []),
        ("<url><loc>/a?x=1&y=2&amp;z</loc></url>", ["/a?x=1&y=2&z"]),
        ("<url><loc>/a</url><url><loc>/b</loc></url>", ["/a/b"]),
        ("<URL><Loc>/a</LOC></Url>", ["/a"]),
        ("</url></url><url><loc>/a</loc></url>", ["/a"]),
        ("<url><changefreq>http://a.test/</changefreq></url>", []),
    ],
)
def test_markup_that_does_not_match_is_read_as_far_as_it_goes(inside: str, found: list[str]) -> None:
    assert urls(f"<urlset>{inside}</urlset>") == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("<urlset><url><loc>/a</loc></url><url><loc>/b", ["/a"]),
        ("<urlset><url><loc>/a</loc></url><url><loc>/b<", ["/a", "/b"]),
        ("<urlset><url><loc>/a</loc><lastmod>2020", ["/a"]),
        ("http://a.test/1\nhttp://a.test/2", ["http://a.test/1", "http://a.test/2"]),
    ],
)
def test_an_address_that_the_end_cut_through_is_left_out(body: str, found: list[str]) -> None:
    assert urls(body) == found


def test_an_address_that_is_too_long_is_left_out() -> None:
    long = "http://a.test/" + "x" * ADDRESS
    assert urls(f"<urlset><url><loc>{long}</loc></url><url>{long}</url><url><loc>/a</loc></url></urlset>") == ["/a"]
    assert urls(f"{long}\nhttp://a.test/\n{long}", size=100) == ["http://a.test/"]


# -- feeds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (
            '<rss xmlns:atom="http://www.w3.org/2005/Atom"><channel><link>/front</link><item>'
            '<atom:link href="/self" rel="self"/><link>/a</link><guid>http://a.test/g</guid></item></channel></rss>',
            ["/a"],
        ),
        ("<rss><item><title>t</title><guid>http://a.test/g</guid></item></rss>", ["http://a.test/g"]),
        ("<rss><item><guid>tag:1</guid></item></rss>", []),
        ("<rss><item>http://a.test/<description>http://a.test/x</description></item></rss>", ["http://a.test/"]),
        ("<rdf:RDF><item><link>/a</link></item></rdf:RDF>", ["/a"]),
        (
            '<feed><link href="/front"/><entry><link rel="edit" href="/e"/><link href="/a"/>'
            '<link rel="alternate" href="/b"/></entry></feed>',
            ["/a"],
        ),
        ('<atom:feed><atom:entry><atom:link href="/a"/></atom:entry></atom:feed>', ["/a"]),
    ],
)
def test_a_feed_gives_the_address_of_each_item(body: str, found: list[str]) -> None:
    assert urls(body) == found


def test_an_item_s_time_is_read_in_either_way_of_writing() -> None:
    rss = "<rss><item><link>/a</link><pubDate>Thu, 05 Jan 2017 13:34:51 +0100</pubDate></item></rss>"
    times = "<published>bad</published><updated>2017-01-05T12:34:51Z</updated>"
    atom = f"<feed><entry><link href='/a'/>{times}</entry></feed>"
    assert [read(body.encode())[1][0].lastmod for body in (rss, atom)] == [1_483_619_691_000] * 2


# -- what it is ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind", "problem"),
    [
        ("<urlset/>", Kind.URLSET, ""),
        ("<sitemapindex></sitemapindex>", Kind.INDEX, ""),
        ("", Kind.OTHER, "no sitemap and no feed"),
        (" \n", Kind.OTHER, "no sitemap and no feed"),
        ("words", Kind.OTHER, "no sitemap and no feed"),
        ("<html><body><a href='/x'>x</a></body></html>", Kind.OTHER, "no sitemap and no feed"),
        ("<html><url><loc>/a</loc></url>", Kind.OTHER, "no sitemap and no feed"),
        ("<!DOCTYPE html><html></html>", Kind.OTHER, "a document type declaration"),
        ("<urlset><!ENTITY x 'y'>", Kind.URLSET, "a document type declaration"),
    ],
)
def test_a_file_is_told_by_its_root(body: str, kind: Kind, problem: str) -> None:
    reader, found = read(body.encode())
    assert (reader.kind, reader.problem, found) == (kind, problem, [])
    assert reader.over is (bool(problem) and body.startswith("<"))


@pytest.mark.parametrize(
    ("body", "charset", "found"),
    [
        ("\ufeff<urlset><loc>/ä</loc></urlset>".encode(), "latin1", ["/ä"]),
        ("<urlset><loc>/ä</loc></urlset>".encode("latin-1"), "latin1", ["/ä"]),
        ('<?xml version="1.0" encoding="ISO-8859-1"?><urlset><loc>/ä</loc></urlset>'.encode("latin-1"), "", ["/ä"]),
        ("<urlset><loc>/ä</loc></urlset>".encode(), "no-such", ["/ä"]),
        ("<urlset><loc>/ä</loc></urlset>".encode("utf-16"), "", ["/ä"]),
        ('<?xml version="1.0"?><urlset><loc>/ä</loc></urlset>'.encode("utf-16-be"), "", ["/ä"]),
        (b"+ADw-urlset+AD4-", "utf-7", []),
        (b"<urlset><loc>/a\xff</loc></urlset>", "", ["/a\ufffd"]),
        (b"<urlset><loc>/a</loc></urlset>", "hz-gb-2312", []),
    ],
)
def test_its_encoding_is_what_mark_header_or_declaration_say(body: bytes, charset: str, found: list[str]) -> None:
    assert urls(body, charset=charset) == found
    assert urls(body, charset=charset, size=3) == found


@pytest.mark.parametrize(
    ("body", "looks"),
    [
        (b"<urlset>", True),
        (b'\xef\xbb\xbf\n<?xml version="1.0"?>\n<!-- <html> -->\n<sitemapindex xmlns="x">', True),
        (b"<sit:urlset xmlns:sit='x'>", True),
        (b"<urlsets>", False),
        (b"<html><urlset>", False),
        (b"<rss>", False),
        (b"", False),
    ],
)
def test_a_sitemap_shows_itself_at_its_start(body: bytes, looks: bool) -> None:
    assert looks_like_sitemap(body) is looks


# -- limits -------------------------------------------------------------------------------------------------


def test_a_file_gives_no_more_than_sitemaps_org_allows() -> None:
    body = b"<urlset>" + b"<url><loc>/a</loc></url>" * (ENTRIES + 1)
    reader, found = read(body)
    assert len(found) == ENTRIES
    assert reader.cut
    assert reader.over


@pytest.mark.parametrize(
    "body",
    [
        b"<urlset>" + b"<" * 500_000,
        b"<urlset>" + b'<a "' * 100_000,
        b"<urlset>" + b"<a \"'>>>>>>>>" * 50_000,
        b"<urlset>" + b"<url><loc>" * 50_000,
        b"<urlset><loc>" + b"x" * 500_000,
        b"<urlset><!--" + b"-" * 500_000,
        b"<urlset>" + b"&" * 500_000,
        b"<?xml " * 50_000,
        b"<!--><!-- " * 50_000,
        b"\r" * 500_000,
    ],
    ids=lambda body: str(body[-8:]),
)
def test_hostile_texts_cost_time_by_their_length(body: bytes) -> None:
    before = time.process_time()
    read(body)
    looks_like_sitemap(body)
    assert time.process_time() - before < 2


@given(
    st.lists(
        st.sampled_from(
            [
                "<urlset>",
                "<url>",
                "</url>",
                "<loc>",
                "</loc>",
                "http://a.test/",
                "<!--",
                "-->",
                "<![CDATA[",
                "]]>",
                "&amp;",
                "<?",
                "?>",
                "<image:loc>",
                "<a b='>",
                '">',
                "<",
                "\n",
                "ä",
                "<!D",
                "<rss>",
                "<link href='/x'/>",
                "<item>",
            ]
        ),
        max_size=30,
    ),
    st.integers(1, 9),
)
def test_any_text_is_read_alike_in_any_pieces(parts: list[str], size: int) -> None:
    body = "".join(parts).encode()
    whole, split = read(body), read(body, size)
    assert whole[1] == split[1]
    assert (whole[0].kind, whole[0].problem) == (split[0].kind, split[0].problem)
