"""Stores to re-key, and the command line run in this process."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli import main
from crawlspace.frontier.sqlite.store import SqliteFrontier
from crawlspace.settings import Settings
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.rekey_stores import T0, fill, settings_with


def build(path: Path, urls: int, seed: int, settings: Settings) -> CrawlDirectory:
    """A crawl of so many URLs, as a killed one leaves it: some leases are still open."""
    place = CrawlDirectory(path)
    place.create()

    async def run() -> None:
        frontier = await SqliteFrontier.open(place.database, settings.frontier(), ManualClock(T0))
        try:
            await fill(place, frontier, settings, (urls, seed))
        finally:
            await frontier.close()

    asyncio.run(run())
    return place


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., CrawlDirectory]:
    """A crawl as `build` makes it; each kind is made once and copied."""
    originals: dict[tuple[Any, ...], CrawlDirectory] = {}

    def copy(path: Path, urls: int = 1500, seed: int = 1, **identity: Any) -> CrawlDirectory:
        kind = (urls, seed, repr(sorted(identity.items())))
        if kind not in originals:
            originals[kind] = build(tmp_path_factory.mktemp("crawl") / "c", urls, seed, settings_with(**identity))
        shutil.copytree(originals[kind].path, path)
        return CrawlDirectory(path)

    return copy


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def crawlspace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run `crawlspace ARGUMENTS`."""

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["crawlspace", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        code = left.value.code
        assert isinstance(code, int)
        return Ran(code, told.out, told.err)

    return run
