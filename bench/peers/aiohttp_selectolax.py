"""What many write by hand: aiohttp, selectolax, and `urljoin` with a set of strings. Nothing is kept.

usage: aiohttp_selectolax.py URL CONCURRENCY
"""

from __future__ import annotations

import asyncio
import sys
from urllib.parse import urldefrag, urljoin, urlsplit

import aiohttp
import uvloop
from selectolax.lexbor import LexborHTMLParser


class Crawl:
    """Workers around one queue, until all that was put in has been looked at."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._host = urlsplit(url).netloc
        self._session = session
        self._seen = {url}
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._queue.put_nowait(url)

    async def run(self, workers: int) -> None:
        tasks = [asyncio.create_task(self._work()) for _ in range(workers)]
        await self._queue.join()
        for task in tasks:
            task.cancel()

    async def _work(self) -> None:
        while True:
            url = await self._queue.get()
            try:
                await self._page(url)
            except aiohttp.ClientError as error:
                print(f"{url}: {error}", file=sys.stderr)
            finally:
                self._queue.task_done()

    async def _page(self, url: str) -> None:
        async with self._session.get(url) as response:
            body = await response.read()
            if "html" not in response.content_type:
                return
        for node in LexborHTMLParser(body).css("a[href]"):
            link = urldefrag(urljoin(url, node.attributes["href"] or "")).url
            if urlsplit(link).netloc == self._host and link not in self._seen:
                self._seen.add(link)
                self._queue.put_nowait(link)


async def main(url: str, concurrency: str) -> None:
    connector = aiohttp.TCPConnector(limit=int(concurrency))
    async with aiohttp.ClientSession(connector=connector) as session:
        await Crawl(url, session).run(int(concurrency))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(*sys.argv[1:]))
