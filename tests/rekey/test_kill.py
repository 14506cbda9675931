"""Killed with SIGKILL at any moment and started again, a re-keying ends as if it had never been killed."""

from __future__ import annotations

import asyncio
import hashlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.rekey import apply
from crawlspace.frontier.rekeying import Progress
from crawlspace.settings import Settings, as_toml, convert, nested
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_audit import audit_file

T0 = 1_700_000_000_000
CHILD = """
import asyncio, sys
from pathlib import Path
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.rekey import apply
from crawlspace.settings import load
from crawlspace.testing.clock import ManualClock

place, settings, batch = CrawlDirectory(Path(sys.argv[1])), load(Path(sys.argv[2]), {}), int(sys.argv[3])

def watch(progress):
    print(progress.stage, flush=True)

asyncio.run(apply(place, settings, ManualClock(int(sys.argv[4])), watch, batch))
"""
KILLS = 5


def settings_with(policy: str) -> Settings:
    values = {"store.refusals_kept": 7, "budget.pages_per_host": 60, "scope.strategy": "any"}
    return convert(nested(values | {"identity.policy": policy}), "test")


def contents(path: Path) -> dict[str, tuple[int, str]]:
    """Every table: how many rows, and a digest of all of them in order."""
    database = sqlite3.connect(path)
    try:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: _content(database, name) for name in names}
    finally:
        database.close()


def _content(database: sqlite3.Connection, table: str) -> tuple[int, str]:
    columns = ", ".join(row[1] for row in database.execute(f"PRAGMA table_info({table})"))
    digest, count = hashlib.sha256(), 0
    for row in database.execute(f"SELECT {columns} FROM {table} ORDER BY {columns}"):
        digest.update(repr(row).encode())
        count += 1
    return count, digest.hexdigest()


def index_for_audit(path: Path) -> None:
    """The audit counts the outcomes of each host, which a crawl never does and has no index for."""
    database = sqlite3.connect(path)
    try:
        database.execute("CREATE INDEX audited ON outcome (hid, state, copy_of)")
    finally:
        database.close()


def run_killed(command: list[str], lines: int, moment: float) -> bool:
    """Kill it once it has told of so many steps, and a moment later; False when it ended before."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(lines):
            if not process.stdout.readline():
                break
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
    return process.returncode == -signal.SIGKILL


def compare(tmp_path: Path, crawl: CrawlDirectory, policy: str, batch: int, seed: int) -> None:
    """Re-key a copy in one go and another with kills; both end alike, and every count is right."""
    settings = settings_with(policy)
    whole = CrawlDirectory(tmp_path / "whole")
    shutil.copytree(crawl.path, whole.path)
    steps: list[Progress] = []
    asyncio.run(apply(whole, settings, ManualClock(T0), steps.append, batch))
    config = tmp_path / "settings.toml"
    config.write_text(as_toml(settings), encoding="utf-8")
    command = [sys.executable, "-c", CHILD, str(crawl.path), str(config), str(batch), str(T0)]
    chance = random.Random(seed)
    kills = [
        run_killed(command, chance.randint(len(steps) // 12, len(steps) // 8), chance.random() / 100)
        for _ in range(KILLS)
    ]
    assert kills == [True] * KILLS
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert contents(crawl.database) == contents(whole.database)
    index_for_audit(crawl.database)
    audit_file(crawl.database)


Built = Callable[..., CrawlDirectory]


@pytest.mark.timeout(600)
def test_a_rekeying_of_8_000_urls_killed_five_times_ends_like_one_that_was_not(tmp_path: Path, built: Built) -> None:
    crawl = built(tmp_path / "crawl", urls=8_000)
    compare(tmp_path, crawl, "aggressive", batch=200, seed=31)


@pytest.mark.timeout(600)
def test_a_rekeying_that_parts_pages_killed_five_times_ends_like_one_that_was_not(
    tmp_path: Path, built: Built
) -> None:
    """The links of the archive are offered again; its captures are missing here, its redirects are not."""
    crawl = built(tmp_path / "crawl", urls=3_000)
    asyncio.run(apply(crawl, settings_with("aggressive"), ManualClock(T0), lambda _: None))
    compare(tmp_path, crawl, "conservative", batch=100, seed=32)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_rekeying_of_a_million_urls_killed_five_times_ends_like_one_that_was_not(
    tmp_path: Path, built: Built
) -> None:
    crawl = built(tmp_path / "crawl", urls=1_000_000)
    compare(tmp_path, crawl, "aggressive", batch=2_000, seed=33)
