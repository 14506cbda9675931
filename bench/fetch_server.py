"""The server of the fetch benchmark: whole answers made beforehand, plain and over TLS, in a process of its own.

The names of paths say what is asked for: `/13k`, `/93k` (bytes of the page), `/13k.gzip`, `/13k.chunked`; with
`.close` behind them the server ends the connection with its answer.
"""

from __future__ import annotations

import asyncio
import gzip
import multiprocessing
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any, NamedTuple

import trustme
import uvloop

SIZES = {"13k": 13_600, "93k": 93_000}
CHUNK = 8192
_HEAD = (
    b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n"
    b"Content-Type: text/html; charset=utf-8\r\nLast-Modified: Sun, 31 Dec 2023 00:00:00 GMT\r\n"
    b'Vary: Accept-Encoding\r\nCache-Control: max-age=60\r\nETag: "5f3c-1"\r\n'
)


class Served(NamedTuple):
    """Where the server listens."""

    plain: int
    secure: int
    authority: str
    """File of the certificate that proves it."""


def pages() -> dict[bytes, bytes]:
    """Answers by path."""
    found: dict[bytes, bytes] = {}
    for name, size in SIZES.items():
        text = b"".join(
            b"<p>line %d of a page, with <a href=/%d>a link</a> and some more words</p>\n" % (n, n * n)
            for n in range(size // 60)
        )[:size]
        packed = gzip.compress(text, 6)
        pieces = (text[at : at + CHUNK] for at in range(0, size, CHUNK))
        chunked = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        bodies = {
            "": b"Content-Length: %d\r\n\r\n%s" % (len(text), text),
            ".gzip": b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(packed), packed),
            ".chunked": b"Transfer-Encoding: chunked\r\n\r\n" + chunked,
        }
        for kind, rest in bodies.items():
            found[f"/{name}{kind}".encode()] = _HEAD + b"Connection: keep-alive\r\n" + rest
            found[f"/{name}{kind}.close".encode()] = _HEAD + b"Connection: close\r\n" + rest
    return found


class _Answers(asyncio.Protocol):
    ready = pages()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        path = data.split(b" ", 2)[1]
        self._transport.write(self.ready[path])
        if path.endswith(b".close"):
            self._transport.close()


def _serve(pipe: Pipe, folder: str) -> None:
    authority = trustme.CA(key_type=trustme.KeyType.RSA)
    authority.cert_pem.write_to_path(Path(folder) / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", key_type=trustme.KeyType.RSA).configure_cert(context)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        plain = await loop.create_server(_Answers, "127.0.0.1", 0, backlog=1000)
        secure = await loop.create_server(_Answers, "127.0.0.1", 0, backlog=1000, ssl=context)
        pipe.send([server.sockets[0].getsockname()[1] for server in (plain, secure)])
        await asyncio.gather(plain.serve_forever(), secure.serve_forever())

    uvloop.run(main())


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    """The server until the block ends; its authority's certificate is put into `folder`."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(there, str(folder)), daemon=True)
    process.start()
    try:
        plain, secure = here.recv()
        yield Served(plain, secure, str(folder / "ca.pem"))
    finally:
        process.kill()
        process.join()
