"""Suspect pages are tried in a process of their own, and what does not come through is kept and not read."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from crawlspace.app.compose import Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.engine.intake import Request
from crawlspace.engine.trial import Trials
from crawlspace.exchange import FetchResult, Headers
from crawlspace.pages.links import PageSettings
from crawlspace.settings import load
from crawlspace.states import UrlState
from crawlspace.types import Story, Unusable, Wish

SERVED = "import os, time; from crawlspace.engine.apart import serve; serve(lambda given: {work})"
HTML = Headers(((b"Content-Type", b"text/html"),))
POISON = """
import os
from crawlspace.engine.apart import serve
serve(lambda given: os.abort() if b'poison' in given else 0)
"""


def tried(trials: Trials, body: bytes, headers: Headers = HTML) -> str | None:
    result = FetchResult("http://a.test/", 0, status=200, headers=headers, body=body)

    async def once() -> str | None:
        try:
            return await trials(result)
        finally:
            await trials.close()

    return asyncio.run(once())


def test_ordinary_pages_and_sitemaps_come_through() -> None:
    async def both() -> list[str | None]:
        trials = Trials(PageSettings())
        bodies = (b"<p>text<a href=/x>x</a>", b"<?xml version='1.0'?><urlset><url><loc>http://a.test/</loc></url>")
        results = [FetchResult("http://a.test/", 0, status=200, headers=HTML, body=body) for body in bodies]
        told = await asyncio.gather(*map(trials, results * 3))
        await trials.close()
        return told

    assert asyncio.run(both()) == [None] * 6


def test_a_page_that_needs_too_much_memory_does_not() -> None:
    """Of which a tree is made, since it is odd."""
    trials = Trials(PageSettings(), memory=150 << 20)
    assert tried(trials, b"<template></template><p>" + b"<b>text</b>" * 800_000) is not None


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import os; os.abort()", "the page was tried apart: it ends a process by SIGABRT"),
        ("import sys; sys.exit(3)", "the page was tried apart: it needs more memory than it may have"),
        ("import sys; sys.exit(4)", "the page was tried apart: it fails"),
        ("import sys; sys.exit(1)", "the page was tried apart: it ends a process with exit code 1"),
        ("pass", "the page was tried apart: it ends a process with exit code 255"),
        (SERVED.format(work="os.abort()"), "the page was tried apart: it ends a process by SIGABRT"),
        (SERVED.format(work="3"), "the page was tried apart: it needs more memory than it may have"),
        (SERVED.format(work="time.sleep(60)"), "the page was tried apart: it took longer than 0.5 s"),
        ("while True: pass", "the page was tried apart: it took longer than 0.5 s"),
    ],
)
def test_however_a_process_ends_it_is_told(program: str, told: str) -> None:
    seconds = 0.5 if "0.5 s" in told else 30.0
    trials = Trials(PageSettings(), seconds=seconds, command=(sys.executable, "-c", program))
    assert tried(trials, b"x") == told


def test_one_that_was_brought_down_spoils_no_other() -> None:
    async def three() -> list[str | None]:
        trials = Trials(PageSettings(), command=(sys.executable, "-c", POISON))
        bodies = (b"poison", b"x", b"poison")
        told = [
            await trials(FetchResult("http://a.test/", 0, status=200, headers=HTML, body=each)) for each in bodies
        ]
        await trials.close()
        return told

    killed = "the page was tried apart: it ends a process by SIGABRT"
    assert asyncio.run(three()) == [killed, None, killed]


def test_the_process_does_not_get_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXY_LOGIN", "user:secret")
    program = SERVED.format(work="'PROXY_LOGIN' in os.environ")
    assert tried(Trials(PageSettings(), command=(sys.executable, "-c", program)), b"x") is None


def test_a_suspect_that_is_poison_is_stored_with_the_error_and_not_asked_for_again(tmp_path: Path) -> None:
    place = CrawlDirectory(tmp_path / "crawl")

    async def story(base: str) -> tuple[Story, int]:
        values = {"contact": "t@crawlspace.test", "network.allow": ["127.0.0.1"], "host.delay": 0.0}
        poisoned = (sys.executable, "-c", POISON)
        plan = Plan(load(None, {}, values=values), trial=lambda pages: Trials(pages, command=poisoned))
        async with open_crawl(place, plan) as crawl:
            await crawl.inject([Request(f"{base}/poison")])
            assert len(await crawl.frontier.lease(Wish(7, 10, 10, 120_000, 60_000))) == 1
        for _ in range(2):
            async with open_crawl(place, plan) as crawl, crawl.engine() as engine:
                await asyncio.wait_for(engine.run(), 60)
                address = crawl.identity.identify(f"{base}/poison")
                assert not isinstance(address, Unusable)
                [found] = await crawl.frontier.find([address.key])
                fetches = (await crawl.frontier.counts()).fetches
        assert found is not None
        return found, fetches

    async def served() -> tuple[Story, int]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            line = await reader.readuntil(b"\r\n\r\n")
            status = b"404 x" if b"robots" in line else b"200 OK"
            writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<p>poison")
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await story(f"http://127.0.0.1:{port}")

    found, fetches = asyncio.run(served())
    assert (found.state, found.reason, fetches) == (UrlState.STORED, "processing", 1)
    assert found.detail == "the page was tried apart: it ends a process by SIGABRT"
