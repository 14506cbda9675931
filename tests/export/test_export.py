"""Exports: every URL once, true to the store, in each format."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from warcio.archiveiterator import ArchiveIterator

from crawlspace.app.export import COLUMNS, What
from crawlspace.cli.options import reading
from crawlspace.exports.tables import unguarded
from crawlspace.states import UrlState
from crawlspace.types import Counts

Command = Callable[..., Any]

HOME = "http://a.test/"
TARGET = "http://b.test/x,y%22z"


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def names(what: What) -> tuple[str, ...]:
    return tuple(column.name for column in COLUMNS[what])


def counts(crawl: Path) -> Counts:
    async def ask() -> Counts:
        async with reading(crawl) as (store, _):
            return await store.counts()

    return asyncio.run(ask())


@pytest.fixture
def exported(crawlspace: Command, crawl: Path, tmp_path: Path) -> Callable[..., bytes]:
    """What `crawlspace export` writes to a file of this name."""

    def run(name: str, *options: object) -> bytes:
        ran = crawlspace("export", crawl, "-o", tmp_path / name, *options)
        assert ran.code == 0, ran.err
        return (tmp_path / name).read_bytes()

    return run


def test_every_url_is_there_once_and_in_its_state(exported: Callable[..., bytes], crawl: Path) -> None:
    found = rows(exported("urls.jsonl").decode())
    assert all(tuple(row) == names(What.URLS) for row in found)
    # Two rows may share an address where the method differs; none does here.
    assert len({row["url"] for row in found}) == len(found)
    states = Counter(row["state"] for row in found)
    assert {state.name.lower(): n for state, n in counts(crawl).states.items()} == {
        state.name.lower(): states[state.name.lower()] for state in UrlState
    }
    assert set(states) == {state.name.lower() for state in UrlState}


def test_a_row_tells_what_became_of_a_url(exported: Callable[..., bytes]) -> None:
    found = {row["url"]: row for row in rows(exported("urls.jsonl").decode())}
    home = found[HOME]
    assert home["state"] == "done"
    assert (home["status"], home["mime"], home["size"], home["depth"]) == (200, "text/html", 99, 0)
    assert home["found_at"] == home["settled_at"] == "2023-11-14T22:13:20.123Z"
    assert home["meta"] == {"a": 1}
    assert (len(home["digest"]), home["parent"], home["copy_of"]) == (64, None, None)
    done = found["http://a.test/done?b=1&a=2"]
    assert (done["parent"], done["depth"], done["canonical"]) == (HOME, 1, "http://a.test/done?a=2&b=1")
    assert found["http://a.test/redirect"]["redirects_to"] == TARGET
    copies = [row for row in found.values() if row["copy_of"]]
    assert copies
    assert all(found[row["copy_of"]]["digest"] == row["digest"] for row in copies)
    dead = found["http://c.test/dead"]
    assert (dead["state"], dead["reason"], dead["status"], dead["attempts"]) == ("dead", "http_404", 404, 1)
    robots = found["http://b.test/robots"]
    assert (robots["state"], robots["reason"], robots["status"], robots["size"]) == ("skipped", "robots", None, None)
    retry = found["http://c.test/retry"]
    assert (retry["state"], retry["attempts"], retry["settled_at"], retry["file"]) == ("queued", 1, None, None)
    assert found["http://f.test/leased"]["state"] == "leased"


def test_a_selection_is_by_state_and_host(exported: Callable[..., bytes], crawlspace: Command, crawl: Path) -> None:
    everything = rows(exported("all.jsonl").decode())
    for states, host in ((["dead"], None), (["queued", "leased"], None), ([], "b.test"), (["done"], "D.test:8443")):
        options = [word for state in states for word in ("--state", state)] + (["--host", host] if host else [])
        wanted = [
            row["url"]
            for row in everything
            if (not states or row["state"] in states) and (host is None or row["host"] == host.lower())
        ]
        assert wanted
        assert exported("some.txt", "--force", *options).decode().splitlines() == wanted
    ran = crawlspace("export", crawl, "-o", "-", "--format", "txt", "--host", "unknown.test")
    assert (ran.code, ran.out, "no URL of the host" in ran.err) == (2, "", True)


def test_csv_holds_what_json_holds(exported: Callable[..., bytes]) -> None:
    wanted = rows(exported("urls.jsonl").decode())

    def text(value: object) -> str:
        if isinstance(value, dict):
            return json.dumps(value, separators=(",", ":"))
        return "" if value is None else str(value)

    plain = table(exported("raw.csv", "--raw").decode())
    assert plain == [{name: text(value) for name, value in row.items()} for row in wanted]
    safe = table(exported("safe.csv").decode())
    assert [{name: unguarded(cell) for name, cell in row.items()} for row in safe] == plain
    assert safe != plain


def test_what_came_from_the_web_is_no_formula_in_csv(exported: Callable[..., bytes]) -> None:
    found = {row["url"]: row for row in table(exported("urls.csv").decode())}
    assert found[HOME]["label"] == '\'=HYPERLINK("http://evil.test/","x")'
    assert found["http://a.test/done?b=1&a=2"]["mime"] == "'@SUM(1)"
    captures = table(exported("captures.csv", "--what", "captures").decode())
    assert {row["etag"] for row in captures} == {"'+1"}
    for row in [*found.values(), *captures]:
        assert not [cell for cell in row.values() if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


def test_compressed_lines_are_the_same_lines(exported: Callable[..., bytes]) -> None:
    packed = exported("urls.jsonl.zst")
    assert zstandard.ZstdDecompressor().stream_reader(packed).read() == exported("urls.jsonl")


def test_a_list_of_urls_is_one_address_a_line(exported: Callable[..., bytes]) -> None:
    wanted = [row["url"] for row in rows(exported("urls.jsonl").decode())]
    assert exported("urls.txt").decode().split("\n") == [*wanted, ""]


def test_captures_are_rows_that_point_into_the_archive(exported: Callable[..., bytes], crawl: Path) -> None:
    found = rows(exported("captures.jsonl", "--what", "captures").decode())
    assert all(tuple(row) == names(What.CAPTURES) for row in found)
    assert {row["state"] for row in found} == {"done", "stored", "redirected", "dead"}
    for row in found:
        with (crawl / "archive" / row["file"]).open("rb") as file:
            file.seek(row["offset"])
            record = next(iter(ArchiveIterator(io.BytesIO(file.read(row["length"])))))
        assert record.rec_headers.get_header("WARC-Target-URI") == row["url"]
        assert record.http_headers.get_statuscode() == str(row["status"])


def test_links_are_those_of_the_pages_and_the_redirects(exported: Callable[..., bytes]) -> None:
    found = rows(exported("links.jsonl", "--what", "links").decode())
    assert all(tuple(row) == names(What.LINKS) for row in found)
    assert {(row["source"], row["target"], row["relation"], row["nofollow"], row["unusable"]) for row in found} == {
        (HOME, "http://a.test/done?b=1&a=2", "hyperlink", False, None),
        (HOME, TARGET, "hyperlink", True, None),
        (HOME, "http://[x/", "hyperlink", False, "host"),
        ("http://a.test/redirect", TARGET, "redirect", False, None),
    }
    assert {(row["canonical"], row["host"]) for row in found if row["unusable"]} == {(None, None)}


def test_a_subset_of_the_archive_holds_the_records_byte_for_byte(
    exported: Callable[..., bytes], crawl: Path, tmp_path: Path
) -> None:
    data = exported("some.warc.gz", "--host", "c.test")
    wanted = [row for row in rows(exported("c.jsonl", "--host", "c.test").decode()) if row["file"]]
    (file,) = (crawl / "archive").glob("*.warc.gz")
    whole = file.read_bytes()
    for row in wanted:
        assert whole[row["offset"] : row["offset"] + row["length"]] in data
    records = list(ArchiveIterator(io.BytesIO(data)))
    assert [record.rec_type for record in records] == ["warcinfo", *["response", "request"] * len(wanted)]
    assert [each.rec_headers.get_header("WARC-Target-URI") for each in records[1::2]] == [
        row["url"] for row in wanted
    ]
    check = [sys.executable, "-W", "ignore", "-m", "warcio.cli", "check", "-v", str(tmp_path / "some.warc.gz")]
    told = subprocess.run(check, capture_output=True, timeout=60, cwd=tmp_path, check=False)
    assert told.returncode == 0, told.stdout
    assert told.stdout.count(b"digest pass") >= 2 * len(wanted)


def test_an_index_of_a_selection_is_a_part_of_the_whole_index(
    exported: Callable[..., bytes], crawlspace: Command, crawl: Path
) -> None:
    crawlspace("index", crawl)
    whole = (crawl / "archive" / "index.cdxj").read_bytes().splitlines()
    assert exported("all.cdxj").splitlines() == whole
    part = exported("part.cdxj", "--state", "dead", "--state", "stored").splitlines()
    assert part == [line for line in whole if b"/dead" in line or b"/stored" in line]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.zst", "a.csv", "a.txt", "a.cdxj", "a.warc.gz"])
def test_an_empty_crawl_gives_an_empty_file(crawlspace: Command, empty: Path, tmp_path: Path, name: str) -> None:
    ran = crawlspace("export", empty, "-o", tmp_path / name, "--json")
    assert json.loads(ran.out) == {"rows": 0, "damaged": 0, "damages": []}
    data = (tmp_path / name).read_bytes()
    if name.endswith(".zst"):
        data = zstandard.ZstdDecompressor().stream_reader(data).read()
    assert data.splitlines()[1 if name == "a.csv" else 0 :] == []


def test_captures_that_cannot_be_read_are_told_and_left_out(crawlspace: Command, crawl: Path, tmp_path: Path) -> None:
    (file,) = (crawl / "archive").glob("*.warc.gz")
    found = rows(crawlspace("export", crawl, "-o", "-", "--format", "jsonl", "--what", "captures").out)
    data = bytearray(file.read_bytes())
    home = next(row for row in found if row["url"] == HOME)
    data[home["offset"] + home["length"] // 2] ^= 0xFF
    file.write_bytes(data)
    for name, options in (("a.cdxj", ()), ("a.warc.gz", ()), ("a.jsonl", ("--what", "links"))):
        ran = crawlspace("export", crawl, "-o", tmp_path / name, *options, "--json")
        told = json.loads(ran.out)
        assert (ran.code, told["damaged"]) == (7, 1)
        assert HOME in told["damages"][0]
        assert told["rows"] == (1 if options else len(found) - 1)
        assert HOME in crawlspace("export", crawl, "-o", tmp_path / name, *options, "--force").err
    file.unlink()
    ran = crawlspace("export", crawl, "-o", tmp_path / "b.warc.gz", "--json")
    assert json.loads(ran.out)["damaged"] == len(found)
    assert (tmp_path / "b.warc.gz").read_bytes() == b""


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-o", "urls"], "tells no format"),
        (["-o", "urls.xls"], ".jsonl.zst, .jsonl.gz, .jsonl, .csv"),
        (["-o", "-"], "say --format"),
        (["-o", "a.cdxj", "--what", "urls"], "holds captures"),
        (["-o", "a.warc.gz", "--what", "links"], "holds captures"),
        (["-o", "a.txt", "--what", "links"], "one column"),
        (["-o", "a.csv", "--state", "lost"], "is not one of"),
        (["-o", "no/such/a.csv"], "cannot be written"),
        (["--format", "csv"], "Missing option '-o'"),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_no_file(
    crawlspace: Command, crawl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = crawlspace("export", crawl, *options)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["crawl"]


def test_an_earlier_file_is_never_written_over_unless_asked(
    crawlspace: Command, exported: Callable[..., bytes], crawl: Path, tmp_path: Path
) -> None:
    first = exported("urls.txt")
    ran = crawlspace("export", crawl, "-o", tmp_path / "urls.txt", "--state", "dead")
    assert (ran.code, "--force" in ran.err) == (2, True)
    assert (tmp_path / "urls.txt").read_bytes() == first
    assert exported("urls.txt", "--state", "dead", "--force") == b"http://c.test/dead\n"


def test_the_suffix_gives_way_to_the_option(exported: Callable[..., bytes]) -> None:
    assert exported("urls.dat", "--format", "txt") == exported("urls.TXT")


def test_standard_output_holds_the_export_and_nothing_else(crawlspace: Command, crawl: Path) -> None:
    ran = crawlspace("export", crawl, "-o", "-", "--format", "txt", "--state", "dead")
    assert ran.out == "http://c.test/dead\n"
    assert ran.err == "1 urls: -\n"
    told = crawlspace("export", crawl, "-o", "-", "--format", "txt", "--state", "dead", "--json").err
    assert json.loads(told)["rows"] == 1


def test_where_no_crawl_was_started_nothing_is_exported(crawlspace: Command, crawl: Path, tmp_path: Path) -> None:
    none = crawlspace("export", tmp_path / "none", "-o", tmp_path / "a.csv")
    assert (none.code, "there is no crawl directory" in none.err) == (2, True)
    (crawl / "frontier.toml").write_text("address = 'postgresql://h/d'\nworker = 'w'\n")
    both = crawlspace("export", crawl, "-o", tmp_path / "a.csv")
    assert (both.code, "has a frontier of its own" in both.err) == (2, True)
