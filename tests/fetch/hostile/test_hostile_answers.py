"""Hostile answers, by the thousand: each ends in time as a value, costs little, and harms no other."""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import uvloop

import crawlspace
from crawlspace.archive.captures import Place, capture_of, records_of
from crawlspace.archive.record import decode
from crawlspace.cli.options import reading
from crawlspace.clock import SystemClock
from crawlspace.engine import reading as results
from crawlspace.events import Ending
from crawlspace.exchange import FetchRequest, FetchResult
from crawlspace.fetch import FetchSettings, HttpFetcher, NetworkSettings
from crawlspace.fetch.limits import MIB
from crawlspace.pages.links import PageSettings, read_page
from crawlspace.policy.outcome import classify
from crawlspace.states import TERMINAL, UrlState
from crawlspace.types import Unusable

LIMITS = FetchSettings(
    timeout=2, connect_timeout=1, idle_timeout=0.2, min_rate_after=1, max_body=4 << 20, cookies=True
)
NETWORK = NetworkSettings(allow=["127.0.0.1"])
GRACE = 3.0
"""Seconds that a busy machine may be late with a deadline."""
CPU = 0.050
"""Seconds that an answer may cost to fetch."""
READING = 0.100, 0.050
"""Seconds that a body may cost to read: whatever its size, and for each MiB."""
TRACED = 4
"""How much longer our own code may take while its coverage is measured."""
MEMORY_KIB = 250 * 1024
FINE = b"<html><title>fine</title></html>"


def check(result: FetchResult) -> None:
    """What holds for every result, and that whoever reads it next can."""
    assert len(result.body) <= LIMITS.max_body
    assert len(result.payload) <= LIMITS.max_wire
    assert len(result.response_head) <= LIMITS.max_head
    assert bool(result.status) is bool(result.response_head)
    if result.error is None:
        assert 200 <= result.status <= 999
    classify(result, 0)
    if result.response_head:
        record = records_of(results.capture_of(result), Place("f", 0, "<urn:uuid:0>")).response
        again = capture_of(decode(record), None)
        assert again.response_head + again.payload == result.response_head.lstrip(b"\r\n") + result.payload


def cpu() -> float:
    """Seconds that this thread has computed; the kernel's share depends on how busy the machine is."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_utime


async def fetch_and_read(fetcher: HttpFetcher, url: str) -> tuple[float, FetchResult]:
    """CPU seconds of this thread beyond what one answer may cost; the server has a thread of its own."""
    began, spent = time.monotonic(), cpu()
    result = await fetcher.fetch(FetchRequest(url))
    fetched = cpu() - spent
    took = time.monotonic() - began
    assert took < LIMITS.timeout + LIMITS.connect_timeout + GRACE, (url, took)
    spent = cpu()
    read_page(result.body, result.url, result.headers, PageSettings())
    read = cpu() - spent
    slack = TRACED if sys.gettrace() is not None else 1
    return max(fetched - slack * CPU, read - slack * (READING[0] + READING[1] * len(result.body) / MIB)), result


async def meet_one(fetcher: HttpFetcher, url: str) -> None:
    """One that seems dear is asked for again, since a busy machine makes anything dear."""
    for _ in range(4):
        excess, result = await fetch_and_read(fetcher, url)
        check(result)
        if excess < 0:
            return
    raise AssertionError(f"{url} costs {excess * 1000:.0f} ms more than it may")


async def meet(server: Any, numbers: range) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fetcher = HttpFetcher(LIMITS, NETWORK, SystemClock(), user_agent="crawlspace-test/1")
    origin = f"http://127.0.0.1:{server.port}"
    try:
        for number in numbers:
            await meet_one(fetcher, f"{origin}/{number}")
            if number % 10 == 0:
                fine = await fetcher.fetch(FetchRequest(f"{origin}/fine"))
                assert (fine.error, fine.body) == (None, FINE), (server.seed, number)
    finally:
        await fetcher.close()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY_KIB


@pytest.mark.parametrize("part", range(3))
def test_hostile_answers_end_in_time_cost_little_and_spoil_no_other(part: int, hostile: Any) -> None:
    """300 answers of all kinds; what fails names its seed and number."""
    server = hostile(seed=5)
    uvloop.run(meet(server, range(part * 100, part * 100 + 100)))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10))
def test_five_thousand_hostile_answers(seed: int, hostile: Any) -> None:
    asyncio.run(meet(hostile(seed=1000 + seed), range(500)))


def test_a_crawl_of_a_hostile_host_ends_with_every_url_in_its_place(tmp_path: Path, hostile: Any) -> None:
    links = b"".join(b"<a href=/%d>x</a>" % number for number in range(96))
    server = hostile(seed=9, front=b"<html>" + links + b"</html>")
    settings = {
        "contact": "tests@crawlspace.test",
        "host.delay": 0,
        "host.concurrency": 4,
        "host.delay_max": 0.05,
        "host.retry_after_max": 0.1,
        "host.failure_wait": 0.05,
        "host.failures_max": 1000,
        "retry.max": 2,
        "retry.wait": 0.05,
        "fetch.timeout": 2,
        "fetch.idle_timeout": 0.1,
        "fetch.max_body": 1 << 20,
        "network.allow": ["127.0.0.1"],
        "network.resolve": {"h.test:80": f"127.0.0.1:{server.port}"},
        "scope.max_depth": 1,
        "budget.pages": 3000,
        "budget.seconds": 60,
    }
    crawl = crawlspace.Crawl(tmp_path / "c", ["http://h.test/"], settings=settings)
    seen: list[bytes] = []

    @crawl.handler
    def read(page: crawlspace.Page) -> None:
        seen.append(page.body)

    result = crawl.run()
    assert result.ending is Ending.FINISHED
    counts = result.counts
    assert counts.known == sum(counts.states.values())
    assert counts.states[UrlState.QUEUED] == counts.states[UrlState.LEASED] == 0
    assert seen
    assert all(len(body) <= 1 << 20 for body in seen)
    assert all(b"Host: h.test\r\n" in request for request in server.asked)

    async def states() -> list[tuple[UrlState | None, str | None]]:
        async with reading(tmp_path / "c") as (frontier, identity):
            found = [identity.identify(f"http://h.test/{number}") for number in range(96)]
            stories = await frontier.find([each.key for each in found if not isinstance(each, Unusable)])
            return [(story and story.state, story and (story.reason or story.state.name)) for story in stories]

    rows = asyncio.run(states())
    assert len(rows) == 96
    assert all(state in TERMINAL and reason for state, reason in rows)
    assert {state for state, _ in rows} >= {UrlState.DONE, UrlState.DEAD, UrlState.REDIRECTED}
