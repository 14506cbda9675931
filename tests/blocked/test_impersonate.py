"""A client that looks like a browser's, and keeps to the guard, the limits and the rules of a crawl."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import trustme
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived

from crawlspace.app.routes import route_fetchers
from crawlspace.clock import SystemClock
from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchError, FetchRequest, FetchResult, Truncated
from crawlspace.ports import Fetcher
from crawlspace.settings import convert
from crawlspace.states import UrlState

from .conftest import Answer, Doors

pytest.importorskip("curl_cffi")

HOME = "http://a.test/"


def fetcher_of(port: int, route: dict[str, Any] | None = None, **settings: Any) -> Fetcher:
    network = {
        "allow": ["127.0.0.1"],
        "resolve": {"a.test:80": f"127.0.0.1:{port}", "private.test:80": "10.0.0.1:80", "b.test:80": "127.0.0.1:9"},
    }
    given = {"contact": "x", "network": network, "routes": {"like": {"kind": "impersonate", **(route or {})}}}
    return route_fetchers(convert({**given, **settings}, "test"), SystemClock())["like"]


def play(fetcher: Fetcher, story: Callable[[Fetcher], Coroutine[Any, Any, FetchResult]]) -> FetchResult:
    async def main() -> FetchResult:
        try:
            return await story(fetcher)
        finally:
            await fetcher.close()

    return asyncio.run(main())


def ask(fetcher: Fetcher, request: FetchRequest) -> FetchResult:
    return play(fetcher, lambda it: it.fetch(request))


def test_it_asks_as_a_browser_does_and_gives_the_answer_as_it_came(web: Doors) -> None:
    packed = gzip.compress(b"<p>hello</p>")
    fields = {"Content-Type": "text/html", "Content-Encoding": "gzip", "Set-Cookie": "a=1"}
    web.doors[HOME] = lambda _: Answer(packed, 200, fields)
    result = ask(fetcher_of(web.port, {"headers": {"Accept-Language": "de"}}), FetchRequest(HOME))
    assert (result.error, result.status, result.body, result.payload) == (None, 200, b"<p>hello</p>", packed)
    assert result.headers.get("content-encoding") == "gzip"
    assert result.address == f"127.0.0.1:{web.port}"
    assert result.request_head == b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"
    (asked,) = web.asked
    assert "Chrome/" in asked.headers["user-agent"]
    assert asked.headers["accept-language"] == "de"


def test_no_redirect_is_followed_no_cookie_kept_and_no_environment_read(
    web: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    web.doors[HOME] = lambda _: Answer("", 302, {"Location": "/next", "Set-Cookie": "a=1"})
    web.open("http://a.test/next")

    async def story(fetcher: Fetcher) -> FetchResult:
        first = await fetcher.fetch(FetchRequest(HOME))
        assert (first.status, first.headers.get("location")) == (302, "/next")
        return await fetcher.fetch(FetchRequest("http://a.test/next"))

    assert play(fetcher_of(web.port), story).status == 200
    assert [asked.url for asked in web.asked] == [HOME, "http://a.test/next"]
    assert "cookie" not in web.asked[1].headers


def test_the_guard_holds_on_this_road(web: Doors) -> None:
    urls = (
        "http://private.test/",
        "http://10.1.2.3/",
        "http://[::1]/",
        "http://169.254.169.254/",
        "http://[::ffff:7f00:2]/",
    )
    for url in urls:
        result = ask(fetcher_of(web.port), FetchRequest(url))
        assert (result.status, result.error) == (0, FetchError.ADDRESS_REFUSED), url
    assert not web.asked


@pytest.mark.parametrize(
    ("settings", "size", "truncated"),
    [
        ({"max_wire": 1000}, 1000, Truncated.LENGTH),
        ({"max_body": 2000}, 2000, Truncated.LENGTH),
    ],
)
def test_bodies_are_cut_at_the_limits(web: Doors, settings: dict[str, int], size: int, truncated: Truncated) -> None:
    web.doors[HOME] = lambda _: Answer("x" * 50_000)
    result = ask(fetcher_of(web.port, fetch=settings), FetchRequest(HOME))
    assert (result.status, len(result.body), result.truncated) == (200, size, truncated)


def test_heads_are_held_to_the_limits(web: Doors) -> None:
    web.doors[HOME] = lambda _: Answer("x", 200, {f"X-{number}": "y" * 1000 for number in range(100)})
    result = ask(fetcher_of(web.port), FetchRequest(HOME))
    assert (result.status, result.error) == (0, FetchError.HEAD_TOO_LARGE)


def test_a_host_that_is_not_there_is_a_failure(web: Doors) -> None:
    result = ask(fetcher_of(web.port), FetchRequest("http://b.test/"))
    assert (result.status, result.error) == (0, FetchError.CONNECT)


def test_a_host_that_breaks_off_or_stays_silent(web: Doors) -> None:
    async def main() -> tuple[FetchResult, FetchResult]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            line = await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            await writer.drain()
            if b"GET /silent" in line:
                await reader.read()
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        fetcher = fetcher_of(server.sockets[0].getsockname()[1], {"timeout": 0.3})
        broken = await fetcher.fetch(FetchRequest(HOME))
        silent = await fetcher.fetch(FetchRequest("http://a.test/silent"))
        await fetcher.close()
        server.close()
        return broken, silent

    broken, silent = asyncio.run(main())
    assert (broken.status, broken.body, broken.truncated) == (200, b"half", Truncated.DISCONNECT)
    assert broken.error is not None
    assert (silent.status, silent.truncated, silent.error) == (200, Truncated.TIME, FetchError.TOTAL_TIMEOUT)


def test_a_fetch_that_is_cancelled_ends_its_transfer() -> None:
    async def main() -> bool:
        left = asyncio.Event()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            came.set()
            await reader.read()
            left.set()
            writer.close()

        came = asyncio.Event()
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        fetcher = fetcher_of(server.sockets[0].getsockname()[1])
        task = asyncio.create_task(fetcher.fetch(FetchRequest(HOME)))
        await came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await fetcher.close()
        async with asyncio.timeout(20):
            await left.wait()
        server.close()
        return True

    assert asyncio.run(main())


def test_posts_and_heads_go_as_they_are_asked(web: Doors) -> None:
    web.doors[HOME] = lambda asked: Answer(asked.body)

    async def story(fetcher: Fetcher) -> FetchResult:
        return await fetcher.fetch(FetchRequest(HOME, "POST", b"a=1", (("Content-Type", "text/x"),)))

    result = play(fetcher_of(web.port), story)
    assert result.body == b"a=1"
    (asked,) = web.asked
    assert (asked.method, asked.headers["content-type"]) == ("POST", "text/x")


def test_a_proxy_of_the_crawl_is_used_here_too(web: Doors) -> None:
    """With a tunnel to the address that the guard has passed, and not to a name."""

    async def main() -> bytes:
        seen: list[bytes] = []

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        proxy = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        network = {"proxy": proxy, "allow": ["127.0.0.1"], "resolve": {"a.test:80": f"127.0.0.1:{web.port}"}}
        fetcher = fetcher_of(web.port, network=network)
        result = await fetcher.fetch(FetchRequest(HOME))
        assert result.status == 0
        await fetcher.close()
        server.close()
        return seen[0]

    assert asyncio.run(main()).startswith(f"CONNECT 127.0.0.1:{web.port} ".encode())


def test_certificates_are_checked_against_the_name_of_the_host(tmp_path: Path) -> None:
    """Although the library is told the address: the name stays that of the URL."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("a.test").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))

    async def main() -> list[tuple[int, FetchError | None, str]]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        network = {"allow": ["127.0.0.1"], "resolve": {f"{name}.test:443": f"127.0.0.1:{port}" for name in "ab"}}
        found = []
        for settings, name in (
            ({"ca_file": str(tmp_path / "ca.pem")}, "a"),
            ({"ca_file": str(tmp_path / "ca.pem")}, "b"),
            ({}, "a"),
            ({"tls_verify": False}, "b"),
        ):
            fetcher = fetcher_of(port, network=network, fetch=settings)
            result = await fetcher.fetch(FetchRequest(f"https://{name}.test/"))
            found.append((result.status, result.error, result.detail[:15]))
            await fetcher.close()
        server.close()
        return found

    good, other, unknown, unchecked = asyncio.run(main())
    assert good == (200, None, "")
    assert other[:2] == unknown[:2] == (0, FetchError.TLS)
    assert unchecked == (200, None, "the certificate")


