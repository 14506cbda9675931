"""A store of every released format opens, loses nothing, and goes on."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from pathlib import Path

import pytest

from crawlspace.errors import CrawlDirError
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.frontier.sqlite.audit import open_audit
from crawlspace.frontier.sqlite.schema import steps
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_audit import audit_file, schema
from crawlspace.testing.frontier_contract_files import opened, play
from crawlspace.testing.frontier_contract_words import T0, address, end_all, states
from crawlspace.types import HostFigures

DATA = Path(__file__).parents[1] / "data" / "frontier"
FORMATS = sorted(DATA.glob("format-*.db"))
HOUR = 3_600_000
SETTINGS = {"pages_per_host": 3, "refusals_kept": 2}


@pytest.fixture(params=FORMATS, ids=[path.stem for path in FORMATS])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = Path(shutil.copyfile(request.param, tmp_path / "frontier.db"))
    path.chmod(0o644)
    return path


def test_each_format_but_the_newest_is_kept() -> None:
    assert [path.stem for path in FORMATS] == [f"format-{number}" for number in range(1, len(steps()))]


def test_all_that_was_known_is_still_known(old: Path) -> None:
    async def look(store: SqliteFrontier) -> None:
        assert await states(store) == {
            "queued": 3,
            "leased": 2,
            "stored": 1,
            "done": 5,
            "redirected": 1,
            "skipped": 3,
            "dead": 4,
        }
        counts = await store.counts()
        assert (counts.pages, counts.fetches, counts.bytes, counts.duplicates) == (5, 9, 900, 1)
        assert (counts.hosts, counts.refused_beyond_cap) == (3, 3)
        notes = await store.notes()
        assert notes["hash_key"] == "00" * 32
        assert notes["format"] == str(len(steps()))
        [robots] = await store.robots(["http://a.test"])
        assert robots is not None
        assert "Disallow: /x" in robots.text
        [letter] = [each for each in await store.dead() if each.host == "a.test"]
        assert (letter.error, letter.status, letter.parent) == ("http_404", 404, "http://a.test/root")
        [story] = await store.find([address("1").key])
        assert story is not None
        assert story.evidence is not None

    play(old, look, **SETTINGS)


def test_hosts_get_the_figures_that_were_not_counted_then(old: Path) -> None:
    hosts: dict[str, HostFigures] = {}

    async def look(store: SqliteFrontier) -> None:
        hosts.update({host.name: host for host in await store.hosts()})

    play(old, look, **SETTINGS)
    assert {name: host.discovered for name, host in hosts.items()} == {"a.test": 9, "b.test": 4, "gone.test": 3}
    assert {name: host.duplicates for name, host in hosts.items()} == {"a.test": 1, "b.test": 0, "gone.test": 0}
    pace = hosts["a.test"].pace
    assert (pace.delay_ms, pace.crawl_delay_ms, pace.failures, pace.slowed, pace.latency_ms) == (2000, 2000, 1, 2, 0)
    assert hosts["b.test"].parked == "host_budget"


def test_it_goes_on_to_its_end(old: Path) -> None:
    async def finish(store: SqliteFrontier) -> None:
        assert await store.void_leases(T0 + HOUR) == 1
        await end_all(store, T0 + 2 * HOUR)
        assert await states(store) == {"stored": 1, "done": 10, "redirected": 1, "skipped": 3, "dead": 4}

    play(old, finish)


def test_it_has_the_same_tables_as_a_new_one(old: Path, tmp_path: Path) -> None:
    async def nothing(_: SqliteFrontier) -> None:
        """Opening it is enough."""

    play(old, nothing)
    play(tmp_path / "new.db", nothing)
    tables = []
    for path in (old, tmp_path / "new.db"):
        connection = sqlite3.connect(path)
        tables.append(schema(connection))
        connection.close()
    assert tables[0] == tables[1]
    audit_file(old)
    with open_audit(old, FrontierSettings(), owned=False) as audit:
        assert audit.faults(deep=True) == []


def test_whoever_does_not_own_it_leaves_its_format_alone(old: Path) -> None:
    async def beside() -> None:
        await SqliteFrontier.open_beside(old, FrontierSettings(), ManualClock())

    for way in (lambda: opened(old, read_only=True), beside):
        with pytest.raises(CrawlDirError, match="bring it up to date"):
            asyncio.run(way())  # type: ignore[arg-type]
    connection = sqlite3.connect(old)
    assert connection.execute("PRAGMA user_version").fetchone()[0] < len(steps())
    connection.close()
