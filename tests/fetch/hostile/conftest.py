"""A server whose every answer is meant to hurt, made up by chance from a seed and the number in the path."""

from __future__ import annotations

import asyncio
import gzip
import random
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
import zstandard
from _brotli import Compressor

OK = b"HTTP/1.1 200 OK\r\n"
HTML = b"Content-Type: text/html\r\n"
WORDS = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b":",
    b";",
    b",",
    b" ",
    b"\t",
    b"0",
    b"-1",
    b"ff",
    b"\xff",
    b"\xc0\x80",
    b"<",
    b'"',
]
STATUS = [b"200", b"204", b"206", b"301", b"302", b"304", b"404", b"429", b"500", b"503"]
SMALL = b"<html><title>t</title><a href=/x>x</a></html>"


@dataclass
class Answer:
    """What is sent, piece by piece, and how it ends."""

    kind: str
    pieces: list[bytes]
    end: str = "close"
    """`close`, `reset`, `hang` or `keep`."""


Maker = Callable[[random.Random], Answer]


def _head(chance: random.Random, *lines: bytes) -> bytes:
    return b"HTTP/1.1 " + chance.choice(STATUS) + b" X\r\n" + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


def _sized(body: bytes, *lines: bytes) -> list[bytes]:
    head = OK + b"".join(line + b"\r\n" for line in lines)
    return [head + b"Content-Length: %d\r\n\r\n" % len(body) + body]


def noise(chance: random.Random) -> Answer:
    return Answer("noise", [chance.randbytes(chance.randrange(1, 5000))], chance.choice(["close", "reset", "hang"]))


