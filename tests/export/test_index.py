"""The index of an archive: sorted, complete, and true to the files."""

from __future__ import annotations

import importlib.util
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.dataset
import pytest
from warcio.archiveiterator import ArchiveIterator

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.index import index_table
from crawlspace.archive.members import deflate
from crawlspace.archive.record import encode, sha1_name
from crawlspace.settings import load

Command = Callable[..., Any]


class Line(NamedTuple):
    """A line of an index, taken apart."""

    key: str
    stamp: str
    facts: dict[str, str]


def lines(data: bytes) -> list[Line]:
    return [
        Line(key, stamp, json.loads(rest)) for key, stamp, rest in (each.decode().split(" ", 2) for each in raw(data))
    ]


def raw(data: bytes) -> list[bytes]:
    assert data == b"" or data.endswith(b"\n")
    return data.split(b"\n")[:-1]


def opened(line: Line, archive: Path) -> Any:
    """The record to which a line points, read by another program."""
    offset, length = int(line.facts["offset"]), int(line.facts["length"])
    with (archive / line.facts["filename"]).open("rb") as file:
        file.seek(offset)
        return next(iter(ArchiveIterator(io.BytesIO(file.read(length)))))


def responses(archive: Path) -> Iterator[tuple[str, str]]:
    """URL and digest of every response, as another program reads them."""
    for path in sorted(archive.glob("*.warc.gz")):
        records = ArchiveIterator(io.BytesIO(path.read_bytes()))
        heads = [record.rec_headers for record in records if record.rec_type == "response"]
        yield from ((head.get_header("WARC-Target-URI"), head.get_header("WARC-Payload-Digest")) for head in heads)


def test_every_capture_has_a_line_that_opens_at_its_place(crawlspace: Command, crawl: Path) -> None:
    ran = crawlspace("index", crawl)
    assert ran.code == 0, ran.err
    data = (crawl / "archive" / "index.cdxj").read_bytes()
    assert raw(data) == sorted(raw(data))
    found = lines(data)
    assert f"{len(found)} captures of 1 archive files" in ran.out
    for line in found:
        record = opened(line, crawl / "archive")
        assert record.rec_headers.get_header("WARC-Target-URI") == line.facts["url"]
        assert record.rec_headers.get_header("WARC-Payload-Digest") == "sha1:" + line.facts["digest"]
        assert record.http_headers.get_statuscode() == line.facts["status"]
    assert sorted((line.facts["url"], "sha1:" + line.facts["digest"]) for line in found) == sorted(
        responses(crawl / "archive")
    )


def test_a_line_says_what_readers_ask_for(crawlspace: Command, crawl: Path) -> None:
    crawlspace("index", crawl)
    found = {line.facts["url"]: line for line in lines((crawl / "archive" / "index.cdxj").read_bytes())}
    home = found["http://a.test/"]
    assert (home.key, home.stamp) == ("test,a)/", "20231114221320")
    assert (home.facts["mime"], home.facts["status"]) == ("text/html", "200")
    form = found["http://c.test/form"]
    assert form.key == "test,c)/form?__wb_method=post&q=1&r=x%20y"
    assert (form.facts["method"], form.facts["requestBody"]) == ("POST", "q=1&r=x y")


def test_an_index_is_made_again_from_the_files_alone(crawlspace: Command, crawl: Path) -> None:
    crawlspace("index", crawl)
    before = (crawl / "archive" / "index.cdxj").read_bytes()
    for path in crawl.iterdir():
        if path.is_file():
            path.unlink()
    ran = crawlspace("index", crawl, "--json")
    assert ran.code == 0
    assert json.loads(ran.out) == {
        "files": 1,
        "captures": len(raw(before)),
        "torn": 0,
        "damaged": 0,
        "damages": [],
    }
    assert (crawl / "archive" / "index.cdxj").read_bytes() == before


def test_each_file_can_have_an_index_of_its_own(crawlspace: Command, crawl: Path) -> None:
    (file,) = (crawl / "archive").glob("*.warc.gz")
    file.with_name("second.warc.gz").write_bytes(file.read_bytes())
    assert crawlspace("index", crawl, "--per-file").code == 0
    assert crawlspace("index", crawl).code == 0
    merged = raw((crawl / "archive" / "index.cdxj").read_bytes())
    single = [raw(path.read_bytes()) for path in (crawl / "archive").glob("*.cdxj") if path.name != "index.cdxj"]
    assert len(single) == 2
    assert all(each == sorted(each) for each in single)
    assert sorted(line for each in single for line in each) == merged


