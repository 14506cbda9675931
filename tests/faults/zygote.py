"""Starts crawls that die at a chosen point: a process that has everything imported forks one child for each job.

A job comes as a line of JSON on standard input, and the child's exit status goes as a line to standard output; -9 is
a child that killed itself. Everything that makes it die is put around the product from outside, here.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sqlite3
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from crawlspace.app import compose
from crawlspace.app.directory import CrawlDirectory
from crawlspace.archive.disk import AppendFile, RealDisk
from crawlspace.engine import sweep
from crawlspace.engine.intake import Request
from crawlspace.exchange import FetchRequest, FetchResult
from crawlspace.fetch.http import HttpFetcher
from crawlspace.frontier.sqlite import connection
from crawlspace.settings import load
from crawlspace.urls.hosts import registrable_domain

RENEW_SECONDS = 0.02
CHECKPOINT_PAGES = 10
CHECKPOINT_SECONDS = 0.0004
"""Between the beginning of a COMMIT and the middle of the checkpoint that it brings about."""
FILE_BYTES = 15_000

STATEMENTS = {
    "expire.mid": "INSERT INTO queued_more (id, suspect)",
    "links.offered.partial": "INSERT INTO queued (",
    "links.offered": "SELECT token, released, pace_group FROM host",
    "outcome.mid": "INSERT INTO outcome",
    "commit.mid": "COMMIT",
    "checkpoint": "COMMIT",
    "migrate.mid": "CREATE",
}
"""Points inside of transactions, by the statement that is about to run."""
CALLS = {"settle": "commit", "renew": "renew", "lease": "lease"}
"""Calls of the store, by what their points are called."""


class Points:
    """Counts how often each point is passed; at one of them, this process is killed."""

    def __init__(self, point: str, hit: int) -> None:
        self.point = point
        self._hit = hit
        self.passed: Counter[str] = Counter()
        self.is_settling = False

    def at(self, name: str) -> None:
        self.passed[name] += 1
        if name == self.point and self.passed[name] == self._hit:
            os.kill(os.getpid(), signal.SIGKILL)

    def statement(self, sql: str) -> None:
        """A statement begins, on the store's own thread."""
        begins = STATEMENTS.get(self.point)
        if begins is None or not sql.startswith(begins):
            return
        if self.point.startswith(("links", "outcome", "commit")) and not self.is_settling:
            return
        if self.point == "checkpoint":
            threading.Thread(target=self._soon, daemon=True).start()
        else:
            self.at(self.point)

    def _soon(self) -> None:
        time.sleep(CHECKPOINT_SECONDS)
        self.at(self.point)


class PointedFrontier:
    """The store, with points before and after each call."""

    def __init__(self, inner: Any, points: Points) -> None:
        self._inner = inner
        self._points = points

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        called = CALLS.get(name)
        return method if called is None else self._pointed(called, method)

    def _pointed(self, name: str, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **named: Any) -> Any:
            self._points.at(f"{name}.sent")
            self._points.is_settling = name == "commit"
            answer = await method(*args, **named)
            self._points.is_settling = False
            if answer:
                self._points.at(f"{name}.got")
            return answer

        return call


class PointedArchive:
    """The archive, with points after each append and each flush."""

    def __init__(self, inner: Any, points: Points) -> None:
        self._inner = inner
        self._points = points

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def append(self, capture: Any) -> Any:
        pointer = await self._inner.append(capture)
        self._points.at("raw.written")
        return pointer

    async def flush(self) -> None:
        await self._inner.flush()
        self._points.at("raw.synced")


class PointedDisk(RealDisk):
    """Points around the making of a new archive file."""

    def __init__(self, points: Points) -> None:
        self._points = points

    def create(self, path: Path) -> AppendFile:
        self._points.at("segment.rotate.sent")
        file = super().create(path)
        self._points.at("segment.rotate.got")
        return file


def pointed_fetcher(points: Points) -> type[HttpFetcher]:
    """A fetcher with points around each request."""

    class PointedFetcher(HttpFetcher):
        async def fetch(self, request: FetchRequest) -> FetchResult:
            points.at("fetch.sent")
            result = await super().fetch(request)
            points.at("fetch.got")
            return result

    return PointedFetcher


def watch_statements(points: Points) -> None:
    """Have the store's connection tell of every statement, from its first migration on."""
    connect = connection.connect

    def connect_(path: str, settings: Any) -> sqlite3.Connection:
        made = connect(path, settings)
        made.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        made.set_trace_callback(points.statement)
        return made

    connection.connect = connect_


async def crawl(job: dict[str, Any], points: Points) -> None:
    """Start or resume the crawl of the job, and end it."""
    settings = load(Path(job["config"]), {})
    plan = compose.Plan(settings, handler=lambda _page: points.at("parse.mid"), disk=PointedDisk(points))
    async with compose.open_crawl(CrawlDirectory(Path(job["directory"])), plan) as opened:
        # Smaller than a person may set it: so few pages fill several files.
        opened.archive._settings = msgspec.structs.replace(settings.archive, max_file=FILE_BYTES)
        opened.frontier = PointedFrontier(opened.frontier, points)  # type: ignore[assignment]
        opened.archive = PointedArchive(opened.archive, points)  # type: ignore[assignment]
        await opened.inject([Request(seed) for seed in job["seeds"]])
        async with opened.engine() as loop:
            await loop.run()


def child(job: dict[str, Any]) -> None:
    """One life of the crawl; tells how often it passed its points when it lives to its end."""
    points = Points(job["point"], job["hit"])
    sweep.RENEW_SECONDS = RENEW_SECONDS
    compose.HttpFetcher = pointed_fetcher(points)  # type: ignore[misc]
    watch_statements(points)
    asyncio.run(crawl(job, points))
    Path(job["report"]).write_text(json.dumps(points.passed), encoding="utf-8")


def main() -> None:
    """Fork a child for each line, once all that each would read first has been read."""
    registrable_domain("shop.test")
    importlib.import_module("crawlspace.frontier.sqlite.migrations")
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                child(json.loads(line))
                status = 0
            except BaseException:  # there is nobody else to tell
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
