"""A TCP proxy in front of a PostgreSQL server that reads what clients ask, and breaks the line at a chosen statement.

It knows as much of the protocol (version 3) as that takes: messages have a letter and a length; Parse names a
statement, Bind runs it, and for each Sync the server says once that it is ready.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from enum import Enum, auto
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

STALL_SECONDS = 0.3
KEEP_ALIVE_SECONDS = 0.2
"""After so long the server finds out that a client is gone."""


class Break(Enum):
    """What happens to the line at a statement."""

    CUT = auto()
    """It is cut before the statement reaches the server."""
    LOSE = auto()
    """The statement is carried out, and its answer is lost with the line."""
    STALL = auto()
    """Nothing passes for a while."""
    HOLE = auto()
    """Nothing passes any more, and nobody says so; the server finds out by itself after a while."""


Judge = Callable[[str], Break | None]
"""What is to happen at this statement."""


def _never(_sql: str) -> Break | None:
    return None


@dataclass(slots=True, eq=False)
class _Line:
    """One client and its session at the server."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    statements: dict[bytes, str] = field(default_factory=dict)
    due: int = 1
    """Times that the server will have said that it is ready."""
    ready: int = 0
    is_deaf: bool = False
    """The client hears nothing any more; when the server is ready, the line is cut."""
    is_hole: bool = False
    """Neither hears of the other any more."""

    def cut(self) -> None:
        for writer in (self.client, self.server):
            sock: socket.socket | None = writer.get_extra_info("socket")
            if sock is not None and sock.fileno() >= 0 and sock.family != socket.AF_UNIX:
                # Reset, not closed in good order.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


class Proxy:
    """Listens on 127.0.0.1 in a thread of its own."""

    def __init__(self, server: str) -> None:
        """`server` is the address of one that listens on a local socket."""
        parts = urlsplit(server)
        directory = dict(parse_qsl(parts.query))["host"]
        self._socket = f"{directory}/.s.PGSQL.5432"
        self._database = parts.path
        self.judge: Judge = _never
        self.is_down = False
        self.passed = 0
        """Statements so far, broken ones too."""
        self.broken = 0
        self._lines: set[_Line] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        self._server: asyncio.Server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def address(self, schema: str, shards: int = 16) -> str:
        """Where the server is found through this proxy."""
        plain = "sslmode=disable&gssencmode=disable"
        return f"postgresql://postgres@127.0.0.1:{self._port}{self._database}?{plain}&schema={schema}&shards={shards}"

    def go_down(self) -> None:
        """Cut all lines, and refuse new ones until `is_down` is false again."""
        self.is_down = True
        self._run(self._cut_all())

    async def _cut_all(self) -> None:
        for line in list(self._lines):
            line.cut()

    async def _end(self) -> None:
        self._server.close()
        await self._cut_all()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_down:
            writer.transport.abort()
            return
        answers, server = await asyncio.open_unix_connection(self._socket)
        line = _Line(writer, server)
        self._lines.add(line)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._ask(reader, line))
                group.create_task(self._answer(answers, line))
        except* (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._lines.discard(line)
            line.cut()

    async def _ask(self, reader: asyncio.StreamReader, line: _Line) -> None:
        head = await reader.readexactly(4)
        line.server.write(head + await reader.readexactly(int.from_bytes(head, "big") - 4))
        while True:
            kind, whole, body = await _message(reader)
            if kind == b"P":
                name, sql, _ = body.split(b"\0", 2)
                line.statements[name] = sql.decode()
            if kind in (b"S", b"Q"):
                line.due += 1
            if kind == b"B" and not await self._passes(line, line.statements[body.split(b"\0", 2)[1]].strip()):
                raise ConnectionResetError
            line.server.write(whole)

    async def _passes(self, line: _Line, sql: str) -> bool:
        self.passed += 1
        what = self.judge(sql)
        self.broken += what is not None
        if what is Break.STALL:
            await asyncio.sleep(STALL_SECONDS)
        if what is Break.HOLE:
            line.is_hole = True
            await asyncio.sleep(KEEP_ALIVE_SECONDS)
            line.server.transport.abort()
            await asyncio.Event().wait()
        line.is_deaf = line.is_deaf or what is Break.LOSE
        return what is not Break.CUT

    async def _answer(self, reader: asyncio.StreamReader, line: _Line) -> None:
        while True:
            try:
                kind, whole, _ = await _message(reader)
            except (OSError, asyncio.IncompleteReadError):
                if line.is_hole:
                    await asyncio.Event().wait()
                raise
            line.ready += kind == b"Z"
            if not line.is_deaf:
                line.client.write(whole)
            elif line.ready == line.due:
                raise ConnectionResetError


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes, bytes]:
    """A message: its letter, all of it, and what it says."""
    head = await reader.readexactly(5)
    body = await reader.readexactly(int.from_bytes(head[1:], "big") - 4)
    return head[:1], head + body, body
