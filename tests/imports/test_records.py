"""Imported pages are parsed as if they had been fetched, and what parsers make of them can be exported."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

Run = Callable[..., Any]

SAMPLE = Path(__file__).parents[1] / "data" / "warc" / "example.warc.gz"
DROP = """
from crawlspace import Drop

def short(item):
    return Drop("no title") if not item["data"].get("title") else item | {"data": {"title": item["data"]["title"]}}
"""


@pytest.fixture
def parsed(crawlspace: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A crawl of one page with its records."""
    monkeypatch.chdir(tmp_path)
    crawl = tmp_path / "crawl"
    assert crawlspace("import", crawl, SAMPLE, "-s", 'parsers.run=["page", "links"]').code == 0
    return crawl


def test_records_are_exported_through_a_pipeline(crawlspace: Run, parsed: Path) -> None:
    assert crawlspace("export", parsed, "-o", "a.jsonl", "--what", "records").code == 0
    rows = [json.loads(line) for line in Path("a.jsonl").read_text().splitlines()]
    assert {row["parser"] for row in rows} == {"page", "links"}
    [page] = [row for row in rows if row["parser"] == "page"]
    assert page["url"] == "http://example.com/"
    assert page["data"]["title"] == "Example Domain"
    assert page["first_seen"].startswith("20")
    assert page["file"].startswith("import-example")
    Path("stages.py").write_text(DROP)
    ran = crawlspace(
        *("export", parsed, "-o", "b.csv", "--what", "records", "--pipeline", "stages.py:short", "--json", "--raw")
    )
    assert (ran.facts["rows"], ran.facts["dropped"]) == (1, {"no title": len(rows) - 1})
    [row] = csv.DictReader(Path("b.csv").read_text().splitlines())
    assert json.loads(row["data"]) == {"title": "Example Domain"}


def test_records_are_chosen_by_parser_and_host(crawlspace: Run, parsed: Path) -> None:
    assert crawlspace("export", parsed, "-o", "a.parquet", "--what", "records", "--parser", "page").code == 0
    assert parquet.read_table("a.parquet").column("parser").to_pylist() == ["page"]
    ran = crawlspace("export", parsed, "-o", "b.sqlite", "--what", "records", "--host", "other.test", "--json")
    assert ran.facts["rows"] == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--what", "records", "--state", "done"), "records have no state"),
        (("--parser", "page"), "only records have a parser"),
    ],
)
def test_what_means_nothing_for_records_is_said(
    crawlspace: Run, parsed: Path, options: tuple[str, ...], told: str
) -> None:
    ran = crawlspace("export", parsed, "-o", "a.jsonl", *options)
    assert (ran.code, told in ran.err) == (2, True)


STOP = """
import os
import signal
from pathlib import Path

def stop(item):
    if not Path("stopped").exists():
        Path("stopped").touch()
        os.kill(os.getpid(), signal.SIGINT)
    return item
"""


def test_an_interrupted_import_says_that_the_same_command_goes_on_and_it_does(
    crawlspace: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("stage.py").write_text(STOP)
    options = ["-s", 'parsers.run=["links"]', "-s", f'parsers.pipelines=["{tmp_path}/stage.py:stop"]']
    command = [sys.executable, "-m", "crawlspace", "import", "crawl", str(SAMPLE), *options]
    first = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert first.returncode == 3
    assert "interrupted; the same command goes on" in first.stderr
    again = crawlspace("import", "crawl", SAMPLE, *options, "--json")
    assert again.code == 0
    assert again.facts["captures"] + again.facts["known"] == 2, "the page and its revisit"
    assert crawlspace("export", "crawl", "-o", "a.jsonl", "--what", "records").code == 0
    assert len(Path("a.jsonl").read_text().splitlines()) == 1


def test_an_import_tells_how_far_it_is(crawlspace: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawlspace.cli.import_.TOLD_EVERY", 0.001)
    ran = crawlspace("import", tmp_path / "crawl", SAMPLE)
    assert ran.code == 0
    assert "captures, 0 visited, " in ran.err
    assert " to be fetched so far" in ran.err
