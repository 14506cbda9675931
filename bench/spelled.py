"""A small site whose pages are linked under many addresses, and a server that counts which page it was asked for.

Every page links to others in each spelling that the toy web knows: fragments, parameters of campaigns and sessions,
another order of parameters, percent codes, dots. Pages that differ have addresses that differ: lists by two
parameters, each with a meaning. Each article lies under a second address too, byte by byte the same, and some are
linked by a redirect. All spellings together are finite, since what a page links to follows from its number.
"""

from __future__ import annotations

import asyncio
import random
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast
from urllib.parse import parse_qsl, unquote, urlencode, urljoin, urlsplit

import httptools

from crawlspace.testing.toyweb.spelling import Fold, folds_of, spell

ARTICLES = 60
KINDS = ("new", "old")
SHEETS = 10
"""Pages of each kind of list."""
LINKS = 6
"""Of a page, in each spelling."""
MOVED = 10
MEANT = frozenset({"kind", "sheet"})
"""Parameters that decide what is answered."""

_SESSION = re.compile(r";jsessionid=[0-9A-F]+")
_HEAD = b"HTTP/1.1 %b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n%b\r\n"


class Web:
    """The pages, and how often each was asked for."""

    def __init__(self, seed: int = 1) -> None:
        self.pages = ["/", *_articles(), *_lists()]
        """The one address of each page there is, copies and redirects left out."""
        self.copies = [f"/print{page}" for page in _articles()]
        self.asked: Counter[str] = Counter()
        """Requests answered with a page or a copy, by its one address."""
        self._known = frozenset(self.pages) | frozenset(self.copies)
        self._seed = seed
        self._bodies: dict[str, bytes] = {}

    def answer(self, target: str, origin: str) -> bytes:
        """The answer to a request target, in whatever spelling; `origin` is ours, with a slash at its end."""
        page = one_address(target)
        if page.startswith("/moved"):
            place = f"Location: {page.removeprefix('/moved')}\r\n"
            return _HEAD % (b"302 Found", 0, place.encode())
        if page not in self._known:
            return _HEAD % (b"404 Not Found", 0, b"")
        self.asked[page] += 1
        body = self.body(page, origin)
        return _HEAD % (b"200 OK", len(body), b"") + body

    def body(self, page: str, origin: str) -> bytes:
        """What is on a page; a copy has what its article has."""
        article = page.removeprefix("/print")
        if article not in self._bodies:
            self._bodies[article] = self._write(article, origin)
        return self._bodies[article]

    def _write(self, page: str, origin: str) -> bytes:
        chance = random.Random(f"{self._seed} {page}")
        links = [f"/moved{page}" for page in _articles()[:MOVED]] if page == "/" else []
        links += [f"/print{page}"] if page.startswith("/~") else []
        for fold in Fold:
            for other in chance.sample(self.pages, LINKS):
                whole = origin + other[1:]
                # The server's port is none that a spelling could leave out.
                if fold is not Fold.PORT and fold in folds_of(whole):
                    links.append(spell(whole, fold, chance).text)
        anchors = "".join(f'<li><a href="{link.replace("&", "&amp;")}">see</a>' for link in links)
        text = " ".join(chance.choices(("frost", "harbour", "lantern", "meadow", "orchard", "thread"), k=300))
        return f"<!doctype html><title>{page}</title><ul>{anchors}</ul><p>{page} {text}".encode()


def one_address(target: str) -> str:
    """The one address of what a request target means."""
    parts = urlsplit(urljoin("http://site.invalid", _SESSION.sub("", target)))
    query = urlencode(sorted(pair for pair in parse_qsl(parts.query) if pair[0] in MEANT))
    return unquote(parts.path) + (f"?{query}" if query else "")


@contextmanager
def spelled(web: Web) -> Iterator[str]:
    """Serve `web` from a thread on a free port of 127.0.0.1; its root."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    connections: set[asyncio.Transport] = set()

    async def begin() -> tuple[asyncio.Server, str]:
        server = await loop.create_server(lambda: _Connection(web, connections), "127.0.0.1", 0, backlog=1024)
        return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"

    async def end(server: asyncio.Server) -> None:
        server.close()
        for connection in connections:
            connection.abort()
        # The loop closes their sockets when it comes round again.
        await asyncio.sleep(0)

    server, root = asyncio.run_coroutine_threadsafe(begin(), loop).result()
    try:
        yield root
    finally:
        asyncio.run_coroutine_threadsafe(end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _articles() -> list[str]:
    return [f"/~article{number}.html" for number in range(ARTICLES)]


def _lists() -> list[str]:
    return [f"/list?kind={kind}&sheet={number}" for kind in KINDS for number in range(SHEETS)]


class _Connection(asyncio.Protocol):
    def __init__(self, web: Web, connections: set[asyncio.Transport]) -> None:
        self._web = web
        self._connections = connections
        self._target = b""
        self._parser = httptools.HttpRequestParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._connections.add(self._transport)
        self._origin = "http://{}:{}/".format(*transport.get_extra_info("sockname"))

    def connection_lost(self, _problem: Exception | None) -> None:
        self._connections.discard(self._transport)

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
        self._transport.write(self._web.answer(self._target.decode("latin-1"), self._origin))
