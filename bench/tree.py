"""A site without end: each page links to so many others that nobody has seen, at addresses of 83 characters.

usage: python -m bench.tree LINKS_PER_PAGE

Prints the port it listens on, on 127.0.0.1, and serves until it is ended. What a page links to follows from its
number alone, so two programs see the same site. It is a process of its own: what serving costs is not the crawler's.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import httptools
import uvloop

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
_NOTHING = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n"
_SECTIONS = 977
_LINK = '<p><a href="/catalogue/section-{:04d}/an-item-with-a-name-{:012d}.html">item</a></p>\n'


def page(number: int, links: int) -> bytes:
    """The page of that number: its links lead to `links` numbers of its own."""
    first = number * links + 1
    body = "".join(_LINK.format(each % _SECTIONS, each) for each in range(first, first + links))
    return f"<!doctype html><title>{number}</title>\n{body}".encode()


def number_of(target: str) -> int | None:
    """The page that a request target means; None for what is no page, as robots.txt is none."""
    if target == "/":
        return 0
    digits = target.rpartition("-")[2].partition(".")[0]
    return int(digits) if digits.isdigit() and target.startswith("/catalogue/") else None


class _Connection(asyncio.Protocol):
    def __init__(self, links: int) -> None:
        self._links = links
        self._target = b""
        self._parser = httptools.HttpRequestParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not of asyncio's class.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.close()

    def on_message_begin(self) -> None:
        self._target = b""

    def on_url(self, part: bytes) -> None:
        self._target += part

    def on_message_complete(self) -> None:
        number = number_of(self._target.decode("latin-1"))
        if number is None:
            self._transport.write(_NOTHING)
            return
        body = page(number, self._links)
        self._transport.write(_HEAD % len(body) + body)


async def _serve(links: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(links), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(int(sys.argv[1])))
