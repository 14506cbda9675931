"""A small HTTP/1.1 server that can lie: it sends what an `Answer` says, framing and all, on raw streams.

It keeps connections alive, notes each request when its head is complete, and stops at once even while clients hang.
It reads heads of 64 KiB and bodies of 1 MiB at most, and knows no host but those of its map.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from itertools import count
from typing import Protocol

import msgspec

from crawlspace.clock import Clock
from crawlspace.testing.toyweb.answer import Answer, Ask, Framing, plain
from crawlspace.testing.toyweb.log import Request, RequestLog

MAX_HEAD = 64 * 1024
MAX_BODY = 1024 * 1024
METHODS = ("GET", "HEAD", "POST")


class Web(Protocol):
    """What the server needs of a map."""

    def reply(self, ask: Ask) -> Answer: ...

    def page_at(self, url: str) -> str: ...

    def knows(self, host: str) -> bool: ...


@dataclass(slots=True)
class _Connection:
    """One client's stream."""

    number: int
    scheme: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class _Head(msgspec.Struct, frozen=True):
    """A request head that was read."""

    method: str
    target: str
    version: str
    fields: dict[str, str] = {}

    @property
    def keeps_alive(self) -> bool:
        wish = self.fields.get("connection", "").lower()
        return wish != "close" and (self.version == "HTTP/1.1" or wish == "keep-alive")


