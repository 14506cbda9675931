"""URLs as a sitemap (sitemaps.org 0.9): one file, or parts with an index when one file cannot hold them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

from crawlspace.exports.graphml import text

URLS_MAX = 50_000
BYTES_MAX = 50 * 1024 * 1024
"""Of a sitemap that is not compressed."""
URL_LIMIT = 2048
"""Characters that an address may have; it must be shorter."""

_SPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_HEAD = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{_SPACE}">\n'.encode()
_TAIL = b"</urlset>\n"


class Entry(NamedTuple):
    """A page."""

    url: str
    changed: str | None = None
    """When it changed last, as ISO 8601."""


class Part:
    """One sitemap while it is written."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._bytes = len(_HEAD) + len(_TAIL)
        self._urls = 0
        out.write(_HEAD)

    def add(self, entry: Entry) -> bool:
        """Take an entry; False when it does not fit any more."""
        changed = f"<lastmod>{text(entry.changed)}</lastmod>" if entry.changed else ""
        line = f"<url><loc>{text(entry.url)}</loc>{changed}</url>\n".encode()
        if self._urls >= URLS_MAX or self._bytes + len(line) > BYTES_MAX:
            return False
        self._urls += 1
        self._bytes += len(line)
        self._out.write(line)
        return True

    def end(self) -> None:
        """Nothing more comes."""
        self._out.write(_TAIL)


def index(addresses: Iterable[str]) -> Iterator[bytes]:
    """The index of sitemaps that will be at these addresses."""
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex xmlns="{_SPACE}">\n'.encode()
    for address in addresses:
        yield f"<sitemap><loc>{text(address)}</loc></sitemap>\n".encode()
    yield b"</sitemapindex>\n"
