"""Imports as a person asks for them: the command line run in this process, and what a crawl knows then."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crawlspace.cli import main
from crawlspace.cli.options import reading
from crawlspace.types import Counts, Story


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def facts(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.out)
        return told


Command = Callable[..., Ran]


@pytest.fixture
def crawlspace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
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


@dataclass(frozen=True)
class Known:
    """What a crawl knows."""

    counts: Counts
    stories: dict[str, Story]
    """By address: those that were asked for and are known."""

    @property
    def states(self) -> dict[str, int]:
        return {state.name.lower(): n for state, n in self.counts.states.items() if n}

    def state(self, url: str) -> str | None:
        story = self.stories.get(url)
        return None if story is None else story.state.name.lower()


@pytest.fixture
def known() -> Callable[..., Known]:
    """What a crawl knows of these URLs."""

    def ask(crawl: Path, *urls: str) -> Known:
        async def look() -> Known:
            async with reading(crawl) as (store, identity):
                addresses = [identity.identify(url) for url in urls]
                found = await store.find([address.key for address in addresses])  # type: ignore[union-attr]
                stories = {url: story for url, story in zip(urls, found, strict=True) if story is not None}
                return Known(await store.counts(), stories)

        return asyncio.run(look())

    return ask
