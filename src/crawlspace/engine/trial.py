"""Suspect pages are tried in a process of their own before this one reads them.

A URL is suspect when a lease that held it was lost, perhaps because its page brought a worker down. The trial does
what is done to a page here, within limits of time and memory, and gives nothing back but that it came through: what a
hostile page makes of that process is believed by nobody. A page that does not come through is kept and not read.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import msgspec

from crawlspace.exchange import FetchResult, Headers
from crawlspace.pages.links import PageSettings

Trial = Callable[[FetchResult], Awaitable[str | None]]
"""Tries an answer; why it cannot be read here, None when it can."""

SECONDS = 20.0
MEMORY = 2 << 30
"""Bytes of address space, most of which is the interpreter's and its libraries' own."""
OUT_OF_MEMORY = 3
STARTED_AT_ONCE = 2
"""Trials at the same time; suspects are few."""

_KEPT = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "LANG")
"""What the process gets of the environment, which may hold logins."""
_COMMAND = (sys.executable, "-m", "crawlspace.engine.trial")


class Tried(msgspec.Struct, frozen=True):
    """What the process is given."""

    url: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    settings: PageSettings
    memory: int
    seconds: float


@dataclass(slots=True)
class Trials:
    """Tries answers as a page of these settings. One for a run."""

    settings: PageSettings
    seconds: float = SECONDS
    memory: int = MEMORY
    command: Sequence[str] = _COMMAND
    _room: asyncio.Semaphore | None = None

    async def __call__(self, result: FetchResult) -> str | None:
        """Why the answer cannot be read here; None when it can."""
        self._room = self._room or asyncio.Semaphore(STARTED_AT_ONCE)
        tried = Tried(result.url, result.headers.raw, result.body, self.settings, self.memory, self.seconds)
        async with self._room:
            return await self._run(msgspec.msgpack.encode(tried))

    async def _run(self, given: bytes) -> str | None:
        process = await asyncio.create_subprocess_exec(
            *self.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self.seconds):
                await process.communicate(given)
        except TimeoutError:
            return f"reading it took longer than {self.seconds:g} s"
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        return _told(process.returncode)


def _told(code: int | None) -> str | None:
    if code == 0:
        return None
    if code == OUT_OF_MEMORY:
        return "reading it needs more memory than a page may have"
    if code is not None and code < 0:
        return f"reading it ends a process by {_name(-code)}"
    return f"reading it ends a process with exit code {code}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _limit(tried: Tried) -> None:
    import resource

    seconds = max(1, round(tried.seconds))
    resource.setrlimit(resource.RLIMIT_AS, (tried.memory, tried.memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _read(tried: Tried) -> None:
    """All that is done to a page or a sitemap here."""
    from crawlspace.content.shingles import shingles
    from crawlspace.content.simhash import simhash
    from crawlspace.engine.fingerprints import Content
    from crawlspace.pages.mime import content_type
    from crawlspace.pages.packed import pieces
    from crawlspace.pages.sitemap import SitemapReader, looks_like_sitemap

    result = FetchResult(tried.url, 0, status=200, headers=Headers(tried.headers), body=tried.body)
    if looks_like_sitemap(tried.body):
        reader = SitemapReader(content_type(result.headers).charset)
        for piece in islice(pieces(tried.body), 1 << 20):
            reader.feed(piece)
    simhash(shingles(Content.of(result, tried.settings).text()))


def main() -> int:
    """Read what stands on the standard input, and come through or not."""
    tried = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Tried)
    _limit(tried)
    try:
        _read(tried)
    except MemoryError:
        return OUT_OF_MEMORY
    except Exception:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
