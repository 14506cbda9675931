"""HTTP/2 with servers of our own: answers, refusals, and frames that are meant to hurt."""

from __future__ import annotations

import asyncio
import gzip
import random
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trustme
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, RequestReceived, StreamEnded
from hyperframe import frame as frames

from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchError, FetchRequest, Truncated
from crawlspace.fetch import FetchSettings, tls
from crawlspace.fetch.http2 import MAX_FRAMES, WINDOW, Talk
from crawlspace.fetch.request import Origin
from crawlspace.fetch.response import ResponseReader

LIMITS = FetchSettings(http2=True)
OK = [(":status", "200"), ("content-type", "text/html"), ("x-a", "one"), ("x-a", "two")]
Answer = Callable[["Side", int], None]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


class Side(asyncio.Protocol):
    """The server's side of a connection; `answer` is called with it when a request is complete."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.http = H2Connection(H2Configuration(client_side=False, header_encoding="latin-1"))
        self.bodies: dict[int, bytes] = {}
        self.plain = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.server.sides.append(self)
        self.plain = transport.get_extra_info("ssl_object").selected_alpn_protocol() != "h2"
        if not self.plain:
            self.http.initiate_connection()
            self.flush()

    def data_received(self, data: bytes) -> None:
        if self.plain:
            self.server.plain_requests.append(data)
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain")
            return
        for event in self.http.receive_data(data):
            if isinstance(event, RequestReceived):
                self.server.requests.append(dict(event.headers))
                self.bodies[event.stream_id] = b""
            elif isinstance(event, DataReceived):
                self.bodies[event.stream_id] += event.data
                self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded):
                self.server.answer(self, event.stream_id)
        self.flush()

    def flush(self) -> None:
        self.transport.write(self.http.data_to_send())

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.left += 1
        self.server.gone.set()

    def say(self, *some: frames.Frame) -> None:
        """Send frames as they are, whatever they do to the other side."""
        self.flush()
        self.transport.write(b"".join(each.serialize() for each in some))


class Server:
    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.sides: list[Side] = []
        self.requests: list[dict[str, str]] = []
        self.plain_requests: list[bytes] = []
        self.left = 0
        self.gone = asyncio.Event()

    async def deserted(self) -> None:
        while self.left < len(self.sides):
            self.gone.clear()
            await self.gone.wait()


def simple(side: Side, stream: int) -> None:
    side.http.send_headers(stream, OK)
    side.http.send_data(stream, b"hello", end_stream=True)


Serving = Callable[..., Any]


@pytest.fixture
def served(authority: trustme.CA, ca_file: str, fetching: Any) -> Serving:
    """`async with served(answer, **limits) as (server, fetcher, url)`."""

    @asynccontextmanager
    async def serve(
        answer: Answer = simple, alpn: tuple[str, ...] = ("h2", "http/1.1"), **limits: Any
    ) -> AsyncIterator[Any]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        context.set_alpn_protocols(list(alpn))
        server = Server(answer)
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(lambda: Side(server), "127.0.0.1", 0, ssl=context)
        port = listener.sockets[0].getsockname()[1]
        async with fetching(**{"http2": True, "ca_file": ca_file, **limits}) as fetcher:
            yield server, fetcher, f"https://127.0.0.1:{port}"
        listener.close()
        await server.deserted()
        await listener.wait_closed()

    return serve


def test_an_exchange_is_put_into_the_words_of_http_1_and_its_connection_is_kept(run: Any, served: Serving) -> None:
    coded = gzip.compress(b"hello" * 1000)

    def answer(side: Side, stream: int) -> None:
        side.http.send_headers(stream, [(":status", "103"), ("link", "</x>")])
        side.http.send_headers(stream, [*OK, ("content-encoding", "gzip")])
        for at in range(0, len(coded), 20):
            side.http.send_data(stream, coded[at : at + 20])
        side.http.send_headers(stream, [("x-trailer", "1")], end_stream=True)

    async def test() -> None:
        async with served(answer) as (server, fetcher, url):
            for path in ("/p?q=1", "/2"):
                result = await fetcher.fetch(FetchRequest(url + path, headers=(("X-B", "c"),)))
                assert (result.error, result.status, result.protocol) == (None, 200, "h2")
                assert result.response_head == (
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n"
                    b"x-a: one\r\nx-a: two\r\ncontent-encoding: gzip\r\n\r\n"
                )
                assert (result.payload, result.body) == (coded, b"hello" * 1000)
                assert result.request_head.startswith(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1" % path.encode())
            assert len(server.sides) == 1
            first = server.requests[0]
            assert (first[":method"], first[":scheme"], first[":path"]) == ("GET", "https", "/p?q=1")
            assert first[":authority"] == url.removeprefix("https://")
            assert (first["x-b"], first["user-agent"]) == ("c", "crawlspace-test/1")
            assert "host" not in first

    run(test())


def test_a_body_beyond_the_servers_window_is_sent_as_it_opens(run: Any, served: Serving) -> None:
    body = bytes(range(256)) * 1000

    def answer(side: Side, stream: int) -> None:
        assert side.bodies[stream] == body
        simple(side, stream)

    async def test() -> None:
        async with served(answer) as (server, fetcher, url):
            result = await fetcher.fetch(FetchRequest(url + "/", method="POST", body=body))
            assert (result.error, result.body) == (None, b"hello")
            assert server.requests[0]["content-length"] == str(len(body))

    run(test())


@pytest.mark.parametrize("offered", [("http/1.1",), ("h2", "http/1.1")])
def test_http_1_is_spoken_where_the_server_or_we_want_it(offered: tuple[str, ...], run: Any, served: Serving) -> None:
    async def test() -> None:
        async with served(alpn=offered, http2=offered == ("http/1.1",)) as (_, fetcher, url):
            result = await fetcher.fetch(FetchRequest(url + "/"))
            assert (result.error, result.body, result.protocol) == (None, b"plain", "")

    run(test())


def test_a_server_that_wants_http_1_after_all_gets_it_from_then_on(run: Any, served: Serving) -> None:
    def answer(side: Side, stream: int) -> None:
        side.http.reset_stream(stream, ErrorCodes.HTTP_1_1_REQUIRED)

    async def test() -> None:
        async with served(answer) as (server, fetcher, url):
            for _ in range(2):
                result = await fetcher.fetch(FetchRequest(url + "/"))
                assert (result.error, result.body, result.protocol) == (None, b"plain", "")
            assert (len(server.sides), len(server.requests)) == (2, 1)

    run(test())


def test_a_connection_that_goes_away_is_replaced(run: Any, served: Serving) -> None:
    """Idle, and with a request on it that the server says it has not seen; on a fresh connection that is final."""

    def answer(side: Side, stream: int) -> None:
        number = len(side.server.requests)
        if number in (3, 5, 6):
            side.http.close_connection(last_stream_id=stream - 2 if stream > 1 else 0)
            return
        simple(side, stream)
        if number == 1:
            side.http.close_connection()

    async def test() -> None:
        async with served(answer) as (server, fetcher, url):
            for _ in range(3):
                assert (await fetcher.fetch(FetchRequest(url + "/"))).body == b"hello"
            assert len(server.sides) == 3
            failed = await fetcher.fetch(FetchRequest(url + "/"))
            assert (failed.error, failed.status) == (FetchError.RESET, 0)
            assert "NO_ERROR" in failed.detail

    run(test())


def test_a_capped_body_is_no_error(run: Any, served: Serving) -> None:
    def answer(side: Side, stream: int) -> None:
        side.http.send_headers(stream, OK)
        side.http.send_data(stream, b"x" * 16_000)

    async def test() -> None:
        async with served(answer, max_body=1000) as (server, fetcher, url):
            result = await fetcher.fetch(FetchRequest(url + "/"))
            assert (result.error, result.truncated, result.body) == (None, Truncated.LENGTH, b"x" * 1000)
            await server.deserted()

    run(test())


def head_then(*some: frames.Frame) -> Answer:
    def answer(side: Side, stream: int) -> None:
        side.http.send_headers(stream, OK)
        side.say(*some)

    return answer


def ends(side: Side, stream: int) -> None:
    side.http.send_headers(stream, OK)
    side.http.send_data(stream, b"abc")
    side.flush()
    side.transport.close()


def resets(side: Side, stream: int) -> None:
    side.http.send_headers(stream, OK)
    side.http.send_data(stream, b"abc")
    side.http.reset_stream(stream, ErrorCodes.INTERNAL_ERROR)


def bomb(side: Side, stream: int) -> None:
    """Fields that HPACK packs into a byte each (CVE-2016-6581)."""
    encoder = side.http.encoder
    first = encoder.encode([(":status", "200"), ("x-bomb", "b" * 4000)])
    side.say(
        frames.HeadersFrame(stream, first + encoder.encode([("x-bomb", "b" * 4000)]) * 5000, flags=["END_HEADERS"])
    )


def continued(side: Side, stream: int) -> None:
    """A head that does not end (CVE-2024-27316 and kin)."""
    some = side.http.encoder.encode([(":status", "200")])
    more = [frames.ContinuationFrame(stream, side.http.encoder.encode([("x", "y" * 50)])) for _ in range(2000)]
    side.say(frames.HeadersFrame(stream, some), *more)


def pushes(side: Side, stream: int) -> None:
    block = side.http.encoder.encode([(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/")])
    side.say(frames.PushPromiseFrame(stream, 2, block, flags=["END_HEADERS"]))


def lies(*fields: tuple[str, str], body: bytes = b"") -> Answer:
    def answer(side: Side, stream: int) -> None:
        block = side.http.encoder.encode(fields)
        some: list[frames.Frame] = [frames.HeadersFrame(stream, block, flags=["END_HEADERS"])]
        side.say(*some, frames.DataFrame(stream, body, flags=["END_STREAM"]))

    return answer


@pytest.mark.parametrize(
    ("answer", "error", "truncated", "words"),
    [
        (ends, FetchError.RESET, Truncated.DISCONNECT, "before the body"),
        (resets, FetchError.RESET, Truncated.DISCONNECT, "INTERNAL_ERROR"),
        (head_then(), FetchError.IDLE_TIMEOUT, Truncated.TIME, "silent"),
        (head_then(*[frames.PingFrame(0, b"12345678")] * 3000), FetchError.PROTOCOL, Truncated.DISCONNECT, "frames"),
        (head_then(*[frames.SettingsFrame(0)] * 3000), FetchError.PROTOCOL, Truncated.DISCONNECT, "frames"),
        (head_then(*[frames.DataFrame(1, b"")] * 3000), FetchError.PROTOCOL, Truncated.DISCONNECT, "frames"),
        (head_then(frames.WindowUpdateFrame(0, 2**31 - 1)), FetchError.PROTOCOL, Truncated.DISCONNECT, "HTTP/2"),
        (head_then(frames.DataFrame(1, b"x" * 16_385)), FetchError.PROTOCOL, Truncated.DISCONNECT, "HTTP/2"),
        (head_then(frames.DataFrame(3, b"x")), FetchError.PROTOCOL, Truncated.DISCONNECT, "HTTP/2"),
        (head_then(*[frames.RstStreamFrame(1, 8)] * 3000), FetchError.RESET, Truncated.DISCONNECT, "CANCEL"),
        (lambda side, _: side.transport.write(b"HTTP/1.1 400 Bad\r\n\r\n"), FetchError.PROTOCOL, None, "HTTP/2"),
        (bomb, FetchError.PROTOCOL, None, "HTTP/2"),
        (continued, FetchError.PROTOCOL, None, "HTTP/2"),
        (pushes, FetchError.PROTOCOL, None, "HTTP/2"),
        (lies((":status", "200"), ("a", "b\r\nx-evil: 1")), FetchError.PROTOCOL, None, "HTTP/2"),
        (lies((":status", "200"), ("a b", "c")), FetchError.PROTOCOL, None, "HTTP/2"),
        (lies((":status", "2x0")), FetchError.PROTOCOL, None, "HTTP/2"),
        (lies(("x-a", "no status")), FetchError.PROTOCOL, None, "HTTP/2"),
        (lies((":status", "200"), ("transfer-encoding", "chunked")), FetchError.PROTOCOL, None, "HTTP/2"),
        (lies((":status", "101")), FetchError.PROTOCOL, None, "Upgrade"),
        (lies((":status", "200"), ("a", "x" * 9000)), FetchError.HEAD_TOO_LARGE, None, "8192"),
        (
            lies((":status", "200"), ("content-length", "2"), body=b"abcd"),
            FetchError.PROTOCOL,
            Truncated.DISCONNECT,
            "HTTP/2",
        ),
    ],
)  # fmt: skip
def test_what_hurts_ends_as_a_value_and_with_its_connection(
    answer: Answer, error: FetchError, truncated: Truncated | None, words: str, served: Serving
) -> None:
    async def test() -> None:
        patience = {"idle_timeout": 0.1} if error is FetchError.IDLE_TIMEOUT else {}
        async with served(answer, **patience) as (server, fetcher, url):
            result = await fetcher.fetch(FetchRequest(url + "/"))
            assert (result.error, result.truncated) == (error, truncated), result.detail
            assert words in result.detail
            assert bool(result.response_head) is (truncated is not None)
            await server.deserted()

    asyncio.run(test())


def test_a_server_that_keeps_talking_to_an_idle_connection_loses_it(served: Serving) -> None:
    async def test() -> None:
        async with served() as (server, fetcher, url):
            assert (await fetcher.fetch(FetchRequest(url + "/"))).body == b"hello"
            side = server.sides[0]
            side.say(frames.PingFrame(0, b"12345678"))
            assert (await fetcher.fetch(FetchRequest(url + "/"))).body == b"hello"
            assert len(server.sides) == 1
            side.say(*[frames.PingFrame(0, b"12345678")] * 2 * MAX_FRAMES)
            await server.deserted()

    asyncio.run(test())


# -- without a socket -------------------------------------------------------------------------------------------


def spoken(chance: random.Random) -> bytes:
    """All that a server says to one request, some of it bent."""
    server = H2Connection(H2Configuration(client_side=False))
    talk = Talk(LIMITS)
    talk.ask(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", ResponseReader(LIMITS))
    server.initiate_connection()
    server.receive_data(talk.to_send())
    server.send_headers(1, [*OK, ("content-length", "300")] if chance.random() < 0.5 else OK)
    for _ in range(3):
        server.send_data(1, chance.randbytes(100))
    if chance.random() < 0.5:
        server.ping(b"12345678")
    server.end_stream(1)
    raw = bytearray(server.data_to_send())
    for _ in range(chance.choice([0, 1, 1, 3])):
        at = chance.randrange(len(raw))
        raw[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
    return bytes(raw)


def hear(raw: bytes, sizes: list[int]) -> tuple[object, ...]:
    talk, reader = Talk(LIMITS), ResponseReader(LIMITS)
    talk.ask(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", reader)
    at = 0
    for size in sizes:
        talk.feed(raw[at : at + size])
        at += size
        if reader.done:
            break
    reader.lost(clean=False)
    talk.end()
    talk.to_send()
    return (reader.status, reader.head, reader.payload, reader.error, reader.truncated, reader.detail)


@pytest.mark.parametrize("seed", range(60))
def test_bent_frames_never_raise_and_any_division_reads_the_same(seed: int) -> None:
    chance = random.Random(seed)
    raw = spoken(chance)
    whole = hear(raw, [len(raw)])
    assert hear(raw, [1] * len(raw)) == whole
    assert hear(raw, [chance.randint(1, 40) for _ in raw]) == whole


def test_noise_never_raises() -> None:
    chance = random.Random(7)
    for _ in range(300):
        noise = b"".join(
            len(body).to_bytes(3, "big")
            + bytes([chance.randrange(12), chance.randrange(64), 0, 0, 0, chance.randrange(4)])
            + body
            for body in (chance.randbytes(chance.randrange(30)) for _ in range(5))
        )
        assert hear(noise, [len(noise)])[3] is not None


def test_windows_and_pushes_are_told_at_the_start() -> None:
    server = H2Connection(H2Configuration(client_side=False))
    server.initiate_connection()
    server.receive_data(Talk(LIMITS).to_send())
    assert server.remote_settings.enable_push == 0
    assert server.remote_settings.initial_window_size == WINDOW
    assert server.remote_settings.max_header_list_size == LIMITS.max_head
    assert server.outbound_flow_control_window == WINDOW


def test_without_the_package_the_setting_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="http2") as caught:
        tls.Contexts(LIMITS)
    assert "crawlspace[http2]" in str(caught.value.hint)


def test_origins_that_decline_are_remembered_within_bounds() -> None:
    contexts = tls.Contexts(LIMITS)
    first = Origin("https", "a.test", 443)
    contexts.decline_http2(first)
    assert contexts.of(first) is not contexts.of(Origin("https", "b.test", 443))
    for number in range(5000):
        contexts.decline_http2(Origin("https", f"{number}.test", 443))
    assert contexts.of(first) is contexts.of(Origin("https", "b.test", 443))
