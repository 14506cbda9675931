"""A worker that was stopped past its leases and continued changes nothing any more, and says so."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import tomli_w

from crawlspace.clock import SystemClock
from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.settings import nested
from crawlspace.testing.frontier_contract_words import states
from crawlspace.testing.toyweb import LIGHT, Size, ToyWeb

STOPPED = Path(__file__).with_name("stopped.py")
STOPS = {"page": "page 20", "transaction": "transaction 20"}
"""Where it stops, by what: when it reads this page, or within the transaction that settles it. By then it holds
several hosts, and in the transaction their rows too."""
PATIENCE_SECONDS = 120


def settings_for(web: ToyWeb) -> dict[str, Any]:
    return {
        "contact": "tests@crawlspace.test",
        "host.delay": 0.02,
        "retry.wait": 0.1,
        "network.resolve": dict(web.resolve),
        "network.allow": ["127.0.0.1"],
        "identity.hosts": [dict(rule) for rule in web.truth.own_folds],
    }


class Stopping:
    """A web, a shared frontier, and workers that can be told to stop."""

    def __init__(self, web: ToyWeb, place: Place, folder: Path) -> None:
        self.web = web
        self.place = place
        self._folder = folder
        self._config = folder / "settings.toml"
        self._config.write_text(tomli_w.dumps(nested(settings_for(web))))

    @contextmanager
    def worker(self, name: str, *seeds: str, stop: str = "page 0") -> Iterator[subprocess.Popen[str]]:
        address = f"{self.place.address}&schema={self.place.schema}&shards={self.place.shards}"
        named = [str(self._folder / name), str(self._config), address, stop]
        command = [sys.executable, str(STOPPED), *named, *seeds]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def settled_by(self, name: str) -> set[str]:
        """Pages whose captures lie in this worker's archive, as the store has it."""
        files = [file.name for file in (self._folder / name / "archive").iterdir()]
        with psycopg.connect(self.place.address) as connection:
            connection.execute("SELECT set_config('search_path', %s, false)", [self.place.schema])
            rows = connection.execute(
                "SELECT o.url FROM outcome o JOIN segment s ON s.id = o.segment WHERE s.name = ANY(%s)", [files]
            ).fetchall()
        return {url for (url,) in rows}

    async def ends(self) -> tuple[list[str], dict[str, int]]:
        store = await PostgresFrontier.open_beside(self.place, FrontierSettings(), SystemClock())
        try:
            return await store.audit(), await states(store)
        finally:
            await store.close()


@pytest.fixture
def stopping(tmp_path: Path, places: Callable[..., Place]) -> Iterator[Stopping]:
    with ToyWeb(seed=7, size=Size.SMALL, features=LIGHT, tls=False) as web:
        yield Stopping(web, places(), tmp_path)


def ended(process: subprocess.Popen[str]) -> tuple[int | None, str]:
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out + err


def wait_until_stopped(process: subprocess.Popen[str]) -> None:
    seen, deadline = psutil.Process(process.pid), time.monotonic() + PATIENCE_SECONDS
    while seen.status() != psutil.STATUS_STOPPED:
        assert process.poll() is None, "it ended before it could stop"
        assert time.monotonic() < deadline, "it does not stop"
        time.sleep(0.01)


@pytest.mark.timeout(500)
@pytest.mark.parametrize("where", [pytest.param("page", marks=pytest.mark.long), "transaction"])
def test_a_worker_that_was_stopped_past_its_leases_changes_nothing_and_says_so(
    stopping: Stopping, where: str
) -> None:
    with stopping.worker("second", *stopping.web.seeds, "http://new.test/") as process:
        assert ended(process)[0] == 0
    with stopping.worker("first", stop=STOPS[where]) as first:
        wait_until_stopped(first)
        # The other waits for the end of its leases, and finishes alone.
        with stopping.worker("second") as second:
            code, said = ended(second)
        assert code == 0, said
        before = asyncio.run(stopping.ends())
        assert before[0] == []
        assert before[1]["done"] >= len(stopping.web.truth.pages)
        asked = len(stopping.web.requests)
        first.send_signal(signal.SIGCONT)
        code, said = ended(first)
    assert code == 0, said
    assert "came too late" in said
    assert asyncio.run(stopping.ends()) == before
    assert len(stopping.web.requests) == asked, "it asked for something under a lease that it had lost"
    assert stopping.settled_by("second")
    assert not stopping.settled_by("first") & stopping.settled_by("second")
