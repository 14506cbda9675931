"""The benchmark of requests, and the gate on what one costs beside the bare loop of the same run."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

from bench.fetch_server import SIZES, pages

from bench import fetch
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.response import ResponseReader

LIMIT = 2.2
"""The lowest of ten rounds was 1.42; times 1.5, for machines that are busy."""


def test_what_the_server_says_is_one_page_in_every_kind() -> None:
    bodies: dict[str, set[bytes]] = {name: set() for name in SIZES}
    for path, answer in pages().items():
        reader = ResponseReader(FetchSettings())
        assert reader.feed(answer)
        assert reader.error is None
        assert reader.reusable is not path.endswith(b".close")
        bodies[path.decode()[1:].partition(".")[0]].add(reader.body)
    assert {name: [len(body) for body in found] for name, found in bodies.items()} == {
        name: [size] for name, size in SIZES.items()
    }
    assert gzip.decompress(pages()[b"/13k.gzip"].partition(b"\r\n\r\n")[2]) in bodies["13k"]


def test_a_row_has_both_ratios_and_a_dash_for_what_was_not_run() -> None:
    row = fetch.line("13k", {"bare": 20.0, "crawlspace": 30.0, "aiohttp": 90.0})
    assert row == "| 13k | 20 | 30 | 90 | 1.50 | 3.00 |"
    assert fetch.line("13k", {"crawlspace": 30.0}) == "| 13k | - | 30 | - | - | - |"


def test_a_request_costs_no_more_than_it_did() -> None:
    options = ["--only", "bare", "--only", "crawlspace", "--page", "13k", "--each", "8", "--json"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run(
        [sys.executable, "-m", "bench.fetch", *options],
        cwd=Path(__file__).resolve().parents[2],
        env=environment,
        capture_output=True,
        check=True,
        timeout=100,
    )
    found = json.loads(done.stdout)
    assert found["crawlspace"] / found["bare"] < LIMIT, found
