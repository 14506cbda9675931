"""What can be read safely of a Scrapy job's directory: the requests that were still to be made.

They lie there as pickles, which run code when they are loaded; so none ever is. Their operations are listed without
being carried out (`pickletools`), and of the texts in them the address and the method of the request are taken. What
has been requested already is there as fingerprints only: no URL can be had from those, and a feed of the same job is
what tells them.
"""

from __future__ import annotations

import json
import pickletools
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO

from crawlspace.app.importing.imported import Imported

QUEUE = "requests.queue"
SEEN = "requests.seen"
STATE = "spider.state"
REQUEST_LIMIT = 1 << 20
"""Bytes of one request; larger ones are passed over."""

_SIZE = 4
_PICKLE = b"\x80"
_OPS_LIMIT = 100_000


def waiting(job: Path, done: Imported) -> Iterator[str]:
    """Addresses of the requests that a job still had to make. Raises `OSError`."""
    _tell_what_stays(job, done)
    for path in sorted(each for each in (job / QUEUE).rglob("*") if each.is_file() and not each.is_symlink()):
        if path.suffix == ".json":
            continue
        for data in _entries(path, done):
            url = _url_in(data, done)
            if url is not None:
                yield url


def _tell_what_stays(job: Path, done: Imported) -> None:
    seen = job / SEEN
    if seen.is_file() and (size := seen.stat().st_size):
        done.passed[f"bytes of fingerprints in {SEEN}, of which no URL can be made"] += size
    if (job / STATE).is_file():
        done.passed[f"{STATE}, a pickle, which is never loaded"] += 1


def _entries(path: Path, done: Imported) -> Iterator[bytes]:
    """The requests in a file of the queue, as they were written."""
    info = path.with_name("info.json")
    with path.open("rb") as file:
        if info.is_file() and path.name.startswith("q"):
            yield from _forwards(file, path, _offset(info, path), done)
        else:
            yield from _backwards(file, path, done)


def _offset(info: Path, path: Path) -> int:
    """Where the requests begin that a first-in-first-out queue has not given out yet."""
    try:
        number, _, offset = json.loads(info.read_text())["tail"]
        return int(offset) if path.name == f"q{number:05d}" else 0
    except (ValueError, KeyError, TypeError):
        return 0


def _forwards(file: IO[bytes], path: Path, offset: int, done: Imported) -> Iterator[bytes]:
    file.seek(offset)
    while head := file.read(_SIZE):
        size = int.from_bytes(head, "big")
        data = file.read(min(size, REQUEST_LIMIT + 1))
        if len(data) > REQUEST_LIMIT:
            done.passed["requests of too many bytes"] += 1
            file.seek(size - len(data), 1)
        elif len(data) < size:
            done.lost(f"{path.name}: a request ends too early")
            return
        else:
            yield data


def _backwards(file: IO[bytes], path: Path, done: Imported) -> Iterator[bytes]:
    """Each request has its length behind it; the file begins with how many there are."""
    end = file.seek(0, 2)
    while end > _SIZE:
        file.seek(end - _SIZE)
        size = int.from_bytes(file.read(_SIZE), "big")
        start = end - _SIZE - size
        if start < _SIZE:
            done.lost(f"{path.name}: what lies before byte {end} is no request")
            return
        if size > REQUEST_LIMIT:
            done.passed["requests of too many bytes"] += 1
        else:
            file.seek(start)
            yield file.read(size)
        end = start


def _url_in(data: bytes, done: Imported) -> str | None:
    if not data.startswith(_PICKLE):
        done.passed["requests that are no pickles"] += 1
        return None
    try:
        texts = list(_texts(data))
    except Exception:  # what is no pickle at all makes its reader raise many things
        done.passed["requests that cannot be read"] += 1
        return None
    facts = {}
    for name, value in pairwise(texts):
        if name in ("url", "method") and name not in facts:
            facts[name] = value
    if not facts.get("url"):
        done.passed["requests that cannot be read"] += 1
        return None
    if facts.get("method", "GET") != "GET":
        done.passed["requests of another method than GET"] += 1
        return None
    return facts["url"]


def _texts(data: bytes) -> Iterator[str | None]:
    """The texts that a pickle would push, in order; None for anything else that it pushes."""
    memo: list[str | None] = []
    last: str | None = None
    for count, (operation, argument, _) in enumerate(pickletools.genops(data)):
        if count >= _OPS_LIMIT:
            return
        match operation.name:
            case "MEMOIZE":
                memo.append(last)
                continue
            case "PROTO" | "FRAME" | "MARK":
                continue
            case "BINGET" | "LONG_BINGET":
                last = memo[argument] if argument is not None and argument < len(memo) else None
            case _:
                last = argument if isinstance(argument, str) and "UNICODE" in operation.name else None
        yield last