class Secure(asyncio.Protocol):
    """The server's side of a connection over TLS: `moved` is where it says that it could be had as well."""

    def __init__(self, spoken: list[str], moved: bytes) -> None:
        self.spoken = spoken
        self.moved = moved
        self.http = H2Connection(H2Configuration(client_side=False))

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.spoken.append(transport.get_extra_info("ssl_object").selected_alpn_protocol())
        if self.spoken[-1] == "h2":
            self.http.initiate_connection()
            transport.write(self.http.data_to_send())

    def data_received(self, data: bytes) -> None:
        if self.spoken[-1] != "h2":
            self.transport.write(b"HTTP/1.1 200 OK\r\nAlt-Svc: %s\r\nContent-Length: 2\r\n\r\nhi" % self.moved)
            return
        for event in self.http.receive_data(data):
            if isinstance(event, RequestReceived):
                self.http.send_headers(event.stream_id, [(":status", "200"), ("alt-svc", self.moved.decode())])
                self.http.send_data(event.stream_id, b"hi", end_stream=True)
        self.transport.write(self.http.data_to_send())


@pytest.mark.parametrize("spoken", ["h2", "http/1.1"])
def test_the_guard_holds_over_tls_whatever_is_spoken_there(spoken: str, tmp_path: Path) -> None:
    """Nor is another address taken that a server names as its own."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("a.test", "127.0.0.2").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context.set_alpn_protocols([spoken])

    async def main() -> None:
        loop = asyncio.get_running_loop()
        chosen: list[str] = []
        trap: list[str] = []
        other = await loop.create_server(lambda: Secure(trap, b"clear"), "127.0.0.2", 0, ssl=context)
        there = other.sockets[0].getsockname()[1]
        moved = b'%s="127.0.0.2:%d"; ma=3600' % (spoken.encode(), there)
        server = await loop.create_server(lambda: Secure(chosen, moved), "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        leading = {"a.test:443": f"127.0.0.1:{port}", "private.test:443": f"127.0.0.2:{there}"}
        network = {"allow": ["127.0.0.1"], "resolve": leading}
        fetcher = fetcher_of(port, network=network, fetch={"ca_file": str(tmp_path / "ca.pem")})
        for _ in range(2):
            result = await fetcher.fetch(FetchRequest("https://a.test/"))
            assert (result.error, result.body, result.address) == (None, b"hi", f"127.0.0.1:{port}")
        for url in ("https://private.test/", f"https://127.0.0.2:{there}/", "https://[::1]/", "https://10.1.2.3/"):
            assert (await fetcher.fetch(FetchRequest(url))).error is FetchError.ADDRESS_REFUSED, url
        await fetcher.close()
        assert set(chosen) == {spoken}
        assert trap == []
        server.close()
        other.close()

    asyncio.run(main())


def test_a_browser_that_nobody_knows_and_a_library_that_is_missing(
    web: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="knows no browser 'netscape4'"):
        fetcher_of(web.port, {"browser": "netscape4"})
    monkeypatch.setitem(sys.modules, "curl_cffi", None)
    with pytest.raises(ConfigError, match="need curl_cffi") as raised:
        fetcher_of(web.port)
    assert "crawlspace[impersonate]" in (raised.value.hint or "")


def test_a_crawl_by_it(web: Doors) -> None:
    web.open(HOME, "/page")
    web.block("http://a.test/page", lambda asked: "Chrome/" in asked.headers["user-agent"])
    web.crawl(HOME, routes={"like": {"kind": "impersonate"}}, routing__order=["like"])
    story = web.story("http://a.test/page")
    assert (story.state, story.routes) == (UrlState.DONE, ("like",))
