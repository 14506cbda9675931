"""Crawlee for Python as its documentation shows it: a `ParselCrawler` whose handler enqueues every link.

usage: crawlee_crawler.py URL memory|sql CONCURRENCY
"""

from __future__ import annotations

import asyncio
import logging
import sys

from crawlee import ConcurrencySettings
from crawlee.configuration import Configuration
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient, SqlStorageClient


async def main(url: str, mode: str, concurrency: str) -> None:
    logging.disable(logging.CRITICAL)
    at_once = int(concurrency)
    crawler = ParselCrawler(
        # Without the purge a second run goes on where the first one was killed.
        configuration=Configuration(storage_dir="storage", purge_on_start=False),
        storage_client=SqlStorageClient() if mode == "sql" else MemoryStorageClient(),
        concurrency_settings=ConcurrencySettings(
            min_concurrency=at_once, desired_concurrency=at_once, max_concurrency=at_once
        ),
        max_request_retries=0,
        configure_logging=False,
    )

    @crawler.router.default_handler
    async def enqueue(context: ParselCrawlingContext) -> None:
        await context.enqueue_links()

    await crawler.run([url])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
