"""Parts of Scrapy's and Crawlee's way, each alone, for `python -m bench.parts`.

usage: parts.py ROUNDS < INPUT

INPUT is a JSON object: `links`, a list of [address of a page, its links]; `pages`, paths of HTML files; `offers`,
URLs as they are found, with repeats. Each figure is a line of JSON: part, who, and CPU microseconds for one link,
page or offer, the lowest of the rounds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from crawlee import Request as CrawleeRequest
from crawlee.configuration import Configuration
from crawlee.storage_clients import MemoryStorageClient, SqlStorageClient
from crawlee.storages import RequestQueue
from scrapy import Request
from scrapy.dupefilters import RFPDupeFilter
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor
from w3lib.url import canonicalize_url

URL = "https://docs.example.org/manual/page.html"
BATCH = 1000
"""Offers that Crawlee is given at a time."""


def normalise(base: str, link: str) -> object:
    return canonicalize_url(urljoin(base, link))


def scrapy_key(base: str, link: str) -> object:
    return RFPDupeFilter().request_fingerprint(Request(urljoin(base, link)))


def crawlee_key(base: str, link: str) -> object:
    return CrawleeRequest.from_url(urljoin(base, link)).unique_key


def each_link(links: list[tuple[str, list[str]]], work: Callable[[str, str], object]) -> int:
    """Do it for every link that the libraries do not refuse; how many links there are."""
    for base, found in links:
        for link in found:
            try:
                work(base, link)
            except ValueError:
                continue
    return sum(len(found) for _, found in links)


def each_page(bodies: list[bytes]) -> int:
    extractor = LinkExtractor()
    for body in bodies:
        extractor.extract_links(HtmlResponse(URL, body=body, encoding="utf-8"))
    return len(bodies)


def scrapy_offers(offers: list[str], job: str | None) -> int:
    """Requests made and asked for in the filter of duplicates, which keeps a file beside a job."""
    seen = RFPDupeFilter(job)
    for url in offers:
        seen.request_seen(Request(url))
    seen.close("done")
    return len(offers)


async def crawlee_offers(offers: list[str], client: Any, folder: str) -> int:
    """Requests made and added to a queue."""
    queue = await RequestQueue.open(storage_client=client, configuration=Configuration(storage_dir=folder))
    for start in range(0, len(offers), BATCH):
        await queue.add_requests([CrawleeRequest.from_url(url) for url in offers[start : start + BATCH]])
    await queue.drop()
    return len(offers)


def lowest(rounds: int, work: Callable[[], int]) -> float:
    """Microseconds of CPU for one of what `work` counts."""
    found = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        count = work()
        found = min(found, (time.process_time() - begin) / count * 1e6)
    return found


def ended(waiting: Callable[[], Awaitable[int]]) -> Callable[[], int]:
    async def run() -> int:
        return await waiting()

    return lambda: asyncio.run(run())


def main() -> None:
    rounds = int(sys.argv[1])
    given = json.load(sys.stdin)
    bodies = [Path(path).read_bytes() for path in given["pages"]]
    links, offers = given["links"], given["offers"]
    with tempfile.TemporaryDirectory(prefix="bench-parts-") as folder:
        numbers = iter(range(1_000_000))

        def fresh() -> str:
            path = Path(folder, str(next(numbers)))
            path.mkdir()
            return str(path)

        works: list[tuple[str, str, Callable[[], int]]] = [
            ("normalise", "w3lib", lambda: each_link(links, normalise)),
            ("normalise and key", "scrapy", lambda: each_link(links, scrapy_key)),
            ("normalise and key", "crawlee", lambda: each_link(links, crawlee_key)),
            ("links of a page", "scrapy", lambda: each_page(bodies)),
            ("claim", "scrapy", lambda: scrapy_offers(offers, None)),
            ("claim", "scrapy with JOBDIR", lambda: scrapy_offers(offers, fresh())),
            ("claim", "crawlee", ended(lambda: crawlee_offers(offers, MemoryStorageClient(), fresh()))),
            ("claim", "crawlee with SQL", ended(lambda: crawlee_offers(offers, SqlStorageClient(), fresh()))),
        ]
        for part, who, work in works:
            print(json.dumps({"part": part, "who": who, "cost": lowest(rounds, work)}), flush=True)


if __name__ == "__main__":
    main()
