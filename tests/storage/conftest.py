"""A server that speaks S3 on 127.0.0.1, and a gate before it that can refuse and break off what passes."""

from __future__ import annotations

import http.client
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import pytest

BUCKET = "captures"
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "ours", "AWS_SECRET_ACCESS_KEY": "TOP-SECRET-KEY", "AWS_REGION": "us-east-1"}

_SERVER = """
import logging, sys, time
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@dataclass
class Gate:
    """What happens to requests on their way to the storage."""

    port: int = 0
    refused: int = 0
    """So many of the next writes are refused; below zero all are."""
    status: int = 503
    """What refused writes are answered with."""
    spared: int = 0
    """So many writes pass before the first is refused."""
    broken: bool = False
    """Connections end without an answer."""
    hold: threading.Event = field(default_factory=threading.Event)
    """Writes wait until it is set."""
    waiting: int = 0
    """Writes that are held just now."""
    writes: list[str] = field(default_factory=list)
    """Paths of the objects that were written."""
    lists: int = 0
    """How often the storage was asked what it has."""

    def __post_init__(self) -> None:
        self.hold.set()

    @property
    def environment(self) -> dict[str, str]:
        return {**ENVIRONMENT, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}"}

    def refuses(self, method: str) -> bool:
        if method not in ("PUT", "POST") or not self.refused:
            return False
        if self.spared:
            self.spared -= 1
            return False
        self.refused -= 1
        return True


@contextmanager
def storage() -> Iterator[int]:
    """The port of a server with an empty bucket."""
    command = [sys.executable, "-W", "ignore", "-c", _SERVER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as server:  # type: ignore[call-overload]
        port = int(server.stdout.readline())
        _ask(port, "PUT", f"/{BUCKET}", b"", {})
        yield port
        server.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            server.wait(2)
        server.kill()


class _Handler(BaseHTTPRequestHandler):
    """Passes requests on as the gate wants it."""

    protocol_version = "HTTP/1.1"
    state: Gate
    target: int

    def handle_one_request(self) -> None:
        with suppress(ConnectionError):
            super().handle_one_request()

    def pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.state.broken:
            self.close_connection = True
            return
        if self.command in ("PUT", "POST"):
            self.state.waiting += 1
            self.state.hold.wait(30)
            self.state.waiting -= 1
        if self.state.refuses(self.command):
            self.answer(self.state.status, [], b"<Error><Code>No</Code></Error>")
            return
        self.state.lists += "list-type" in self.path
        status, headers, data = _ask(self.target, self.command, self.path, body, dict(self.headers))
        if self.command == "PUT" and status == 200:
            self.state.writes.append(self.path.partition("?")[0].rpartition("/")[2])
        self.answer(status, headers, data)

    def answer(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                self.send_header(name, value)
        length = dict(headers).get("Content-Length", "0") if self.command == "HEAD" else str(len(data))
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextmanager
def gate(port: int) -> Iterator[Gate]:
    """A gate before a server."""
    state = Gate()
    handler = type("Handler", (_Handler,), {"state": state, "target": port})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.hold.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _ask(
    port: int, method: str, path: str, body: bytes, headers: dict[str, str]
) -> tuple[int, list[tuple[str, str]], bytes]:
    for attempt in range(3):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        except ConnectionError:
            if attempt == 2:
                raise
            time.sleep(0.1)
        finally:
            connection.close()
    raise AssertionError


@pytest.fixture(scope="session")
def server() -> Iterator[int]:
    """Port of the storage, with an empty bucket."""
    with storage() as port:
        yield port


@pytest.fixture
def gated(server: int) -> Iterator[Gate]:
    """The storage behind a gate of this test's own."""
    with gate(server) as state:
        yield state


@pytest.fixture
def address() -> str:
    """A prefix that no other test has."""
    return f"s3://{BUCKET}/{uuid4().hex}"
