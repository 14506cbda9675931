"""Crawls that were never crawled: pages put into a crawl directory as if they had been fetched."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest
from msgspec.structs import replace

from crawlspace.app.compose import OpenCrawl, Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.exchange import Capture
from crawlspace.settings import Settings, convert, nested
from crawlspace.types import Address, Claim, Evidence, Finished, QueuedUrl, host_id

AT = 1_760_000_000_000


class Packed(NamedTuple):
    """One page that was fetched."""

    url: str
    body: bytes
    type: str = "text/html; charset=utf-8"
    at: int = AT


class Pack(Protocol):
    def __call__(self, pages: Iterable[Packed], **settings: object) -> CrawlDirectory: ...


def settings_of(**values: object) -> Settings:
    """Settings by names with `__` for the dot."""
    return convert(nested({name.replace("__", "."): value for name, value in values.items()}), "test")


def packed(directory: Path, pages: Iterable[Packed], settings: Settings) -> CrawlDirectory:
    """A crawl directory with these pages, all done."""
    place = CrawlDirectory(directory)

    async def fill() -> None:
        async with open_crawl(place, Plan(settings=settings)) as crawl:
            for start in range(0, len(all_pages), 500):
                await _put(crawl, all_pages[start : start + 500])

    all_pages = list(pages)
    asyncio.run(fill())
    return place


async def _put(crawl: OpenCrawl, pages: Sequence[Packed]) -> None:
    addresses = [crawl.identity.identify(page.url) for page in pages]
    known = [address for address in addresses if isinstance(address, Address)]
    await crawl.frontier.claim([Claim(address, depth=1) for address in known])
    stories = await crawl.frontier.find([address.key for address in known])
    done = []
    for page, address, story in zip(pages, known, stories, strict=True):
        assert story is not None
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {page.type}\r\nContent-Length: {len(page.body)}\r\n\r\n".encode()
        capture = Capture(page.url, page.at, 200, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"", head, page.body)
        evidence = Evidence(page.at, 200, mime=page.type.split(";")[0], size=len(page.body))
        evidence = replace(evidence, pointer=await crawl.archive.append(capture))
        url = QueuedUrl(story.id, address.key, page.url, 5, 1)
        done.append(Finished(0, host_id(address.key), url, evidence))
    await crawl.archive.flush()
    assert all(await crawl.frontier.adopt(done, []))


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    """Makes a crawl directory of pages."""

    def make(pages: Iterable[Packed], **settings: object) -> CrawlDirectory:
        return packed(tmp_path / "crawl", pages, settings_of(**settings))

    return make