class ToyServer:
    """Serves a map on two ports of 127.0.0.1. Lives in one event loop."""

    def __init__(self, web: Web, log: RequestLog, clock: Clock, latency: float) -> None:
        self._web = web
        self._log = log
        self._clock = clock
        self._latency = latency
        self._connections = count(1)
        self._requests = count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._asked: Counter[str] = Counter()
        self._asked_of_host: Counter[str] = Counter()

    async def listen(self, context: ssl.SSLContext | None = None) -> int:
        """Open a port and give its number; https with a `context`."""
        scheme = "http" if context is None else "https"

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(_Connection(next(self._connections), scheme, reader, writer))

        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context, limit=MAX_HEAD)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening and cut every connection."""
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()
        # Transports that were aborted are closed by callbacks of the next turns of the loop.
        for _ in range(3):
            await asyncio.sleep(0)

    def forget(self) -> None:
        """Count repeated requests from zero again."""
        self._asked.clear()
        self._asked_of_host.clear()

    # -- one connection -----------------------------------------------------------------------------------------

    async def _serve(self, connection: _Connection) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            while await self._serve_one(connection):
                pass
            connection.writer.close()
            await connection.writer.wait_closed()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ssl.SSLError):
            connection.writer.transport.abort()
        except asyncio.CancelledError:
            # Only `close` cancels: swallowed, since the stream's own callback would report it as an error.
            connection.writer.transport.abort()

    async def _serve_one(self, connection: _Connection) -> bool:
        """Answer one request; whether the connection is good for another."""
        head = _read_head(await connection.reader.readuntil(b"\r\n\r\n"))
        at, arrived = self._clock.now(), self._clock.monotonic()
        if head is None:
            await self._send_plainly(connection, plain(400, "This is no HTTP request."))
            return False
        length = head.fields.get("content-length", "0")
        if not length.isdigit() or int(length) > MAX_BODY or "transfer-encoding" in head.fields:
            await self._send_plainly(connection, plain(413, "Too much, or of unknown length."))
            return False
        request = Request(
            number=next(self._requests),
            scheme=connection.scheme,
            host=head.fields.get("host", "").partition(":")[0].lower(),
            target=head.target,
            method=head.method,
            user_agent=head.fields.get("user-agent", ""),
            connection=connection.number,
            at=at,
            arrived=arrived,
        )
        self._log.begin(request)
        body = await connection.reader.readexactly(int(length))
        answer = self._answer(request, head, body)
        return await self._send(connection, request, head, answer)

    def _answer(self, request: Request, head: _Head, body: bytes) -> Answer:
        # What the map does not have is counted together, so that no client makes the counters grow.
        page = self._web.page_at(request.url)
        host = request.host if self._web.knows(request.host) else ""
        ask = Ask(
            scheme=request.scheme,
            host=request.host,
            target=request.target,
            method=request.method,
            headers=head.fields,
            body=body,
            before=self._asked[page],
            host_before=self._asked_of_host[host],
            now=request.at,
        )
        self._asked[page] += 1
        self._asked_of_host[host] += 1
        if request.method not in METHODS:
            return plain(405, "GET, HEAD and POST are known here.")
        return self._web.reply(ask)

    # -- sending ------------------------------------------------------------------------------------------------

    async def _send(self, connection: _Connection, request: Request, head: _Head, answer: Answer) -> bool:
        """Send the answer and put the end of the request on record, however it ends."""
        last = _Moment(self._clock)
        whole = False
        try:
            if answer.framing is Framing.SILENT:
                await _wait_for_end(connection, last)
                return False
            if answer.framing is Framing.RESET:
                _reset(connection)
                return False
            await _pause(connection, self._latency + answer.pause)
            await _write(connection, answer, with_body=head.method != "HEAD", last=last)
            whole = True
            return head.keeps_alive and answer.framing in (Framing.LENGTH, Framing.CHUNKED)
        finally:
            status = answer.status if last.sent else 0
            ended = msgspec.structs.replace(
                request, ended=last.at, status=status, whole=whole, wait_ms=answer.wait_ms if last.sent else 0
            )
            self._log.end(ended)

    async def _send_plainly(self, connection: _Connection, answer: Answer) -> None:
        await _write(connection, answer, with_body=True, last=_Moment(self._clock))


async def _wait_for_end(connection: _Connection, last: _Moment) -> None:
    """Say nothing until the client goes away."""
    try:
        while await connection.reader.read(MAX_HEAD):
            pass
    finally:
        last.now()


async def _pause(connection: _Connection, seconds: float) -> None:
    """Wait, then raise when the client has gone meanwhile.

    An answer to nobody must not count as running: the killed client's successor would be taken for its rival.
    """
    await asyncio.sleep(seconds)
    if seconds and connection.reader.at_eof():
        raise ConnectionResetError("the client went away")


def _reset(connection: _Connection) -> None:
    """Close so that the client sees a reset, not an end: a socket that does not linger sends RST (socket(7))."""
    connection.writer.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    connection.writer.transport.abort()


class _Moment:
    """When the last piece of an answer was handed over.

    Taken before each piece: a client that has it all cannot be seen asking again before that moment.
    """

    __slots__ = ("_clock", "at", "sent")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.at = clock.monotonic()
        self.sent = False

    def now(self) -> None:
        self.at = self._clock.monotonic()

    def send(self) -> None:
        self.now()
        self.sent = True


def _read_head(data: bytes) -> _Head | None:
    """The request line and fields; names in lower case, the last of a name counts. None for what is no request."""
    first, *rest = data[:-4].decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[1].startswith("/") or not parts[2].startswith("HTTP/1."):
        return None
    pairs = (line.partition(":") for line in rest)
    return _Head(parts[0], parts[1], parts[2], {name.strip().lower(): value.strip() for name, _, value in pairs})


async def _write(connection: _Connection, answer: Answer, *, with_body: bool, last: _Moment) -> None:
    """Send head and body; an answer of one piece goes out with its head in one write."""
    pieces = _pieces(answer) if with_body else iter(())
    waiting = _head(answer) + next(pieces, b"")
    for piece in pieces:
        await _hand_over(connection, waiting, last)
        await _pause(connection, answer.drop_pause)
        waiting = piece
    await _hand_over(connection, waiting, last)


async def _hand_over(connection: _Connection, piece: bytes, last: _Moment) -> None:
    last.send()
    connection.writer.write(piece)
    await connection.writer.drain()


def _head(answer: Answer) -> bytes:
    """Status line and fields, with the framing that the answer claims."""
    fields = list(answer.fields)
    size = len(answer.body) * answer.repeat
    if answer.framing is Framing.LENGTH:
        fields.append(("Content-Length", str(size)))
    elif answer.framing is Framing.CUT:
        fields.append(("Content-Length", str(2 * size)))
    elif answer.framing is Framing.CHUNKED:
        fields.append(("Transfer-Encoding", "chunked"))
    if answer.framing in (Framing.CUT, Framing.TO_CLOSE):
        fields.append(("Connection", "close"))
    phrase = HTTPStatus(answer.status).phrase
    lines = [f"HTTP/1.1 {answer.status} {phrase}", *(f"{name}: {value}" for name, value in fields)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _pieces(answer: Answer) -> Iterator[bytes]:
    """The body as it goes on the wire, in the pieces in which it is sent."""
    step = max(-(-len(answer.body) // answer.drops), 1)
    for _ in range(answer.repeat):
        for start in range(0, len(answer.body), step):
            piece = answer.body[start : start + step]
            yield b"%x\r\n%b\r\n" % (len(piece), piece) if answer.framing is Framing.CHUNKED else piece
    if answer.framing is Framing.CHUNKED:
        yield b"0\r\n\r\n"
