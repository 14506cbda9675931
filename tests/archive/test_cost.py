"""What keeping a page costs, as a ratio to work that nobody can save; and that memory does not grow with a crawl."""

from __future__ import annotations

import asyncio
import math
import os
import random
import time
from collections.abc import Callable
from hashlib import sha1, sha256
from pathlib import Path

import pytest

from crawlspace.archive.members import deflate
from crawlspace.archive.table import CaptureTable
from crawlspace.archive.warc import WarcArchive
from crawlspace.exchange import Capture, Facts, Outlink

MakeCapture = Callable[..., Capture]
MakeArchive = Callable[..., WarcArchive]

ROUNDS = 12
PAGES = 30
MOST = 2.0
"""A record made by hand, three digests and one compression of the page, is 1. Measured 1.4 with request and facts."""


@pytest.fixture
def page(capture: MakeCapture) -> Capture:
    """Some 42 KB of HTML with a hundred links."""
    chance = random.Random(3)
    words = ["crawl", "page", "link", "host", "the", "of", "archive", "record", "time", "bytes"]
    body = "".join(
        f"<p>{' '.join(chance.choices(words, k=40))} <a href='/{n}/{chance.random()}'>{n}</a></p>" for n in range(150)
    ).encode()
    assert 36_000 < len(body) < 48_000
    links = tuple(Outlink(f"/{n}/page.html", "hyperlink") for n in range(100))
    return capture(payload=body, facts=Facts(id=1, canonical="http://a.test/", base="http://a.test/", links=links))


@pytest.mark.no_cover
def test_a_usual_page_costs_little_more_than_a_record_made_by_hand(archive: MakeArchive, page: Capture) -> None:
    """In turns, the least of each: load moves both alike. What `fsync` takes is no CPU, and is in neither."""
    kept = archive()

    async def written() -> float:
        started = time.process_time()
        for _ in range(PAGES):
            sha256(page.payload).digest()
            await kept.append(page)
        return time.process_time() - started

    def by_hand() -> float:
        block = page.response_head + page.payload
        started = time.process_time()
        for _ in range(PAGES):
            sha256(page.payload).digest()
            sha1(block, usedforsecurity=False).digest()
            sha1(page.payload, usedforsecurity=False).digest()
            deflate(block, 1)
        return time.process_time() - started

    async def run() -> float:
        ours = bare = math.inf
        for _ in range(ROUNDS):
            ours, bare = min(ours, await written()), min(bare, by_hand())
            await kept.flush()
        await kept.close()
        return ours / bare

    assert asyncio.run(run()) < MOST


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def grown(archive: WarcArchive, capture: Capture, captures: int) -> int:
    """Bytes by which the process grew from a tenth of these captures to all of them."""

    async def run() -> int:
        before = 0
        for number in range(captures):
            facts = Facts(id=number, canonical=f"http://a.test/{number}", host=f"h{number % 97}.test", outcome="done")
            url = f"http://h{number % 97}.test/{number}"
            made = Capture(url, capture.at, 200, b"", b"", capture.response_head, b"x%d" % number, facts=facts)
            await archive.append(made)
            if number % 300 == 299:
                await archive.flush()
            if number == captures // 10:
                before = resident()
        spent = resident() - before
        await archive.close()
        return spent

    return asyncio.run(run())


@pytest.mark.parametrize(
    "captures", [pytest.param(6_000), pytest.param(1_000_000, marks=[pytest.mark.long, pytest.mark.timeout(1800)])]
)
def test_memory_does_not_grow_with_the_number_of_captures(
    archive: MakeArchive, capture: MakeCapture, tmp_path: Path, captures: int
) -> None:
    """The table of captures included, whose rows are held up to a number."""
    table = CaptureTable(tmp_path / "captures", "0", rows=min(captures // 6, 20_000))
    assert grown(archive(table=table), capture(), captures) < 48 << 20