def test_an_index_goes_where_it_is_wanted_and_over_nothing(crawlspace: Command, crawl: Path, tmp_path: Path) -> None:
    target = tmp_path / "my.cdxj"
    assert crawlspace("index", crawl, "-o", target).code == 0
    refused = crawlspace("index", crawl, "-o", target)
    assert (refused.code, "--force" in refused.err) == (2, True)
    assert crawlspace("index", crawl, "-o", target, "--force").code == 0
    told = crawlspace("index", crawl, "-o", "-")
    assert told.out.encode() == target.read_bytes()
    assert "captures of 1 archive files" in told.err
    both = crawlspace("index", crawl, "-o", target, "--per-file")
    assert (both.code, "exclude each other" in both.err) == (2, True)


def test_a_torn_end_is_no_damage_and_what_comes_before_is_indexed(crawlspace: Command, crawl: Path) -> None:
    (file,) = (crawl / "archive").glob("*.warc.gz")
    crawlspace("index", crawl)
    whole = lines((crawl / "archive" / "index.cdxj").read_bytes())
    last = max(whole, key=lambda line: int(line.facts["offset"]))
    with file.open("rb+") as writing:
        writing.truncate(int(last.facts["offset"]) + int(last.facts["length"]) - 5)
    ran = crawlspace("index", crawl, "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["torn"] == 1
    assert lines((crawl / "archive" / "index.cdxj").read_bytes()) == [line for line in whole if line is not last]


def test_damage_is_told_and_the_other_files_are_indexed(crawlspace: Command, crawl: Path) -> None:
    (file,) = (crawl / "archive").glob("*.warc.gz")
    data = bytearray(file.read_bytes())
    whole = json.loads(crawlspace("index", crawl, "--json").out)["captures"]
    data[len(data) // 2] ^= 0xFF
    file.with_name("damaged.warc.gz").write_bytes(data)
    ran = crawlspace("index", crawl, "--json")
    told = json.loads(ran.out)
    assert ran.code == 7
    assert told["damaged"] == 1
    assert "of damaged.warc.gz cannot be read" in told["damages"][0]
    assert whole < told["captures"] < 2 * whole
    assert "damaged.warc.gz" in crawlspace("index", crawl).err


def test_records_that_make_no_capture_are_told_one_by_one(crawlspace: Command, crawl: Path) -> None:
    def response(url: str, date: str, **more: str) -> bytes:
        block = b"HTTP/1.1 200 OK\r\n\r\nx"
        fields = {"WARC-Type": "response", "WARC-Target-URI": url, "WARC-Date": date, **more}
        return deflate(encode(fields.items(), block), 1)

    good = response("http://z.test/", "2024-01-02T03:04:05Z")
    odd = response("http://z.test/odd", "yesterday")
    bare = response("", "2024-01-02T03:04:05Z")
    wrong = response("http://z.test/", "2024-01-02T03:04:05Z", **{"WARC-Block-Digest": sha1_name(b"another")})
    (crawl / "archive" / "foreign.warc.gz").write_bytes(odd + wrong + bare + good)
    told = json.loads(crawlspace("index", crawl, "--json").out)
    assert {text.partition("read: ")[2] for text in told["damages"]} == {
        "its date is 'yesterday'",
        "its block has another digest",
        "it has no WARC-Target-URI",
    }
    (line,) = [
        each for each in lines((crawl / "archive" / "index.cdxj").read_bytes()) if "z.test" in each.facts["url"]
    ]
    assert (line.key, line.stamp, line.facts["mime"]) == ("test,z)/", "20240102030405", "unk")
    assert "sha1:" + line.facts["digest"] == sha1_name(b"x")


def test_files_that_are_no_archives_of_ours_are_left_alone(crawlspace: Command, crawl: Path) -> None:
    archive = crawl / "archive"
    (archive / "notes.txt").write_text("mine")
    (archive / "link.warc.gz").symlink_to("/dev/zero")
    assert json.loads(crawlspace("index", crawl, "--json").out)["files"] == 1
    (archive / "text.warc.gz").write_text("no archive")
    assert crawlspace("index", crawl).code == 7


def test_without_an_archive_there_is_nothing_to_index(crawlspace: Command, tmp_path: Path) -> None:
    ran = crawlspace("index", tmp_path)
    assert (ran.code, "there is no archive" in ran.err) == (2, True)
    (tmp_path / "archive").mkdir()
    assert crawlspace("index", tmp_path).code == 0
    assert (tmp_path / "archive" / "index.cdxj").read_bytes() == b""


def table(crawl: Path) -> list[dict[str, Any]]:
    found = pyarrow.dataset.dataset(crawl / "captures", partitioning="hive").to_table().to_pylist()
    return sorted(found, key=lambda row: (row["file"], row["offset"]))


def test_the_table_of_captures_has_a_row_for_each_line_of_the_index(crawlspace: Command, crawl: Path) -> None:
    crawlspace("index", crawl)
    ran = crawlspace("index", crawl, "--table")
    assert (ran.code, "captures of 1 archive files" in ran.out) == (0, True), ran.err
    assert [path.name for path in crawl.glob("captures*")] == ["captures"]
    indexed = [line.facts for line in lines((crawl / "archive" / "index.cdxj").read_bytes())]
    found = table(crawl)
    assert sorted((row["url"], row["offset"], row["length"], row["payload_digest"]) for row in found) == sorted(
        (each["url"], int(each["offset"]), int(each["length"]), each["digest"]) for each in indexed
    )
    again = crawlspace("index", crawl, "--table", "--json")
    assert json.loads(again.out)["captures"] == len(found)
    assert table(crawl) == found


@pytest.mark.parametrize("call", range(1, 12))
def test_a_kill_while_the_table_is_made_leaves_the_old_or_none_and_the_next_call_the_same_rows(
    crawlspace: Command, crawl: Path, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before each change of a name, in turn."""
    crawlspace("index", crawl, "--table")
    before = table(crawl)
    calls = 0

    def counted(name: str) -> Callable[..., Any]:
        real = getattr(Path, name)

        def method(self: Path, *rest: Any, **named: Any) -> Any:
            nonlocal calls
            calls += self.is_relative_to(crawl)
            if calls == call:
                raise KeyboardInterrupt
            return real(self, *rest, **named)

        return method

    with monkeypatch.context() as patched:
        for name in ("rename", "replace", "mkdir", "touch", "unlink"):
            patched.setattr(Path, name, counted(name))
        place = CrawlDirectory(crawl)
        try:
            index_table(place, load(place.effective, {}))
        except KeyboardInterrupt:
            assert not (crawl / "captures").exists() or table(crawl) == before
        else:
            assert calls < call
    assert crawlspace("index", crawl, "--table").code == 0
    assert table(crawl) == before
    assert [path.name for path in crawl.glob("captures*")] == ["captures"]


def test_the_table_is_not_made_while_the_crawl_runs(crawlspace: Command, crawl: Path) -> None:
    with CrawlDirectory(crawl).locked():
        ran = crawlspace("index", crawl, "--table")
    assert (ran.code, "is in use" in ran.err) == (2, True)
    both = crawlspace("index", crawl, "--table", "--per-file")
    assert (both.code, "exclude each other" in both.err) == (2, True)


def test_damage_is_told_and_the_rest_is_in_the_table(crawlspace: Command, crawl: Path) -> None:
    (file,) = (crawl / "archive").glob("*.warc.gz")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.with_name("damaged.warc.gz").write_bytes(data)
    ran = crawlspace("index", crawl, "--table")
    assert (ran.code, "damaged.warc.gz" in ran.err) == (7, True)
    assert {row["file"] for row in table(crawl)} == {file.name, "damaged.warc.gz"}


@pytest.mark.skipif(importlib.util.find_spec("pywb") is None, reason="pywb is not installed")
def test_the_lines_are_those_that_pywb_makes(crawlspace: Command, crawl: Path, tmp_path: Path) -> None:
    crawlspace("index", crawl)
    files = sorted(map(str, (crawl / "archive").glob("*.warc.gz")))
    made = tmp_path / "theirs.cdxj"
    command = [sys.executable, "-W", "ignore", "-m", "pywb.indexer.cdxindexer", "-j", "-p", "-o", str(made), *files]
    subprocess.run(command, check=True, timeout=60, cwd=tmp_path, capture_output=True)
    ours = lines((crawl / "archive" / "index.cdxj").read_bytes())

    def in_order(found: list[Line]) -> list[Line]:
        return sorted(found, key=lambda line: int(line.facts["offset"]))

    assert in_order(ours) == in_order(lines(made.read_bytes()))