def mutated(chance: random.Random) -> Answer:
    raw = bytearray(OK + HTML + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    for _ in range(chance.randrange(1, 12)):
        at = chance.randrange(len(raw))
        raw[at : at + chance.randrange(3)] = chance.choice(WORDS)
    return Answer("mutated", [bytes(raw)], chance.choice(["close", "hang", "keep"]))


def cut(chance: random.Random) -> Answer:
    raw = _sized(SMALL * 50, b"Content-Type: text/html")[0]
    return Answer("cut", [raw[: chance.randrange(len(raw))]], chance.choice(["close", "reset", "hang"]))


def drip(chance: random.Random) -> Answer:
    raw = _sized(SMALL, b"X-A: b")[0]
    return Answer("drip", [raw[at : at + 1] for at in range(len(raw))], "keep")


def header_flood(chance: random.Random) -> Answer:
    kind = chance.randrange(4)
    lines = {
        0: [b"X-%d: y\r\n" % number for number in range(chance.choice([200, 201, 5000]))],
        1: [b"X: " + b"y" * chance.choice([8000, 8192, 70_000]) + b"\r\n"],
        2: [b"X: y\r\n" + b" folded\r\n" * 5000],
        3: [b"Set-Cookie: a=" + b"b" * 4000 + b"; Domain=" + b"c." * 500 + b"\r\n"] * 30,
    }[kind]
    return Answer("header_flood", [OK, *lines, b"\r\n", SMALL])


def interim_flood(chance: random.Random) -> Answer:
    count = chance.choice([1, 20, 21, 5000])
    return Answer("interim_flood", [b"HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n"] * count + _sized(SMALL))


def lengths(chance: random.Random) -> Answer:
    values = [
        b"-1",
        b"+5",
        b"5,5",
        b"5,6",
        b"0x5",
        b"99999999999999999999999",
        b" 5",
        b"5 5",
        b"\xb2",
        b"",
        b"0",
        b"1e9",
    ]
    lines = [b"Content-Length: " + chance.choice(values) for _ in range(chance.randrange(1, 4))]
    return Answer("lengths", [_head(chance, *lines) + SMALL], chance.choice(["close", "hang", "keep"]))


def chunks(chance: random.Random) -> Answer:
    head = OK + HTML + b"Transfer-Encoding: chunked\r\n\r\n"
    pieces = {
        0: [b"ffffffffffffffffff\r\n" + SMALL],
        1: [b"-5\r\nhello\r\n0\r\n\r\n"],
        2: [b"1\r\na\r\n" * 20_000 + b"0\r\n\r\n"],
        3: [b"5;" + b"e=x;" * 20_000 + b"\r\nhello\r\n0\r\n\r\n"],
        4: [b"0\r\n" + b"T: x\r\n" * 20_000 + b"\r\n"],
        5: [b"5\r\nhello"],
        6: [b"5\nhello\n0\n\n"],
        7: [b"5\r\nhelloXX0\r\n\r\n"],
        8: [b"10000\r\n" + b"x" * 65536 + b"\r\n"] * 300,
        9: [b"0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"],
    }[chance.randrange(10)]
    return Answer("chunks", [head, *pieces], chance.choice(["close", "hang", "keep"]))


def _brotli(data: bytes) -> bytes:
    engine = Compressor(quality=1)
    return bytes(engine.process(data) + engine.finish())


def _deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


_CODERS: dict[bytes, Callable[[bytes], bytes]] = {
    b"gzip": lambda data: gzip.compress(data, 1),
    b"deflate": _deflate,
    b"br": _brotli,
    b"zstd": zstandard.ZstdCompressor().compress,
}
_BOMBS = {name: coder(bytes(12 << 20)) for name, coder in _CODERS.items()}


def bomb(chance: random.Random) -> Answer:
    coding = chance.choice([*_BOMBS])
    body, label = _BOMBS[coding], coding
    if chance.random() < 0.3:
        body, label = _CODERS[b"gzip"](body), coding + b", gzip"
    if chance.random() < 0.2:
        return Answer("bomb", [b"HTTP/1.1 301 X\r\nLocation: /\r\nContent-Encoding: " + label + b"\r\n\r\n" + body])
    return Answer("bomb", _sized(body, b"Content-Encoding: " + label, b"Content-Type: text/html"), "keep")


def coding(chance: random.Random) -> Answer:
    name = chance.choice([*_CODERS])
    coded = bytearray(_CODERS[name](SMALL * chance.randrange(1, 500)))
    for _ in range(chance.randrange(8)):
        coded[chance.randrange(len(coded))] = chance.randrange(256)
    if chance.random() < 0.3:
        del coded[chance.randrange(len(coded)) :]
    label = chance.choice(
        [name, b"gzip", b"deflate, gzip", b"gzip" + b", gzip" * 500, b"x\0y", b"compress", b"identity"]
    )
    return Answer("coding", _sized(bytes(coded), b"Content-Encoding: " + label), "keep")


def members(chance: random.Random) -> Answer:
    one = chance.choice([gzip.compress(b""), gzip.compress(b"x"), b"\x53\x2a\x4d\x18\0\0\0\0", _CODERS[b"zstd"](b"")])
    name = b"gzip" if one[:1] == b"\x1f" else b"zstd"
    return Answer("members", _sized(one * 20_000, b"Content-Encoding: " + name), "keep")


_LOCATIONS = [
    b"file:///etc/passwd",
    b"gopher://127.0.0.1:6379/_FLUSHALL",
    b"javascript:alert(1)",
    b"http://169.254.169.254/latest/meta-data/",
    b"http://user:secret@127.0.0.1:1/",
    b"//[::1]:1/",
    b"http://127.0.0.1:1\\@1.1.1.1/",
    b"/\x1b]0;owned\x07",
    b"/" + b"a" * 8000,
    b"http://" + b"a." * 3000 + b"test/",
    b"/../" * 1000,
    b"?" + b"a=b&" * 1500,
    b"http://2130706433:1/",
    b"",
    b"\xff\xfe",
    b"http://[::ffff:169.254.169.254]/",
]


def redirect(chance: random.Random) -> Answer:
    lines = [b"Location: " + chance.choice(_LOCATIONS) for _ in range(chance.choice([1, 1, 2]))]
    status = chance.choice([b"300", b"301", b"302", b"303", b"304", b"307", b"308", b"399"])
    head = b"HTTP/1.1 " + status + b" \r\n" + b"".join(line + b"\r\n" for line in lines)
    return Answer("redirect", [head + b"Content-Length: 0\r\n\r\n"], "keep")


_STATUS_LINES = [
    b"HTTP/0.9 200\r\n",
    b"HTTP/2.0 200 OK\r\n",
    b"HTTP/1.1 000 X\r\n",
    b"HTTP/1.1 999 X\r\n",
    b"HTTP/1.1 2000 X\r\n",
    b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n",
    b"HTTP/1.1 200\r\n",
    b"HTTP/1.1  200 OK\r\n",
    b"HTTP/1.1 200 \x1b[2J\r\n",
    b"http/1.1 200 OK\r\n",
    b"ICY 200 OK\r\n",
    b"\r\n" * 1000 + b"HTTP/1.1 200 OK\r\n",
    b"\r\n" * 40_000,
    b"<html>no head at all</html>",
]


def status_line(chance: random.Random) -> Answer:
    return Answer("status_line", [chance.choice(_STATUS_LINES) + b"\r\n" + SMALL])


def pipelined(chance: random.Random) -> Answer:
    extra = _sized(b"evil")[0] * chance.choice([1, 1000])
    return Answer("pipelined", [_sized(SMALL, b"Content-Type: text/html")[0] + extra], "keep")


def headers_of_text(chance: random.Random) -> Answer:
    values = [
        b"Content-Type: " + b"text/html; charset=" + b"x" * 7000,
        b"Content-Type: text/html;" * 300,
        b"Retry-After: " + b"9" * 5000,
        b"Last-Modified: " + b"Mon, " * 1000,
        b"ETag: \x1b]0;x\x07",
        b"Link: " + b"<a>; rel=" * 800,
        b"Refresh: 0;url=" + b"/" * 8000,
        b"X-Robots-Tag: " + b"a," * 4000,
    ]
    return Answer("headers_of_text", [OK + b"\r\n".join(chance.sample(values, 3)) + b"\r\n\r\n" + SMALL])


def page(chance: random.Random) -> Answer:
    bodies = [
        lambda: b"<div>" * 60_000,
        lambda: b"<b><i><a href=x>" * 8000,
        lambda: b"<a " + b"x=y " * 60_000 + b">",
        lambda: b"<!--" + b"-" * 200_000,
        lambda: b"<a href='" + b"x" * 200_000 + b"'>",
        lambda: b"".join(b"<a href=/%d>x</a>" % number for number in range(12_000)),
        lambda: b"<base href='javascript:x'><a href=y>" * 500,
        lambda: b"<meta http-equiv=refresh content='0;url=" + b";url=" * 20_000 + b"'>",
        lambda: b"<meta charset=utf-7>+ADw-script+AD4-" * 500,
        lambda: b"\xff\xfe" + "<a href=x>".encode("utf-16-le") * 5000,
        lambda: b"&amp;&#x110000;&#xd800;&" * 10_000,
        lambda: b"<table><tr><td>" * 20_000,
        lambda: b"<svg><math><annotation-xml>" * 5000,
        lambda: b"<img srcset='" + b"a 1x," * 30_000 + b"'>",
        lambda: chance.randbytes(100_000),
        lambda: b"\0" * 200_000,
        lambda: b"<!DOCTYPE x [" + b"<!ENTITY a 'bbbb'>" * 5000 + b"]><urlset>&a;</urlset>",
    ]
    kind = chance.choice(
        [b"text/html", b"text/html; charset=utf-16", b"application/xml", b"", b"text/html; charset=x-nope"]
    )
    return Answer("page", _sized(chance.choice(bodies)(), b"Content-Type: " + kind), "keep")


MAKERS: list[Maker] = [
    noise,
    mutated,
    cut,
    drip,
    header_flood,
    interim_flood,
    lengths,
    chunks,
    bomb,
    coding,
    members,
    redirect,
    status_line,
    pipelined,
    headers_of_text,
    page,
]


def make(seed: int, number: int) -> Answer:
    """The answer of that number; the same for the same seed."""
    return MAKERS[number % len(MAKERS)](random.Random(f"{seed} {number}"))


FINE = b"<html><title>fine</title></html>"


@dataclass
class HostileServer:
    """Serves `/NUMBER` with the answer of that number, `/fine` and `/` honestly, robots.txt with 404."""

    seed: int
    front: bytes = FINE
    port: int = 0
    asked: list[bytes] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def start(self) -> threading.Thread:
        ready = threading.Event()
        thread = threading.Thread(target=self._serve, args=(ready,), daemon=True)
        thread.start()
        ready.wait()
        return thread

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _serve(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        listener = self._loop.run_until_complete(asyncio.start_server(self._handle, "127.0.0.1", 0))
        self.port = listener.sockets[0].getsockname()[1]
        ready.set()
        self._loop.run_forever()
        listener.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                self.asked.append(request)
                if not await self._answer(request.split(b" ")[1].decode(), reader, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        answer = self._of(path)
        for piece in answer.pieces:
            writer.write(piece)
            await writer.drain()
        if answer.end == "reset":
            writer.transport.abort()
        elif answer.end == "hang":
            await reader.read()
        return answer.end == "keep"

    def _of(self, path: str) -> Answer:
        if path == "/robots.txt":
            return Answer("robots", [b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"], "keep")
        number = path.removeprefix("/").partition("?")[0]
        if number.isdigit() and len(number) < 9:
            return make(self.seed, int(number))
        return Answer("fine", _sized(self.front if path == "/" else FINE, b"Content-Type: text/html"), "keep")


@pytest.fixture
def hostile(request: pytest.FixtureRequest) -> Iterator[Callable[..., HostileServer]]:
    """`hostile(seed)` starts a server in a thread of its own."""
    started: list[tuple[HostileServer, threading.Thread]] = []

    def start(seed: int, front: bytes = FINE) -> HostileServer:
        server = HostileServer(seed, front)
        started.append((server, server.start()))
        return server

    yield start
    for server, thread in started:
        server.stop()
        thread.join(10)
        assert not thread.is_alive()
