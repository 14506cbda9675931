"""One request, one answer, over real sockets on the loopback."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from crawlspace.exchange import FetchError, FetchRequest, Truncated
from crawlspace.fetch import FetchSettings, NetworkSettings
from crawlspace.fetch.connection import Connection
from crawlspace.fetch.resolve import Endpoint
from crawlspace.fetch.response import ResponseReader

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


def sending(*pieces: bytes, then: str = "wait") -> Callable[[asyncio.StreamWriter, int], Awaitable[None]]:
    """Send pieces one by one, then wait for the client to leave, or close."""

    async def send(writer: asyncio.StreamWriter, number: int) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if then == "close":
            writer.close()
        elif then == "reset":
            writer.transport.abort()

    return send


def test_an_exchange_is_kept_byte_for_byte(run: Any, serving: Any, fetching: Any) -> None:
    head = b"HTTP/1.1 200 Very OK\r\nX-A:  one \r\nx-a: two\r\nContent-Encoding: gzip\r\n" + CHUNKED
    coded = gzip.compress(b"hello")
    payload = b"%x\r\n%s\r\n0\r\nX-Trailer: 1\r\n\r\n" % (len(coded), coded)

    async def test() -> None:
        async with serving(head + payload) as server, fetching() as fetcher:
            result = await fetcher.fetch(FetchRequest(server.url("/p?q=1")))
            assert result.request_head == server.requests[0]
            assert f"Host: 127.0.0.1:{server.port}\r\n".encode() in result.request_head
            assert (result.error, result.status, result.truncated) == (None, 200, None)
            assert (result.response_head, result.payload, result.body) == (head, payload, b"hello")
            assert result.headers.all("x-a") == ["one", "two"]
            assert result.address == f"127.0.0.1:{server.port}"
            assert result.wire_size == len(head) + len(payload)
            assert result.started_at > 0
            assert result.elapsed_ms >= 0

    run(test())


def test_a_connection_is_used_again_and_names_do_not_share_one(run: Any, serving: Any, fetching: Any) -> None:
    async def test() -> None:
        async with serving(OK) as server:
            network = NetworkSettings(allow=["127.0.0.1"], resolve={"*.test": f"127.0.0.1:{server.port}"})
            async with fetching(network) as fetcher:
                for name in ("a", "a", "b", "a", "b"):
                    result = await fetcher.fetch(FetchRequest(f"http://{name}.test/"))
                    assert result.body == b"ok"
                assert server.connections == 2

    run(test())


def test_nothing_is_sent_after_the_time_of_a_request_is_over(run: Any) -> None:
    async def test() -> None:
        limits = FetchSettings()
        transport = Mock(asyncio.Transport)
        transport.is_closing.return_value = False
        connection = Connection(Endpoint(ip_address("127.0.0.1"), 80), limits, Mock())
        connection.connection_made(transport)
        reader = ResponseReader(limits)
        await connection.send(b"GET / HTTP/1.1\r\n\r\n", reader, asyncio.get_running_loop().time())
        assert reader.error is FetchError.TOTAL_TIMEOUT
        transport.write.assert_not_called()
        transport.abort.assert_called_once()

    run(test())


def test_a_body_is_sent_with_its_length_on_a_fresh_connection(run: Any, serving: Any, fetching: Any) -> None:
    async def read_body(writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(OK)
        writer.close()

    async def test() -> None:
        async with serving(read_body) as server, fetching() as fetcher:
            result = await fetcher.fetch(FetchRequest(server.url(), method="POST", body=b"a=1"))
            assert result.request_body == b"a=1"
            assert b"Content-Length: 3\r\n" in server.requests[0]

    run(test())


@pytest.mark.parametrize("ending", ["close", "reset"])
def test_a_kept_connection_that_the_server_closed_is_replaced_once(
    ending: str, run: Any, serving: Any, fetching: Any
) -> None:
    async def answer(writer: asyncio.StreamWriter, number: int) -> None:
        if number == 2:
            await sending(then=ending)(writer, number)
        else:
            writer.write(OK)

    async def test() -> None:
        async with serving(answer) as server, fetching() as fetcher:
            for _ in range(2):
                assert (await fetcher.fetch(FetchRequest(server.url()))).body == b"ok"
            assert server.connections == 2
            assert len(server.requests) == 3

    run(test())


def test_requests_that_wait_for_a_place_take_over_its_connection(run: Any, serving: Any, fetching: Any) -> None:
    async def test() -> None:
        async with serving(OK) as server, fetching(connections_per_address=2) as fetcher:
            results = await asyncio.gather(*(fetcher.fetch(FetchRequest(server.url())) for _ in range(20)))
            assert [result.body for result in results] == [b"ok"] * 20
            assert server.connections == 2

    run(test())


def test_a_connection_that_was_taken_over_and_breaks_is_replaced_too(run: Any, serving: Any, fetching: Any) -> None:
    async def answer(writer: asyncio.StreamWriter, number: int) -> None:
        await (sending(then="close") if number == 2 else sending(OK))(writer, number)

    async def test() -> None:
        async with serving(answer) as server, fetching(connections_per_address=1) as fetcher:
            results = await asyncio.gather(*(fetcher.fetch(FetchRequest(server.url())) for _ in range(3)))
            assert [result.body for result in results] == [b"ok"] * 3
            assert len(server.requests) == 4
            assert server.most_open == 1

    run(test())


def test_a_kept_connection_that_broke_within_the_answer_is_not_replaced(
    run: Any, serving: Any, fetching: Any
) -> None:
    async def answer(writer: asyncio.StreamWriter, number: int) -> None:
        await (sending(b"HTTP/1.1 2", then="close") if number == 2 else sending(OK))(writer, number)

    async def test() -> None:
        async with serving(answer) as server, fetching() as fetcher:
            results = [await fetcher.fetch(FetchRequest(server.url())) for _ in range(2)]
            assert [result.error for result in results] == [None, FetchError.RESET]
            assert len(server.requests) == 2

    run(test())


def test_a_fresh_connection_that_gives_nothing_is_a_reset(run: Any, serving: Any, fetching: Any) -> None:
    async def test() -> None:
        async with serving(sending(then="close")) as server, fetching() as fetcher:
            result = await fetcher.fetch(FetchRequest(server.url()))
            assert (result.error, result.status, result.truncated) == (FetchError.RESET, 0, None)
            assert len(server.requests) == 1

    run(test())


def test_bytes_that_nobody_asked_for_end_a_kept_connection(run: Any, serving: Any, fetching: Any) -> None:
    rubbish = asyncio.Event()

    async def answer(writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(OK)
        if number == 1:
            await rubbish.wait()
            writer.write(OK)

    async def test() -> None:
        async with serving(answer) as server, fetching() as fetcher:
            assert (await fetcher.fetch(FetchRequest(server.url("/1")))).body == b"ok"
            rubbish.set()
            await server.left()
            assert (await fetcher.fetch(FetchRequest(server.url("/2")))).body == b"ok"
            assert server.connections == 2

    run(test())


@pytest.mark.parametrize(
    ("raw", "limits", "error", "truncated", "status"),
    [
        (b"", {"idle_timeout": 0.05}, FetchError.IDLE_TIMEOUT, None, 0),
        (HEAD, {"idle_timeout": 0.05}, FetchError.IDLE_TIMEOUT, None, 0),
        (HEAD + b"\r\nabc", {"idle_timeout": 0.05}, FetchError.IDLE_TIMEOUT, Truncated.TIME, 200),
        (HEAD + b"\r\nabc", {"timeout": 0.05}, FetchError.TOTAL_TIMEOUT, Truncated.TIME, 200),
        (HEAD + b"\r\nabc", {"min_rate_after": 0.05}, FetchError.TOO_SLOW, Truncated.TIME, 200),
    ],
)
def test_a_server_that_stalls_is_left_and_what_came_is_kept(
    raw: bytes,
    limits: dict[str, float],
    error: FetchError,
    truncated: Truncated | None,
    status: int,
    run: Any,
    serving: Any,
    fetching: Any,
) -> None:
    async def test() -> None:
        async with serving(sending(raw)) as server, fetching(**limits) as fetcher:
            result = await fetcher.fetch(FetchRequest(server.url()))
            assert (result.error, result.truncated, result.status) == (error, truncated, status)
            assert result.body == (b"abc" if status else b"")
            await server.left()

    run(test())


def test_a_server_that_is_fast_enough_has_its_time(run: Any, serving: Any, fetching: Any) -> None:
    """Three rate windows and three silences shorter than allowed go by."""

    async def trickle(writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(HEAD + b"Content-Length: 6000\r\n\r\n")
        for _ in range(6):
            writer.write(b"x" * 1000)
            await asyncio.sleep(0.03)

    async def test() -> None:
        limits = {"min_rate_after": 0.06, "idle_timeout": 0.5, "min_rate": 100}
        async with serving(trickle) as server, fetching(**limits) as fetcher:
            result = await fetcher.fetch(FetchRequest(server.url()))
            assert (result.error, len(result.body)) == (None, 6000)

    run(test())


def test_an_unused_connection_closes_after_its_time(run: Any, serving: Any, fetching: Any) -> None:
    async def test() -> None:
        async with serving(OK) as server, fetching(keep_alive=0.05, idle_timeout=0.02) as fetcher:
            await fetcher.fetch(FetchRequest(server.url()))
            assert server.open == 1
            await server.left()

    run(test())


def test_a_kept_connection_watches_its_next_request_too(run: Any, serving: Any, fetching: Any) -> None:
    async def answer(writer: asyncio.StreamWriter, number: int) -> None:
        if number == 1:
            writer.write(OK)

    async def test() -> None:
        async with serving(answer) as server, fetching(idle_timeout=0.05) as fetcher:
            results = [await fetcher.fetch(FetchRequest(server.url())) for _ in range(2)]
            assert [result.error for result in results] == [None, FetchError.IDLE_TIMEOUT]

    run(test())


def test_a_capped_body_is_no_error_and_its_connection_ends(run: Any, serving: Any, fetching: Any) -> None:
    async def endless(writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
            await writer.drain()

    async def test() -> None:
        async with serving(endless) as server, fetching(max_body=5000) as fetcher:
            result = await fetcher.fetch(FetchRequest(server.url()))
            assert (result.error, result.truncated, result.body) == (None, Truncated.LENGTH, b"x" * 5000)
            await server.left()

    run(test())


@pytest.mark.parametrize("name", ["bomb-gzip.bin", "bomb-br.bin", "bomb-zstd.bin", "bomb-deflate.bin"])
def test_a_bomb_is_cut_even_in_the_body_of_a_redirect(name: str, data: Path, fetch_once: Any) -> None:
    coded = (data / "bodies" / name).read_bytes()
    coding = name[5:-4].encode()
    raw = b"HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (
        coding,
        len(coded),
    )
    result = fetch_once(raw + coded, max_body=100_000)
    assert (result.status, result.error, result.truncated) == (301, None, Truncated.LENGTH)
    assert len(result.body) == 100_000


def test_head_has_no_body_and_its_length_speaks_of_another(fetch_once: Any) -> None:
    result = fetch_once(HEAD + b"Content-Length: 500\r\n\r\n", method="HEAD")
    assert (result.error, result.status, result.body) == (None, 200, b"")
    assert result.headers.get("content-length") == "500"


def test_a_body_with_a_wrong_label_is_kept_and_marked(fetch_once: Any) -> None:
    """Public bug case bug-060."""
    result = fetch_once(HEAD + b"Content-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n<html>plain</html>")
    assert (result.error, result.body) == (None, b"<html>plain</html>")
    assert "labelled gzip" in result.detail


def test_a_body_that_ends_early_is_kept_and_marked(fetch_once: Any) -> None:
    """Public bug case bug-065."""
    result = fetch_once(HEAD + b"Content-Length: 500\r\nConnection: close\r\n\r\n<html><a href=/a>a</a></html>")
    assert (result.error, result.truncated) == (FetchError.RESET, Truncated.DISCONNECT)
    assert result.body == b"<html><a href=/a>a</a></html>"


def test_equal_lengths_are_one(fetch_once: Any) -> None:
    """Public bug case bug-067."""
    raw = HEAD + b"Content-Length: 5\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello"
    assert fetch_once(raw).body == b"hello"


def test_a_header_beyond_the_limit_fails_with_a_reason_that_names_it(fetch_once: Any) -> None:
    """Public bug case bug-068."""
    raw = HEAD + b"Set-Cookie: " + b"c" * 9000 + b"\r\nContent-Security-Policy: " + b"p" * 12_000 + b"\r\n\r\nok"
    refused = fetch_once(raw)
    assert refused.error is FetchError.HEAD_TOO_LARGE
    assert "8192" in refused.detail
    assert fetch_once(raw, max_line=16_384).body == b"ok"


def test_a_cancelled_request_leaves_no_connection_behind(run: Any, serving: Any, fetching: Any) -> None:
    async def test() -> None:
        async with serving(sending(HEAD)) as server, fetching() as fetcher:
            task = asyncio.create_task(fetcher.fetch(FetchRequest(server.url())))
            await server.asked()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.left()

    run(test())


def test_closing_ends_requests_under_way_with_an_error(run: Any, serving: Any, fetching: Any) -> None:
    async def test() -> None:
        async with serving(sending(HEAD)) as server, fetching() as fetcher:
            task = asyncio.create_task(fetcher.fetch(FetchRequest(server.url())))
            await server.asked()
            await fetcher.close()
            assert (await task).error is FetchError.RESET
            await server.left()

    run(test())
