"""An embedded frontier in a file: opened as tests need it, and audited when they are done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_audit import audit_file, integrity
from crawlspace.testing.frontier_contract_words import T0

FileStory = Callable[[SqliteFrontier], Awaitable[None]]


async def opened(path: Path, *, read_only: bool = False, **settings: Any) -> SqliteFrontier:
    """Open the file at `T0` of a manual clock."""
    return await SqliteFrontier.open(path, FrontierSettings(**settings), ManualClock(T0), read_only=read_only)


def play(path: Path, *stories: FileStory, **settings: Any) -> None:
    """Each story on a newly opened store; then every number in the file must be what its rows say."""

    async def run() -> None:
        for story in stories:
            store = await opened(path, **settings)
            try:
                await story(store)
            finally:
                await store.close()

    asyncio.run(run())
    audit_file(path)
    assert integrity(path) == "ok"
