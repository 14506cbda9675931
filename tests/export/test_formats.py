"""Exports in the formats of other programs, read back by those programs' own readers."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pyarrow import parquet
from warcio.archiveiterator import ArchiveIterator

from crawlspace.app.export import COLUMNS, What
from crawlspace.exports.wacz import LINES_AT_ONCE

Command = Callable[..., Any]
Exported = Callable[..., bytes]

HOME = "http://a.test/"
TARGET = "http://b.test/x,y%22z"


def rows(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


@pytest.fixture
def exported(crawlspace: Command, crawl: Path, tmp_path: Path) -> Exported:
    """What `crawlspace export` writes to a file of this name."""

    def run(name: str, *options: object) -> bytes:
        ran = crawlspace("export", crawl, "-o", tmp_path / name, *options)
        assert ran.code == 0, ran.err
        return (tmp_path / name).read_bytes()

    return run


def records(data: bytes) -> list[tuple[str, dict[str, str], bytes]]:
    """Type, fields and block of each record."""
    return [
        (record.rec_type, dict(record.rec_headers.headers), record.raw_stream.read())
        for record in ArchiveIterator(io.BytesIO(data))
    ]


def test_compressed_lines_are_the_same_lines_in_gzip(exported: Exported) -> None:
    assert gzip.decompress(exported("urls.jsonl.gz")) == exported("urls.jsonl")


@pytest.mark.parametrize("what", [each for each in What if each is not What.RECORDS])
def test_parquet_and_sqlite_hold_what_json_holds(exported: Exported, tmp_path: Path, what: What) -> None:
    wanted = rows(exported("a.jsonl", "--what", what))
    assert wanted
    exported("a.parquet", "--what", what)
    exported("a.sqlite", "--what", what)
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as database:
        database.row_factory = sqlite3.Row
        stored = [dict(row) for row in database.execute(f"SELECT * FROM {what}")]
        assert database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    columnar = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    for row in wanted:
        for name, value in row.items():
            row[name] = json.dumps(value, separators=(",", ":")) if isinstance(value, dict) else value
    assert stored == wanted
    for row in columnar:
        for name, value in row.items():
            if hasattr(value, "isoformat"):
                row[name] = value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert columnar == wanted
    assert [*columnar[0]] == [column.name for column in COLUMNS[what]]


def test_a_page_has_its_title_and_its_text(exported: Exported) -> None:
    found = {row["url"]: row for row in rows(exported("a.jsonl", "--what", "pages"))}
    assert found[HOME]["title"] == "Home"
    assert found[HOME]["text"] == "one\ntwo\nme\nodd"
    assert "http://c.test/dead" not in found
    assert found["http://b.test/x,y%22z"]["text"] == "hello"


def test_of_pages_with_the_same_content_one_is_enough(exported: Exported) -> None:
    everything = rows(exported("a.jsonl", "--what", "pages"))
    copies = [row for row in everything if row["copy_of"]]
    assert copies
    kept = rows(gzip.decompress(exported("b.jsonl.gz", "--what", "pages", "--unique")))
    assert [row for row in everything if not row["copy_of"]] == kept


GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"


def facts_of(element: ElementTree.Element) -> dict[str, str]:
    return {data.attrib["key"]: data.text or "" for data in element}


def test_a_graph_has_a_node_for_each_page_and_an_edge_for_each_link(exported: Exported) -> None:
    [graph] = ElementTree.fromstring(exported("links.graphml")).findall(f"{GRAPHML}graph")
    nodes = {node.attrib["id"]: facts_of(node) for node in graph.findall(f"{GRAPHML}node")}
    assert len(nodes) == len(graph.findall(f"{GRAPHML}node")) == len({facts["url"] for facts in nodes.values()})
    edges = {
        (nodes[edge.attrib["source"]]["url"], nodes[edge.attrib["target"]]["url"], *facts_of(edge).values())
        for edge in graph.findall(f"{GRAPHML}edge")
    }
    usable = [row for row in rows(exported("links.jsonl", "--what", "links")) if not row["unusable"]]
    assert edges == {
        (row["source_canonical"], row["canonical"], row["relation"], *["true"] * row["nofollow"]) for row in usable
    }
    assert {facts["host"] for facts in nodes.values()} == {"a.test", "b.test"}


def test_a_sitemap_lists_pages_that_were_read_and_no_copies(exported: Exported) -> None:
    tree = ElementTree.fromstring(exported("sitemap.xml"))
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    listed = [url.findtext(f"{space}loc") for url in tree]
    done = [row for row in rows(exported("urls.jsonl", "--state", "done")) if not row["copy_of"]]
    assert listed == [row["url"] for row in done]
    assert HOME in listed


def test_texts_are_conversion_records_that_name_their_source(exported: Exported) -> None:
    pages = rows(exported("pages.jsonl", "--what", "pages"))
    first, *found = records(exported("crawl.warc.wet.gz"))
    assert first[0] == "warcinfo"
    assert [kind for kind, _, _ in found] == ["conversion"] * len(pages)
    sources = {
        fields["WARC-Record-ID"]: fields for kind, fields, _ in records(exported("all.warc.gz")) if kind == "response"
    }
    for page, (_, fields, block) in zip(pages, found, strict=True):
        assert fields["WARC-Target-URI"] == page["url"] == sources[fields["WARC-Refers-To"]]["WARC-Target-URI"]
        assert block.decode() == page["text"] + "\n"
        assert fields["WARC-Date"] == page["at"]
        assert fields["Content-Type"] == "text/plain"


def test_facts_are_metadata_records_of_each_capture(exported: Exported) -> None:
    captures = rows(exported("captures.jsonl", "--what", "captures"))
    _, *found = records(exported("crawl.wat.gz"))
    assert len(found) == len(captures)
    for capture, (kind, fields, block) in zip(captures, found, strict=True):
        told = json.loads(block)
        assert (kind, fields["WARC-Target-URI"]) == ("metadata", capture["url"])
        assert told["Container"]["Filename"] == capture["file"]
        assert told["Container"]["Offset"] == str(capture["offset"])
        http = told["Envelope"]["Payload-Metadata"]["HTTP-Response-Metadata"]
        assert http["Response-Message"]["Status"] == str(capture["status"])
        if capture["url"] == HOME:
            page = http["HTML-Metadata"]
            assert page["Head"]["Title"] == "Home"
            assert {"path": "A@/href", "url": "/done?b=1&a=2"} in page["Links"]
            assert http["Headers"]["Content-Type"].startswith("text/html")


def test_a_package_passes_the_validator(exported: Exported, tmp_path: Path) -> None:
    exported("crawl.wacz")
    script = "import sys; from wacz.main import main; sys.exit(main(['validate', '-f', sys.argv[1]]))"
    check = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "crawl.wacz")]
    ran = subprocess.run(check, capture_output=True, text=True, timeout=100, check=False)
    assert (ran.returncode, "valid" in ran.stdout) == (0, True), ran.stdout + ran.stderr


def test_a_package_is_what_a_browser_needs_to_replay_it(exported: Exported, tmp_path: Path) -> None:
    """WACZ 1.1.1: records stored as they are; an index in blocks; each line leads to its record."""
    data = exported("crawl.wacz")
    wanted = {row["url"] for row in rows(exported("captures.jsonl", "--what", "captures"))}
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        kinds = {info.filename: info.compress_type for info in package.infolist()}
        assert kinds["archive/data.warc.gz"] == kinds["indexes/index.cdx.gz"] == zipfile.ZIP_STORED
        warc = package.read("archive/data.warc.gz")
        blocks = package.read("indexes/index.cdx.gz")
        table = package.read("indexes/index.idx").splitlines()
        pages = rows(package.read("pages/pages.jsonl"))
    head, *entries = table
    assert json.loads(head.split(b" ", 2)[2]) == {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
    lines: list[bytes] = []
    for entry in entries:
        key, _, facts = entry.split(b" ", 2)
        place = json.loads(facts)
        block = gzip.decompress(blocks[place["offset"] : place["offset"] + place["length"]]).splitlines()
        assert block[0].startswith(key)
        assert len(block) <= LINES_AT_ONCE
        lines += block
    assert lines == sorted(lines)
    assert len(lines) == len(wanted)
    for line in lines:
        facts = json.loads(line.split(b" ", 2)[2])
        assert facts["filename"] == "data.warc.gz"
        slice_ = warc[int(facts["offset"]) : int(facts["offset"]) + int(facts["length"])]
        [(kind, fields, _)] = records(slice_)
        assert (kind, fields["WARC-Target-URI"]) == ("response", facts["url"])
    assert pages[0]["format"] == "json-pages-1.0"
    assert [(page["url"], page["title"]) for page in pages[1:]] == [(HOME, "Home")]


@pytest.mark.parametrize("suffix", ["jsonl.gz", "parquet", "sqlite", "graphml", "xml", "wet.gz", "wat.gz", "wacz"])
def test_an_empty_crawl_gives_a_whole_file_of_nothing(
    crawlspace: Command, empty: Path, tmp_path: Path, suffix: str
) -> None:
    ran = crawlspace("export", empty, "-o", tmp_path / f"a.{suffix}", "--json")
    assert json.loads(ran.out) == {"rows": 0, "damaged": 0, "damages": []}
    data = (tmp_path / f"a.{suffix}").read_bytes()
    match suffix:
        case "jsonl.gz":
            assert gzip.decompress(data) == b""
        case "parquet":
            assert parquet.read_table(tmp_path / "a.parquet").num_rows == 0
        case "sqlite":
            with closing(sqlite3.connect(tmp_path / "a.sqlite")) as database:
                assert database.execute("SELECT count(*) FROM urls").fetchone() == (0,)
        case "graphml" | "xml":
            assert ElementTree.fromstring(data) is not None
        case "wacz":
            assert zipfile.ZipFile(io.BytesIO(data)).testzip() is None
        case _:
            assert [kind for kind, _, _ in records(data)] == ["warcinfo"]


@pytest.mark.parametrize("form", ["sqlite", "wacz"])
def test_files_that_need_a_disk_reach_standard_output_too(crawl: Path, exported: Exported, form: str) -> None:
    command = [sys.executable, "-m", "crawlspace", "export", str(crawl), "-o", "-", "--format", form]
    ran = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    if form == "wacz":
        assert zipfile.ZipFile(io.BytesIO(ran.stdout)).testzip() is None
    else:
        assert ran.stdout == exported(f"a.{form}")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-o", "a.wacz", "--what", "urls"], "holds captures"),
        (["-o", "a.graphml", "--what", "urls"], "a graph has links"),
        (["-o", "a.xml", "--what", "links"], "a sitemap has URLs"),
        (["-o", "a.wet.gz", "--pipeline", "json:dumps"], "no rows that a pipeline"),
        (["-o", "a.csv", "--pipeline", "dumps"], "names no stage"),
        (["-o", "a.csv", "--pipeline", "no_such_module:x"], "cannot be imported"),
        (["-o", "a.csv", "--pipeline", "json:nothing"], "there is no 'nothing'"),
        (["-o", "a.csv", "--pipeline", "math:pi"], "cannot be called"),
    ],
)
def test_what_has_no_such_form_is_said(
    crawlspace: Command, crawl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = crawlspace("export", crawl, *options)
    assert (ran.code, told in ran.err) == (2, True), ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["crawl"]
