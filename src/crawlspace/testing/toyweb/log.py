"""Every request the toy web had: in memory for tests in the same process, as JSON lines for tests that kill things.

A request is on record from the moment its head is complete; its line is written to the file when it ends, flushed at
once. Monotonic times are the machine's, so records of different processes on one machine compare.
"""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import IO

import msgspec

MAX_KEPT = 1_000_000
"""Requests kept in memory; older ones are dropped first."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request and what was sent for it."""

    number: int
    """In order of arrival, from 1."""
    scheme: str
    host: str
    """Name without port: http and https of one name are one host."""
    target: str
    method: str
    user_agent: str
    connection: int
    """Requests with the same number came over one connection."""
    at: int
    """Wall time at which the head was complete, milliseconds."""
    arrived: float
    """The same in monotonic seconds."""
    ended: float | None = None
    """Monotonic seconds just before the last byte was sent, or when the client was found gone; None while it runs."""
    status: int = 0
    """As sent; 0 when nothing was."""
    whole: bool = False
    """The response was sent to its end, as far as it was meant to be."""
    wait_ms: int = 0
    """What Retry-After asked for."""

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}{self.target}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.host}"


class RequestLog:
    """Requests in order of arrival. The server writes, any thread reads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended: deque[Request] = deque(maxlen=MAX_KEPT)
        self._running: dict[int, Request] = {}
        self._file: IO[bytes] | None = None
        self._encoder = msgspec.json.Encoder()

    def write_to(self, path: Path) -> None:
        """Append a line for each request that ends from now on."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = path.open("ab")

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def begin(self, request: Request) -> None:
        with self._lock:
            self._running[request.number] = request

    def end(self, request: Request) -> None:
        """Replace the running record of this number by its last form."""
        with self._lock:
            self._running.pop(request.number, None)
            self._ended.append(request)
            if self._file is not None:
                self._file.write(self._encoder.encode(request) + b"\n")
                self._file.flush()

    def all(self) -> list[Request]:
        with self._lock:
            both = [*self._ended, *self._running.values()]
        return sorted(both, key=lambda request: request.number)

    def forget(self) -> None:
        """Drop what has ended; the file keeps it."""
        with self._lock:
            self._ended.clear()


def read_log(path: Path) -> list[Request]:
    """The requests of a log file in order of arrival; a last line that is still being written is left out."""
    decoder = msgspec.json.Decoder(Request)
    lines = path.read_bytes().split(b"\n")[:-1]
    return sorted((decoder.decode(line) for line in lines), key=lambda request: request.arrived)
