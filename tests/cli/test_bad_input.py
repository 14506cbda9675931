"""Bad input gives one clear line on standard error and the right exit code; never a traceback."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

USAGE = 2


def is_clear(err: str) -> bool:
    lines = err.strip().splitlines()
    return 1 <= len(lines) <= 4 and "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["crawl"], "which crawl?"),
        (["crawl", "--dir", "{tmp}/new"], "no seed"),
        (["crawl", "--dir", "{tmp}/new", "--seeds", "{tmp}/missing.txt"], "missing.txt cannot be read"),
        (["crawl", "--dir", "{tmp}/new", "mailto:me@example.com"], "no seed could be used"),
        (["crawl", "notaurl"], "no URL that can be crawled"),
        (["crawl", "http://127.0.0.1/", "--dir", "{tmp}/new", "-s", "host.dely=2"], "did you mean host.delay"),
        (["crawl", "http://127.0.0.1/", "--dir", "{tmp}/new", "-s", "host.delay=fast"], "host.delay"),
        (["crawl", "http://127.0.0.1/", "--dir", "{tmp}/new", "-s", "host.delay=-1"], "host.delay"),
        (["crawl", "http://127.0.0.1/", "--dir", "{tmp}/new", "-s", "host.delay"], "has no value"),
        (["crawl", "http://127.0.0.1/", "--dir", "{tmp}/new", "-s", 'scope.include=["("]'], "scope.include"),
        (["crawl", "https://example.com/", "--dir", "{tmp}/new"], "no contact"),
        (["stats", "{tmp}/nothing"], "there is no crawl directory"),
        (["hosts", "{tmp}"], "no crawl has been started"),
        (["explain", "{tmp}/nothing", "http://a/"], "there is no crawl directory"),
        (["parse", "{tmp}/nothing", "http://a/"], "there is no crawl directory"),
        (["dlq", "list", "{tmp}/nothing"], "there is no crawl directory"),
        (["inject", "{tmp}/new"], "no seed"),
        (["config", "check", "-s", "fetch.timeot=3"], "did you mean fetch.timeout"),
        (["config", "check", "-s", "group.by=address", "-s", "network.proxy=http://p:8080"], "no address is known"),
        # A request that might outlast the lease of its host would never be made.
        (["config", "check", "-s", "fetch.timeout=120"], "expected a number <= 90"),
        (["fetch", "ftp://a/"], "scheme"),
        (["fetch", "https://example.com/"], "no contact"),
        (["crwl", "http://a/"], "Did you mean 'crawl'"),
    ],
)
def test_it_says_what_is_wrong(crawlspace: Command, tmp_path: Path, arguments: list[str], words: str) -> None:
    ran = crawlspace(*[argument.replace("{tmp}", str(tmp_path)) for argument in arguments])
    assert ran.code == USAGE
    assert words in ran.err
    assert is_clear(ran.err)


def test_a_seed_file_that_is_no_text_is_refused(crawlspace: Command, tmp_path: Path) -> None:
    (tmp_path / "seeds").write_bytes(b"http://a/\n\xff\xfe\n")
    ran = crawlspace("crawl", "--dir", tmp_path / "new", "--seeds", tmp_path / "seeds")
    assert (ran.code, "no UTF-8" in ran.err) == (USAGE, True)


def test_a_bad_line_of_a_seed_file_is_named(crawlspace: Command, tmp_path: Path) -> None:
    (tmp_path / "seeds").write_text('# seeds\nhttp://127.0.0.1/\n{"url": "http://127.0.0.1/", "lable": "x"}\n')
    ran = crawlspace("crawl", "--dir", tmp_path / "new", "--seeds", tmp_path / "seeds")
    assert ran.code == USAGE
    assert "line 3" in ran.err


def test_a_broken_settings_file_is_named(crawlspace: Command, tmp_path: Path) -> None:
    (tmp_path / "crawl.toml").write_text("[host\n")
    ran = crawlspace("crawl", "http://127.0.0.1/", "--dir", tmp_path)
    assert ran.code == USAGE
    assert "crawl.toml is no TOML" in ran.err


def test_a_directory_that_is_in_use_is_left_alone(crawlspace: Command, tmp_path: Path) -> None:
    with (tmp_path / "crawl.lock").open("w") as lock:
        lock.write("process 4711\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        ran = crawlspace("inject", tmp_path, "http://127.0.0.1/")
    assert ran.code == USAGE
    assert "in use by process 4711" in ran.err


def test_a_directory_of_a_newer_version_is_left_alone(crawlspace: Command, tmp_path: Path) -> None:
    assert crawlspace("inject", tmp_path, "http://127.0.0.1/").code == 0
    with sqlite3.connect(tmp_path / "frontier.db") as database:
        database.execute("PRAGMA user_version = 999")
    database.close()
    ran = crawlspace("inject", tmp_path, "http://127.0.0.1/")
    assert ran.code == USAGE
    assert "newer" in ran.err


def test_other_url_rules_are_refused_with_the_way_out(crawlspace: Command, tmp_path: Path) -> None:
    assert crawlspace("inject", tmp_path, "http://127.0.0.1/").code == 0
    ran = crawlspace("inject", tmp_path, "http://127.0.0.1/", "-s", "identity.policy=aggressive")
    assert ran.code == USAGE
    assert "URL rules" in ran.err


def test_a_place_that_cannot_be_a_directory_is_refused(crawlspace: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = crawlspace("inject", tmp_path / "file" / "crawl", "http://127.0.0.1/")
    assert ran.code == USAGE
    assert "cannot be written" in ran.err


def test_a_disk_that_cannot_be_written_is_refused(crawlspace: Command) -> None:
    """/proc refuses new directories to everybody, root included."""
    ran = crawlspace("inject", "/proc/crawl", "http://127.0.0.1/")
    assert ran.code == USAGE
    assert "cannot be written" in ran.err
