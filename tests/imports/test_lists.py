"""Feeds, lists and indexes: URLs that were visited before are known, and not asked for again."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from crawlspace.app.importing.imported import Imported
from crawlspace.app.importing.kinds import Kind, Source
from crawlspace.app.importing.lists import Fields, Listed, listed
from crawlspace.errors import UsageError

A, B, C = "http://a.test/1", "http://a.test/2?x=1", "http://b.test/"
DAY = 1_767_225_600_000
"""2026-01-01."""

Run = Callable[..., Any]


def read(path: Path, kind: Kind, fields: Fields | None = None) -> tuple[list[Listed], Imported]:
    done = Imported()
    return list(listed(Source(path, kind), fields or Fields(), done)), done


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", f'{{"url":"{A}","date":"2026-01-01"}}\n\n{{"url":"{B}"}}\r\n{{"url":"{C}","at":1767225600}}'),
        ("a.json", f'[{{"url":"{A}","date":"2026-01-01"}},\n{{"url":"{B}"}}, {{"url":"{C}","at":1767225600000}} ]'),
        ("a.csv", f'n,url,date\r\n1,"{A}",2026-01-01\r\n2,{B},\r\n3,{C},20260101000000\r\n'),
        ("a.txt", f"# seen\n{A} 2026-01-01\n{B}\n\n{C}\t2026-01-01T00:00:00Z\n"),
    ],
)
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_urls_and_dates_are_read_from_each_kind(tmp_path: Path, name: str, text: str, packed: str) -> None:
    path = tmp_path / f"{name}{packed}"
    data = text.encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    kind = {"a.csv": Kind.CSV, "a.txt": Kind.LIST}.get(name, Kind.JSON)
    found, done = read(path, kind)
    assert found == [Listed(A, DAY), Listed(B), Listed(C, DAY)]
    assert (done.damaged, not done.passed) == (0, True)


def test_our_own_exports_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "urls.jsonl.zst"
    path.write_bytes(
        zstandard.ZstdCompressor().compress(f'{{"url":"{A}","at":"2026-01-01T00:00:00.000Z"}}\n'.encode())
    )
    assert read(path, Kind.JSON)[0] == [Listed(A, DAY)]


def test_names_of_fields_can_be_told(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"link":"{A}","when":"2026-01-01","date":"never"}}\n')
    assert read(path, Kind.JSON, Fields("link", "when"))[0] == [Listed(A, DAY)]


def test_what_has_no_url_or_no_date_is_told_and_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"title":"x"}}\n[]\n{{"url":7}}\n{{"url":"{A}","date":"soon"}}\n{{broken\n{{"url":"{B}"}}\n')
    found, done = read(path, Kind.JSON)
    assert found == [Listed(B)]
    assert done.passed == {"items without 'url'": 3}
    assert ["soon" in done.damages[0], "line 5" in done.damages[1], done.damaged] == [True, True, 2]
    lines = tmp_path / "a.txt"
    lines.write_text(f"{A} not a date\n{B}\n")
    found, done = read(lines, Kind.LIST)
    assert (found, done.damages) == ([Listed(B)], ["a.txt, line 1: 'not a date' is no date"])


@pytest.mark.parametrize("text", ['[{"url":"http://a.test/"}', '[{"url":"http://a.test/"},{"u', "[" * 100_000])
def test_an_array_that_does_not_end_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="no array of JSON"):
        read(path, Kind.JSON)


def test_a_file_that_breaks_off_gives_what_was_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"http://a.test/ 2026\n" * 50_000, 1)[:-20])
    found, done = read(path, Kind.LIST)
    assert len(found) > 1000
    assert "cannot be read further" in done.damages[0]


def test_a_large_array_is_read_in_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"url": f"http://a.test/{n}", "text": "]},{[" * 50} for n in range(3000)]))
    assert len(read(path, Kind.JSON)[0]) == 3000


def test_what_was_visited_is_known_and_not_asked_for(crawlspace: Run, known: Run, tmp_path: Path) -> None:
    path = tmp_path / "seen.txt"
    path.write_text(f"{A} 2026-01-01\n{B}\n{A} 2025-01-01\nmailto:me@a.test\n")
    crawl = tmp_path / "crawl"
    facts = crawlspace("import", crawl, path, "--json").facts
    assert facts == {
        "captures": 0,
        "visited": 2,
        "queued": 0,
        "known": 1,
        "passed": {"URLs that cannot be used: scheme": 1},
        "damaged": 0,
        "damages": [],
    }
    found = known(crawl, A, B)
    assert found.states == {"skipped": 2}
    assert found.stories[A].reason == "imported"
    assert found.stories[A].detail == "visited at 2026-01-01T00:00:00.000Z"
    assert found.counts.fetches == 0
    assert crawlspace("import", crawl, path, "--json").facts["known"] == 3
    assert "was visited before" in crawlspace("explain", crawl, A).out
    assert crawlspace("check", crawl).code == 0


def test_what_was_visited_too_long_ago_is_asked_for_again(crawlspace: Run, known: Run, tmp_path: Path) -> None:
    path = tmp_path / "seen.csv"
    path.write_text(f"url,date\n{A},2025-06-01\n{B},2026-02-01\n{C},\n")
    crawl = tmp_path / "crawl"
    facts = crawlspace("import", crawl, path, "--since", "2026-01-01", "--json").facts
    assert (facts["visited"], facts["queued"]) == (2, 1)
    assert known(crawl, A).state(A) == "queued"
    assert crawlspace("import", crawl, path, "--since", "last year").code == 2


def test_an_index_without_its_files_tells_what_was_visited(crawlspace: Run, known: Run, tmp_path: Path) -> None:
    path = tmp_path / "index.cdxj"
    path.write_text(
        f'test,a)/1 20260101000000 {{"url":"{A}","filename":"gone.warc.gz","offset":"0"}}\n'
        "!meta 0 {}\nno line at all\n"
    )
    other = tmp_path / "old.cdx"
    other.write_text(
        f" CDX N b a m s k r M S V g\ntest,a)/2 20260101000000 {B} text/html 200 X - - 9 0 gone.warc.gz\n"
    )
    crawl = tmp_path / "crawl"
    ran = crawlspace("import", crawl, path, other, "--json")
    assert (ran.code, ran.facts["visited"], ran.facts["damaged"]) == (7, 2, 1)
    assert known(crawl, A, B).states == {"skipped": 2}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["no-such-file.warc"], "there is no file"),
        (["empty"], "no archive file and no index"),
        (["odd.bin"], "does not show what it holds"),
        (["--url-field"], "requires an argument"),
        ([], "Missing argument"),
        (["list.txt", "--seed", "mailto:x@y.test"], "is no URL"),
    ],
)
def test_what_cannot_be_imported_is_said(
    crawlspace: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd.bin").write_bytes(b"\0\1\2")
    (tmp_path / "list.txt").write_text(A)
    ran = crawlspace("import", tmp_path / "crawl", *arguments)
    assert (ran.code, told in ran.err) == (2, True), ran.err
