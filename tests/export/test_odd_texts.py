"""Whatever pages say of themselves, a format stays whole and nothing of it is taken for markup, SQL or a field."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import parquet as reader

from crawlspace.archive.runs import Runs
from crawlspace.exports.columns import Column, Kind
from crawlspace.exports.graphml import Edge, Node, graphml
from crawlspace.exports.parquet import parquet
from crawlspace.exports.sitemap import Entry, Part, index
from crawlspace.exports.sqlite import sqlite
from crawlspace.exports.wacz import About, Package
from crawlspace.exports.wacz import Entry as PageEntry

ODD = st.text(st.sampled_from("<>&\"';\\]\n\r\t\0\x01\x7f\x85\u2028\ufffe\uffff\ud800\U0001f600 a-=`$()")) | st.text()
NASTY = ["]]><script>", "'; DROP TABLE urls; --", "\0\x1b[2J", "\ud800x", "&#0;&amp;", '"/><node id="x"/>']
SPACE = "{http://graphml.graphdrawing.org/xmlns}"


def seen(text: str) -> str:
    """What a reader of XML gets of a text."""
    kept = text.encode("utf-8", "replace").decode()
    allowed = [
        char
        if char in "\t\n\r" or " " <= char <= "\ud7ff" or "\ue000" <= char <= "\ufffd" or char > "\uffff"
        else "\ufffd"
        for char in kept
    ]
    return "".join(allowed)


@given(st.lists(st.tuples(ODD, ODD), max_size=4))
@example([(text, text) for text in NASTY])
def test_a_graph_is_xml_that_says_what_it_was_given(links: list[tuple[str, str]]) -> None:
    out = io.BytesIO()
    with Runs(Path()) as nodes, graphml(out, nodes) as add:
        for source, target in links:
            add(Edge(Node(source, target), Node(target, source), "hyperlink", nofollow=False))
    [graph] = ElementTree.fromstring(out.getvalue()).findall(f"{SPACE}graph")
    told = [node.findtext(f"{SPACE}data") or "" for node in graph.findall(f"{SPACE}node")]
    assert {*told} == {seen(text) for link in links for text in link}
    assert len(graph.findall(f"{SPACE}edge")) == len(links)


@given(st.lists(ODD, min_size=1, max_size=4))
@example(NASTY)
def test_a_sitemap_is_xml_that_says_what_it_was_given(urls: list[str]) -> None:
    out = io.BytesIO()
    part = Part(out)
    assert all(part.add(Entry(url, url)) for url in urls)
    part.end()
    told = [[data.text or "" for data in url] for url in ElementTree.fromstring(out.getvalue())]
    assert told == [[seen(url), seen(url)] if url else [""] for url in urls]
    assert len(ElementTree.fromstring(b"".join(index(urls)))) == len(urls)


@given(st.lists(ODD, max_size=4))
@example(NASTY)
def test_an_sqlite_database_holds_texts_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("odd") / "a.sqlite"
    with sqlite(path, 'na"me', [Column("url"), Column('od"d', Kind.JSON)]) as add:
        for text in texts:
            add((text, text))
    with closing(sqlite3.connect(path)) as database:
        stored = database.execute('SELECT * FROM "na""me"').fetchall()
    assert stored == [(text.encode("utf-8", "replace").decode(),) * 2 for text in texts]


@given(st.lists(ODD, max_size=4))
@example(NASTY)
def test_a_parquet_file_holds_texts_as_they_are(texts: list[str]) -> None:
    out = io.BytesIO()
    with parquet(out, [Column("url"), Column("n", Kind.WHOLE)]) as add:
        for n, text in enumerate(texts):
            add((text, n))
    assert reader.read_table(io.BytesIO(out.getvalue())).to_pylist() == [
        {"url": text.encode("utf-8", "replace").decode(), "n": n} for n, text in enumerate(texts)
    ]


@given(ODD)
def test_a_package_lists_pages_whatever_their_titles_are(title: str) -> None:
    out = io.BytesIO()
    package = Package(out, About(title, "test", "2026-01-01T00:00:00Z"), 1_700_000_000_000)
    with package.archive() as archive:
        archive.write(b"x")
    package.index([b"test,a)/ 20260101000000 {}\n"])
    package.pages([PageEntry("1", f"http://a.test/{title}", "2026-01-01T00:00:00Z", title)])
    package.close()
    with zipfile.ZipFile(io.BytesIO(out.getvalue())) as read:
        _, page = read.read("pages/pages.jsonl").split(b"\n")[:2]
        assert json.loads(page).get("title", "") == title
        assert json.loads(read.read("datapackage.json"))["title"] == title
        assert gzip.decompress(read.read("indexes/index.cdx.gz")).count(b"\n") == 1
