"""Suspect pages are tried in a process of their own before this one reads them.

A URL is suspect when a lease that held it was lost, perhaps because its page brought a worker down. The trial does
what is done to a page here, within limits of time and memory, and gives nothing back but that it came through: what a
hostile page makes of that process is believed by nobody. A page that does not come through is kept and not read.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import islice
from typing import Protocol

import msgspec

from crawlspace.content.simhash import text_simhash
from crawlspace.engine.apart import FAILED, MEMORY, OUT_OF_MEMORY, SECONDS, Forking, limit, serve
from crawlspace.engine.fingerprints import Content
from crawlspace.exchange import FetchResult, Headers
from crawlspace.pages.links import PageSettings
from crawlspace.pages.mime import content_type
from crawlspace.pages.packed import pieces
from crawlspace.pages.sitemap import SitemapReader, looks_like_sitemap


class Trial(Protocol):
    """Tries answers."""

    async def __call__(self, result: FetchResult) -> str | None:
        """Why the answer cannot be read here; None when it can."""
        ...

    async def close(self) -> None:
        """End its processes."""
        ...


_COMMAND = (sys.executable, "-m", "crawlspace.engine.trial")


class Tried(msgspec.Struct, frozen=True):
    """What the process is given."""

    url: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    settings: PageSettings
    memory: int
    seconds: float


class Trials:
    """Tries answers as a page of these settings. One for a run."""

    def __init__(
        self,
        settings: PageSettings,
        seconds: float = SECONDS,
        memory: int = MEMORY,
        command: Sequence[str] = _COMMAND,
    ) -> None:
        self._settings = settings
        self._bounds = (memory, seconds)
        self._apart = Forking(command, seconds)

    async def __call__(self, result: FetchResult) -> str | None:
        """Why the answer cannot be read here; None when it can."""
        tried = Tried(result.url, result.headers.raw, result.body, self._settings, *self._bounds)
        problem, _ = await self._apart.run(msgspec.msgpack.encode(tried))
        return None if problem is None else f"the page was tried apart: {problem}"

    async def close(self) -> None:
        """End the processes that wait for more."""
        await self._apart.close()


def _read(tried: Tried) -> None:
    """All that is done to a page or a sitemap here."""
    result = FetchResult(tried.url, 0, status=200, headers=Headers(tried.headers), body=tried.body)
    if looks_like_sitemap(tried.body):
        reader = SitemapReader(content_type(result.headers).charset)
        for piece in islice(pieces(tried.body), 1 << 20):
            reader.feed(piece)
    text_simhash(Content.of(result, tried.settings).utf8())


def _try(given: bytes) -> int:
    """Come through or not; the exit code of the process that tries."""
    tried = msgspec.msgpack.decode(given, type=Tried)
    limit(tried.seconds, tried.memory)
    try:
        _read(tried)
    except MemoryError:
        return OUT_OF_MEMORY
    except Exception:  # under these limits much can fail, and not by its own name
        return FAILED
    return 0


if __name__ == "__main__":
    serve(_try)
