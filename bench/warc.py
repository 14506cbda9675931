"""`python -m bench.warc`: what it costs to write a page into WARC, beside the least and beside other writers.

usage: python -m bench.warc [--rounds 9] [--json]

Pages are those of Python's documentation between 30 and 56 KB, which are 42 KB in the mean. Times are CPU, the lowest
of several rounds that are taken in turns; `fsync` is in none of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha1
from io import BytesIO
from itertools import islice
from pathlib import Path

from crawlspace.archive.disk import AppendFile, RealDisk
from crawlspace.archive.members import deflate
from crawlspace.archive.warc import ArchiveSettings, WarcArchive
from crawlspace.clock import SystemClock
from crawlspace.exchange import Capture, Facts, Outlink

ROOT = Path("/usr/share/doc/python3.11/html")
PAGES = 100
TURNS = 5
"""How often each page comes, so that the start of a crawl weighs as little as it does in one."""
PART = "write a page into WARC"
UNIT = "ms a page of 42 KB"
OURS = "crawlspace"

_AT = 1_760_000_000_000
_LINKS = tuple(Outlink(f"/{number}/page.html", "hyperlink") for number in range(30))
_REQUEST = b"GET / HTTP/1.1\r\nHost: a.test\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"


class _Unsynced:
    """A file whose syncs are left out: the time that the system spends in them is the disk's own affair."""

    def __init__(self, file: AppendFile) -> None:
        self.write, self.truncate, self.close = file.write, file.truncate, file.close

    def sync(self) -> None:
        """Nothing."""


class _UnsyncedDisk(RealDisk):
    def create(self, path: Path) -> AppendFile:
        return _Unsynced(super().create(path))

    def sync_directory(self, path: Path) -> None:
        """Nothing."""


def captures() -> list[Capture]:
    """Some hundred pages as if they had been fetched, several times; none where the package is not installed."""
    files = (file for file in sorted(ROOT.rglob("*.html")) if 30_000 < file.stat().st_size < 56_000)
    bodies = [file.read_bytes() for file in islice(files, PAGES)]
    return [_capture(number, body) for number, body in enumerate(bodies * TURNS)]


def _capture(number: int, body: bytes) -> Capture:
    url = f"http://a.test/{number}"
    facts = Facts(id=number, canonical=url, host="a.test", outcome="done", base=url, links=_LINKS)
    return Capture(url, _AT + number, 200, _REQUEST, b"", _HEAD % len(body), body, facts=facts)


def least(pages: Sequence[Capture]) -> None:
    """Two digests and one compression of each page."""
    for page in pages:
        block = page.response_head + page.payload
        sha1(block, usedforsecurity=False).digest()
        sha1(page.payload, usedforsecurity=False).digest()
        deflate(block, 1)


def ours(pages: Sequence[Capture], folder: Path, *, facts: bool) -> None:
    """Response and request, with what was made of them or without."""

    async def write() -> None:
        settings = ArchiveSettings(metadata=facts)
        archive = WarcArchive(folder, settings, SystemClock(), crawl="bench", software="bench", disk=_UnsyncedDisk())
        for page in pages:
            await archive.append(page)
        await archive.close()

    asyncio.run(write())


def by_warcio(pages: Sequence[Capture]) -> None:
    """Response and request by warcio, which compresses by zlib."""
    from warcio.statusandheaders import StatusAndHeadersParser
    from warcio.warcwriter import WARCWriter

    writer = WARCWriter(BytesIO(), gzip=True)
    for page in pages:
        for kind, head, body in (("response", page.response_head, page.payload), ("request", page.request_head, b"")):
            parser = StatusAndHeadersParser(["HTTP/1.0", "HTTP/1.1"], verify=False)
            fields = parser.parse(BytesIO(head))
            with BytesIO(body) as payload:
                writer.write_record(writer.create_warc_record(page.url, kind, payload=payload, http_headers=fields))


def by_fastwarc(pages: Sequence[Capture]) -> None:
    """Response and request by fastwarc, digests and all."""
    from fastwarc import GzipWriter
    from fastwarc.warc import WarcRecord, WarcRecordType

    stream = GzipWriter(BytesIO(), 1)
    for page in pages:
        blocks = ((WarcRecordType.response, page.response_head + page.payload), (WarcRecordType.request, _REQUEST))
        for kind, block in blocks:
            record = WarcRecord()
            record.init_headers(kind)
            record.headers["WARC-Target-URI"] = page.url
            record.set_bytes_content(block)
            record.write(stream, checksum_data=True)
    stream.close()


def measure(rounds: int) -> Iterator[tuple[str, float]]:
    """Who writes, and the milliseconds of a page."""
    pages = captures()
    if not pages:
        return
    with tempfile.TemporaryDirectory() as folder:
        works: dict[str, Callable[[], None]] = {
            "two digests and one compression": lambda: least(pages),
            OURS: lambda: ours(pages, Path(folder), facts=True),
            f"{OURS}, without facts": lambda: ours(pages, Path(folder), facts=False),
            "fastwarc": lambda: by_fastwarc(pages),
            "warcio": lambda: by_warcio(pages),
        }
        best = dict.fromkeys(works, float("inf"))
        for _ in range(rounds):
            for who, work in works.items():
                began = time.process_time()
                work()
                best[who] = min(best[who], time.process_time() - began)
    yield from ((who, spent * 1000 / len(pages)) for who, spent in best.items())


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.warc")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    for who, cost in measure(asked.rounds):
        if asked.json:
            print(json.dumps({"part": PART, "unit": UNIT, "who": who, "cost": round(cost, 4)}))
        else:
            print(f"{who:32} {cost:8.3f} {UNIT}")


if __name__ == "__main__":
    main()
