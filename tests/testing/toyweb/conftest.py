"""A client that knows nothing of crawlspace: it speaks raw HTTP over a socket, so that lies stay visible."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from crawlspace.testing.toyweb import ToyWeb

PATIENCE = 10.0


@dataclass(frozen=True)
class Received:
    """What came over the wire for one request."""

    raw: bytes

    @property
    def head(self) -> str:
        return self.raw.partition(b"\r\n\r\n")[0].decode("latin-1")

    @property
    def payload(self) -> bytes:
        return self.raw.partition(b"\r\n\r\n")[2]

    @property
    def status(self) -> int:
        return int(self.head.split(" ")[1]) if self.raw else 0

    def field(self, name: str) -> str:
        lines = [line.partition(":") for line in self.head.split("\r\n")[1:]]
        return next((value.strip() for key, _, value in lines if key.lower() == name), "")


class RawClient:
    """One connection for each request, ended by the server; `lines` are more header fields."""

    def __init__(self, web: ToyWeb) -> None:
        self._table = web.resolve
        self._context = ssl.create_default_context(cafile=str(web.ca_file)) if web.recipe.tls else None

    def connect(self, url: str) -> socket.socket:
        parts = urlsplit(url)
        port = 443 if parts.scheme == "https" else 80
        address, _, number = self._table[f"{parts.hostname}:{port}"].partition(":")
        plain = socket.create_connection((address, int(number)), PATIENCE)
        if parts.scheme == "http":
            return plain
        assert self._context is not None
        return self._context.wrap_socket(plain, server_hostname=parts.hostname)

    @staticmethod
    def request(url: str, *lines: str, method: str = "GET", body: bytes = b"") -> bytes:
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        fields = [f"Host: {parts.hostname}", "User-Agent: raw/1", *lines]
        if body:
            fields.append(f"Content-Length: {len(body)}")
        return "\r\n".join([f"{method} {target} HTTP/1.1", *fields, "", ""]).encode("latin-1") + body

    def get(self, url: str, *lines: str, method: str = "GET", body: bytes = b"") -> Received:
        with self.connect(url) as connection:
            connection.sendall(self.request(url, "Connection: close", *lines, method=method, body=body))
            return Received(b"".join(iter(lambda: connection.recv(65536), b"")))


@pytest.fixture(scope="module")
def web() -> Iterator[ToyWeb]:
    """The whole web, small, with its memory; tests of one module share it and ask for different pages."""
    with ToyWeb(seed=1) as running:
        yield running


@pytest.fixture
def client(web: ToyWeb) -> RawClient:
    return RawClient(web)


@pytest.fixture
def client_of() -> Callable[[ToyWeb], RawClient]:
    return RawClient
