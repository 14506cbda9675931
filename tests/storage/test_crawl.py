"""A whole crawl into object storage: killed while it uploads, resumed, checked, joined, and nothing is missing."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from crawlspace.settings import nested
from crawlspace.states import UrlState
from crawlspace.testing.toyweb import CALM, ToyWeb

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SECONDS = 60


@pytest.fixture
def crawlspace(gated: Any) -> Run:
    """Run a verb with the storage's credentials in its environment."""

    def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "crawlspace", *map(str, arguments)]
        environment = {**os.environ, **gated.environment}
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=100)
        assert ran.returncode == code, ran.stderr + ran.stdout
        return ran

    return run


def configured(folder: Path, web: ToyWeb, address: str) -> Path:
    values = {
        "contact": "tests@crawlspace.test",
        "host.delay": 0.01,
        "robots.retry": 0.2,
        "retry.wait": 0.1,
        "network.resolve": dict(web.resolve),
        "network.allow": ["127.0.0.1"],
        "archive.store": address,
        "archive.table": True,
    }
    config = folder / "crawl.toml"
    config.write_text(tomli_w.dumps(nested(values)))
    return config


def pages(directory: Path) -> list[str]:
    with closing(sqlite3.connect(directory / "frontier.db")) as database:
        rows = database.execute(
            "SELECT url FROM outcome WHERE state = ? AND status BETWEEN 200 AND 299", [UrlState.DONE]
        )
        return [url for (url,) in rows]


def wait_for(what: Callable[[], bool]) -> None:
    """The other process gets there, or the test fails."""
    ends = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_a_crawl_that_is_killed_while_it_uploads_goes_on_and_nothing_is_missing(
    crawlspace: Run, gated: Any, address: str, tmp_path: Path
) -> None:
    directory = tmp_path / "crawl"
    with ToyWeb(5, features=CALM, tls=False) as web:
        config = configured(tmp_path, web, address)
        command = ["crawl", *web.seeds, "--dir", str(directory), "--config", str(config)]
        environment = {**os.environ, **gated.environment}
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen([sys.executable, "-m", "crawlspace", *command], env=environment, **pipes) as crawl:  # type: ignore[call-overload]
            wait_for(lambda: len(gated.writes) >= 3)
            gated.hold.clear()
            wait_for(lambda: gated.waiting > 0)
            crawl.kill()
        gated.hold.set()
        crawlspace(*command)
        assert not gated.lists, "nothing is listed to go on"
        difference = web.truth.compare(pages(directory))
    assert not difference.missing
    assert not difference.strange
    assert not list((directory / "archive").rglob("*.warc.gz")), "the local disk is a buffer only"
    written = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
    assert not any(b"TOP-SECRET-KEY" in data for data in written)
    assert "nothing is wrong" in crawlspace("check", directory, "--deep").stdout
    _compacted(crawlspace, directory)


def _compacted(crawlspace: Run, directory: Path) -> None:
    before = crawlspace("index", directory).stdout
    crawlspace("index", directory, "--table")
    done = crawlspace("compact", directory).stdout
    assert "archive files are 1 now" in done
    assert "nothing is wrong" in crawlspace("check", directory, "--deep").stdout
    after = crawlspace("index", directory).stdout
    assert before.split()[0] == after.split()[0]
    assert "of 1 archive files" in after
    assert "nothing to join" in crawlspace("compact", directory).stdout


def test_without_credentials_or_with_a_wrong_bucket_the_reason_is_told(
    crawlspace: Run, gated: Any, address: str, tmp_path: Path
) -> None:
    """In words, without a traceback; what was fetched is not lost, since nothing was settled."""
    directory = tmp_path / "crawl"
    with ToyWeb(5, features=CALM, tls=False) as web:
        config = configured(tmp_path, web, address)
        crawlspace("crawl", *web.seeds, "--dir", directory, "--config", config, "-s", "budget.pages=1", code=4)
    gated.broken = True
    ran = crawlspace("check", directory, code=5)
    assert "Traceback" not in ran.stderr
    assert "s3://" in ran.stderr
