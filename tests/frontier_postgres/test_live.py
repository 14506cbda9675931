"""What a person asks of one worker's crawl reaches all workers of the shared frontier while they run."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from crawlspace.app.compose import OpenCrawl, Plan, open_crawl
from crawlspace.app.control import ask
from crawlspace.app.directory import CrawlDirectory
from crawlspace.clock import SystemClock
from crawlspace.engine.crawl import Crawl
from crawlspace.engine.intake import Request
from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.policy.commands import Command, Ignore, Inject, Pause, Resume, Seed
from crawlspace.settings import convert, nested

PAGES = 60
SOON = 10.0
"""Seconds by which even a busy machine has heard; a quiet one has within one."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        links = "".join(f'<a href="/p{number}">x</a>' for number in range(PAGES))
        body = f"<p>{self.headers['Host']}{self.path}</p>{links}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def plan(port: int, place: Place, *, joins: bool) -> Plan:
    values: dict[str, Any] = {
        "contact": "tests@crawlspace.test",
        "host.delay": 0.4,
        "host.jitter": 0,
        "robots.obey": False,
        "concurrency.hosts": 1,
        "network.allow": ["127.0.0.1"],
        "network.resolve": {"*.test:80": f"127.0.0.1:{port}"},
    }
    address = f"{place.address}&schema={place.schema}&shards={place.shards}"
    return Plan(convert(nested(values), "test"), frontier=address, joins=joins)


class Worker:
    """One of two, at work."""

    def __init__(self, opened: OpenCrawl, crawl: Crawl) -> None:
        self.opened = opened
        self.crawl = crawl

    def visits(self) -> set[str]:
        return {visit.lease.host.name for visit in self.crawl._visits.values()}


async def until(true: Callable[[], bool]) -> float:
    """Seconds until it is so."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < SOON
        await asyncio.sleep(0.02)
    return time.monotonic() - began


def test_what_is_asked_of_one_worker_reaches_the_other(port: int, place: Place, tmp_path: Path) -> None:
    async def story(workers: list[Worker], order: Callable[[Command], Awaitable[object]]) -> None:
        await until(lambda: all(worker.visits() for worker in workers))
        scopes = [lambda worker=worker: worker.opened.intake.scope for worker in workers]
        await order(Ignore("/p7$"))
        await until(lambda: all(scope().ignored == ("/p7$",) for scope in scopes))
        await order(Inject((Seed(url="http://c.three.test/"),)))
        await until(lambda: all("c.three.test" in scope().roots for scope in scopes))
        # Whichever of them carries it out, each host is visited by one of them alone.
        for worker in workers:
            [host] = worker.visits()
            await order(Pause(host))
            await until(lambda: host not in worker.visits())  # noqa: B023 -- asked at once
            await order(Resume(host))
            await until(lambda: host not in worker.crawl._run.held)  # noqa: B023

    async def main() -> None:
        async with AsyncExitStack() as stack:
            workers: list[Worker] = []
            for name in ("first", "second"):
                directory = CrawlDirectory(tmp_path / name)
                opened = await stack.enter_async_context(
                    open_crawl(directory, plan(port, place, joins=name == "second"))
                )
                if not workers:
                    await opened.inject([Request(f"http://{host}.test/") for host in ("a.one", "b.two")])
                workers.append(Worker(opened, await stack.enter_async_context(opened.engine())))
            running = [asyncio.create_task(worker.crawl.run()) for worker in workers]
            settings = workers[0].opened.plan.settings

            async def order(command: Command) -> object:
                return await ask(CrawlDirectory(tmp_path / "first"), settings, [command])

            try:
                await story(workers, order)
            finally:
                for worker in workers:
                    worker.crawl.stop()
                await asyncio.gather(*running)

    asyncio.run(main())


class Skewed(SystemClock):
    """A clock that is wrong by a span."""

    def __init__(self, wrong_by_ms: int) -> None:
        self._wrong_by_ms = wrong_by_ms

    def now(self) -> int:
        return super().now() + self._wrong_by_ms


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_worker_with_a_wrong_clock_neither_spins_nor_oversleeps(
    port: int, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    asked: list[int | None] = []
    due_in = PostgresFrontier.due_in

    async def noted(self: PostgresFrontier, now: int | None = None) -> int | None:
        asked.append(await due_in(self, now))
        return asked[-1]

    monkeypatch.setattr(PostgresFrontier, "due_in", noted)

    async def main() -> float:
        made = plan(port, place, joins=False)
        made.clock = Skewed(hours * 3_600_000)
        budget = replace(made.settings.budget, pages=12)
        made.settings = replace(made.settings, host=replace(made.settings.host, delay=0.15), budget=budget)
        async with open_crawl(CrawlDirectory(tmp_path / "wrong"), made) as opened:
            await opened.inject([Request("http://a.one.test/")])
            async with opened.engine() as crawl:
                began = time.monotonic()
                await crawl.run()
                return time.monotonic() - began

    took = asyncio.run(main())
    assert took < SOON, "a page each 0.15 seconds"
    assert len(asked) < 100, "no more often than something happened, and once a second"
