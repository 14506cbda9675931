"""The least that a crawl of one host can cost in Python with the libraries that crawlspace uses.

No politeness, robots rules, redirects, retries, limits or pace; addresses are compared as they are. With `durable` it
keeps what crawlspace keeps, in the same way: WARC request and response records, an archive that is on the disk before
a page is done, links and outcome in one transaction, groups of 300 pages or half a second. Killed, it goes on from
its database.

usage: floor.py URL nothing|durable CONCURRENCY
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import time
from base64 import b32encode
from collections import deque
from hashlib import blake2b, sha1, sha256
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import uuid4

import can_ada
import httptools
import uvloop
from isal import igzip_lib
from selectolax.lexbor import LexborHTMLParser

GROUP_PAGES = 300
GROUP_SECONDS = 0.5
SCHEMA = """
CREATE TABLE IF NOT EXISTS page (
  key BLOB PRIMARY KEY, url TEXT NOT NULL, done INTEGER NOT NULL, file TEXT, offset INTEGER, digest BLOB
) WITHOUT ROWID
"""


def key_of(url: str) -> bytes:
    return blake2b(url.encode(), digest_size=16).digest()


def sha1_of(data: bytes) -> str:
    return "sha1:" + b32encode(sha1(data).digest()).decode()


class NothingKept:
    """The store of a crawl that is gone when it ends."""

    def waiting(self) -> list[tuple[str, bool]]:
        """URLs known from an earlier run, and whether each is done."""
        return []

    def add(self, url: str, request: bytes, head: bytes, body: bytes, links: list[str]) -> None:
        """Take a page and the URLs first seen on it."""

    def flush(self) -> None:
        """Return when all that was added is durable."""


class Durable:
    """WARC file and SQLite database in the current folder."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("pages.db", isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.execute(SCHEMA)
        self._name = f"pages-{time.time_ns()}.warc.gz"
        self._file = Path(self._name).open("xb", buffering=0)  # noqa: SIM115 - it lives as long as the process
        self._offset = 0
        self._buffer: list[bytes] = []
        self._links: list[tuple[bytes, str]] = []
        self._done: list[tuple[Any, ...]] = []
        self._opened = time.monotonic()

    def waiting(self) -> list[tuple[str, bool]]:
        return [(url, bool(done)) for url, done in self._database.execute("SELECT url, done FROM page")]

    def add(self, url: str, request: bytes, head: bytes, body: bytes, links: list[str]) -> None:
        if not self._done:
            self._opened = time.monotonic()
        begin = self._offset
        block = head + body
        common = f"WARC-Target-URI: {url}\r\nWARC-Date: {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}\r\n"
        fields = f"{common}WARC-Payload-Digest: {sha1_of(body)}\r\n"
        name = self._append("response", fields, block)
        self._append("request", f"{common}WARC-Concurrent-To: {name}\r\n", request)
        self._links += [(key_of(link), link) for link in links]
        self._done.append((self._name, begin, sha256(body).digest(), key_of(url), url))
        if len(self._done) >= GROUP_PAGES or time.monotonic() - self._opened >= GROUP_SECONDS:
            self.flush()

    def flush(self) -> None:
        self._file.write(b"".join(self._buffer))
        os.fsync(self._file.fileno())
        self._database.execute("BEGIN IMMEDIATE")
        self._database.executemany("INSERT OR IGNORE INTO page VALUES (?, ?, 0, NULL, NULL, NULL)", self._links)
        self._database.executemany(
            "INSERT INTO page (file, offset, digest, key, url, done) VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT (key)"
            " DO UPDATE SET done = 1, file = excluded.file, offset = excluded.offset, digest = excluded.digest",
            self._done,
        )
        self._database.execute("COMMIT")
        self._buffer, self._links, self._done = [], [], []

    def _append(self, kind: str, fields: str, block: bytes) -> str:
        name = f"<urn:uuid:{uuid4()}>"
        head = (
            f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {name}\r\n{fields}WARC-Block-Digest: {sha1_of(block)}"
            f"\r\nContent-Type: application/http;msgtype={kind}\r\nContent-Length: {len(block)}\r\n\r\n"
        )
        record = b"".join((head.encode(), block, b"\r\n\r\n"))
        member = igzip_lib.compress(record, 1, igzip_lib.COMP_GZIP)
        self._buffer.append(member)
        self._offset += len(member)
        return name


class Crawl:
    """URLs known and waiting, and the connections that are free."""

    def __init__(self, url: str, store: NothingKept | Durable) -> None:
        self.host = urlsplit(url).netloc
        self.store = store
        self.running = 0
        self.idle: list[Connection] = []
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        known = store.waiting() or [(url, False)]
        self._seen = {each for each, _ in known}
        self.queue = deque(each for each, done in known if not done)
        self._prefix = f"http://{self.host}/"

    def take(self, url: str, request: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """A page has come."""
        html = any(name.lower() == b"content-type" and b"html" in value for name, value in headers)
        links = self._new_links(url, body) if html else []
        head = b"HTTP/1.1 200 OK\r\n" + b"".join(b"%b: %b\r\n" % field for field in headers) + b"\r\n"
        self.store.add(url, request, head, body, links)
        self.queue.extend(links)
        while self.idle and self.queue:
            self.idle.pop().ask()

    def _new_links(self, url: str, body: bytes) -> list[str]:
        base = can_ada.parse(url)
        texts = {(node.attributes["href"] or "").partition("#")[0] for node in LexborHTMLParser(body).css("a[href]")}
        links = []
        for text in texts:
            try:
                link = (base + text).href
            except ValueError:
                continue
            if link not in self._seen and link.startswith(self._prefix):
                self._seen.add(link)
                links.append(link)
        return links


class Connection(asyncio.Protocol):
    """One kept connection, one request at a time."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.ask()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._crawl.ended.done():
            self._crawl.ended.set_exception(error or ConnectionError("the server ended a connection"))

    def ask(self) -> None:
        """Request the next URL, or wait for one; the last to wait ends the crawl."""
        crawl = self._crawl
        if not crawl.queue:
            crawl.idle.append(self)
            if not crawl.running and not crawl.ended.done():
                crawl.ended.set_result(None)
            return
        crawl.running += 1
        self._url = crawl.queue.popleft()
        path = self._url[len("http://") + len(crawl.host) :]
        self._request = f"GET {path} HTTP/1.1\r\nHost: {crawl.host}\r\nUser-Agent: floor\r\n\r\n".encode()
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        self._crawl.running -= 1
        self._crawl.take(self._url, self._request, self._headers, b"".join(self._body))
        self.ask()


async def main(url: str, keep: str, concurrency: str) -> None:
    store = Durable() if keep == "durable" else NothingKept()
    crawl = Crawl(url, store)
    host, _, port = urlsplit(url).netloc.partition(":")
    loop = asyncio.get_running_loop()
    for _ in range(int(concurrency)):
        await loop.create_connection(lambda: Connection(crawl), host, int(port))
    await crawl.ended
    store.flush()


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
