"""Proxies: which one, by which words, with whose login, and what the guard still sees."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import trustme

from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchError, FetchRequest, FetchResult
from crawlspace.fetch import NetworkSettings

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LOGIN = "robot:open sesame"
BASIC = b"Basic cm9ib3Q6b3BlbiBzZXNhbWU="


@dataclass
class Relay:
    """A proxy of three kinds that leads everything to one port of this machine."""

    target: int
    login: bool = False
    refuses: bytes = b""
    """What it answers instead of opening a tunnel, or the SOCKS reply."""
    port: int = 0
    asked: list[str] = field(default_factory=list)
    heads: list[bytes] = field(default_factory=list)
    connections: int = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            first = await reader.readexactly(1)
            ready = await (self._socks(reader, writer) if first == b"\x05" else self._http(first, reader, writer))
            if ready is not None:
                await self._relay(ready, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _http(self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | None:
        head = first + await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        self.asked.append(head.split(b" ")[1].decode())
        if self.login and b"Proxy-Authorization: " + BASIC not in head:
            writer.write(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
            return None
        if self.refuses:
            writer.write(self.refuses)
            return None
        if head.startswith(b"CONNECT "):
            writer.write(b"HTTP/1.1 200 Open\r\n\r\n")
            return b""
        return head

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | None:
        methods = await reader.readexactly((await reader.readexactly(1))[0])
        writer.write(b"\x05\x02" if self.login else b"\x05\x00")
        if self.login:
            assert 2 in methods
            user = await reader.readexactly((await reader.readexactly(2))[1])
            password = await reader.readexactly((await reader.readexactly(1))[0])
            right = user + b":" + password == LOGIN.encode()
            writer.write(b"\x01\x00" if right else b"\x01\x01")
            if not right:
                return None
        _, _, _, kind = await reader.readexactly(4)
        size = {1: 4, 4: 16}.get(kind) or (await reader.readexactly(1))[0]
        host = await reader.readexactly(size)
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.asked.append(f"{host.decode() if kind == 3 else '.'.join(map(str, host))}:{port}")
        if self.refuses:
            writer.write(b"\x05" + self.refuses + b"\x00\x01\x00\x00\x00\x00\x00\x00")
            return None
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        return b""

    async def _relay(self, begun: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, on = await asyncio.open_connection("127.0.0.1", self.target)
        on.write(begun)
        pumps = [asyncio.create_task(_pump(reader, on)), asyncio.create_task(_pump(back, writer))]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        on.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        sink.write(data)
        await sink.drain()


@asynccontextmanager
async def relaying(target: int, tls: ssl.SSLContext | None = None, **how: Any) -> AsyncIterator[Relay]:
    relay = Relay(target, **how)
    gone: list[asyncio.Task[None]] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        gone.append(task)
        await relay.handle(reader, writer)

    listener = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    relay.port = listener.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        listener.close()
        await asyncio.gather(*gone, return_exceptions=True)
        await listener.wait_closed()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


def context_of(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


Through = Callable[..., Any]


@pytest.fixture
def through(run: Any, serving: Any, fetching: Any, ca_file: str, authority: trustme.CA) -> Through:
    """Two requests for `scheme://a.test/` through a proxy of a kind; the results, the relay and the server."""

    def once(kind: str, scheme: str = "http", host: str = "a.test", answer: Any = OK, **how: Any) -> Any:
        async def test() -> tuple[list[FetchResult], Relay, Any]:
            tls = context_of(authority, host.strip("[]")) if scheme == "https" else None
            outer = context_of(authority, "127.0.0.1") if kind == "https" else None
            limits = {name: how.pop(name) for name in ("connect_timeout", "timeout") if name in how}
            public, wants = how.pop("public", True), how.pop("wants", False)
            async with serving(answer, tls=tls) as server, relaying(server.port, outer, **how) as relay:
                proxy = f"{kind}://127.0.0.1:{relay.port}"
                network = NetworkSettings(
                    proxy=proxy,
                    proxy_allow=["127.0.0.1"],
                    allow=["192.0.2.0/24"],
                    proxy_auth={proxy: "RELAY_LOGIN"} if wants or how.get("login") else {},
                )
                async with fetching(network, public, ca_file=ca_file, **limits) as fetcher:

                    async def lookup(name: str) -> list[str]:
                        known = {"a.test": ["192.0.2.7"], "in.test": ["192.0.2.7", "10.0.0.1"]}
                        if name not in known:
                            raise OSError(-2, "Name or service not known")
                        return known[name]

                    fetcher.resolver.lookup = lookup
                    url = f"{scheme}://{host}/p?q"
                    results = [await fetcher.fetch(FetchRequest(url)) for _ in range(2)]
                return results, relay, server

        return run(test())

    return once


KINDS = ["http", "https", "socks5", "socks5h"]


@pytest.fixture(autouse=True)
def _login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_LOGIN", LOGIN)


@pytest.mark.parametrize("login", [False, True])
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_proxy_leads_to_both_schemes_and_its_connection_is_kept(
    kind: str, scheme: str, login: bool, through: Through
) -> None:
    results, relay, server = through(kind, scheme, login=login)
    assert [(result.error, result.body) for result in results] == [(None, b"ok")] * 2, results[0].detail
    port = 443 if scheme == "https" else 80
    handed_over = kind.startswith("http") and scheme == "http"
    target = {
        "socks5": f"192.0.2.7:{port}",
        "socks5h": f"a.test:{port}",
    }.get(kind, "http://a.test/p?q" if handed_over else f"a.test:{port}")
    assert relay.asked == [target]
    assert relay.connections == 1
    assert results[0].address == (target if kind == "socks5" else "")
    assert b"Host: a.test\r\n" in server.requests[0]


@pytest.mark.parametrize(("kind", "scheme"), [("http", "https"), ("https", "https"), ("socks5", "http")])
def test_a_login_of_the_proxy_never_goes_through_its_tunnel(kind: str, scheme: str, through: Through) -> None:
    results, relay, server = through(kind, scheme, login=True)
    assert all(b"roxy" not in request for request in server.requests)
    assert b"roxy" not in results[0].request_head
    assert all(BASIC in head for head in relay.heads)


@pytest.mark.parametrize("kind", KINDS)
def test_a_login_that_the_proxy_does_not_take_is_our_own_failure(
    kind: str, through: Through, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAY_LOGIN", "robot:wrong")
    results, _, server = through(kind, "https", login=True)
    assert results[0].error is FetchError.LOCAL
    assert f"proxy {kind}://127.0.0.1" in results[0].detail
    assert "wrong" not in results[0].detail
    assert server.requests == []


@pytest.mark.parametrize(
    ("kind", "refuses", "error"),
    [
        ("http", b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", FetchError.CONNECT),
        ("http", b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", FetchError.LOCAL),
        ("http", b"HTTP/1.1 200 OK\r\n\r\nand an answer of its own", FetchError.LOCAL),
        ("http", b"SSH-2.0-OpenSSH_9.2\r\n", FetchError.LOCAL),
        ("http", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, FetchError.LOCAL),
        ("http", b"HTTP/1.1 200 OK\r\n\r\n", FetchError.TLS),
        ("socks5", b"\x05", FetchError.CONNECT),
        ("socks5", b"\x02", FetchError.LOCAL),
        ("socks5", b"\x63", FetchError.LOCAL),
    ],
)
def test_who_is_to_blame_for_a_tunnel_that_does_not_open(
    kind: str, refuses: bytes, error: FetchError, through: Through
) -> None:
    results, _, server = through(kind, "https", refuses=refuses)
    assert [result.error for result in results] == [error] * 2, results[0].detail
    assert results[0].request_head == b""
    assert server.requests == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_behind_the_tunnel_must_be_the_targets(
    kind: str, run: Any, serving: Any, fetching: Any, ca_file: str, authority: trustme.CA
) -> None:
    async def test() -> FetchResult:
        outer = context_of(authority, "127.0.0.1") if kind == "https" else None
        async with (
            serving(OK, tls=context_of(authority, "b.test")) as server,
            relaying(server.port, outer) as relay,
        ):
            network = NetworkSettings(
                proxy=f"{kind}://127.0.0.1:{relay.port}",
                proxy_allow=["127.0.0.1"],
                allow=["192.0.2.7"],
                resolve={"a.test": "192.0.2.7:443"},
            )
            async with fetching(network, ca_file=ca_file) as fetcher:
                result: FetchResult = await fetcher.fetch(FetchRequest("https://a.test/"))
                return result

    result = run(test())
    assert result.error is FetchError.TLS
    assert "certificate" in result.detail


def test_a_proxy_that_must_prove_its_name_and_cannot_is_our_own_failure(
    run: Any, serving: Any, fetching: Any, ca_file: str, authority: trustme.CA
) -> None:
    async def test() -> FetchResult:
        async with serving(OK) as server, relaying(server.port, context_of(authority, "other.test")) as relay:
            network = NetworkSettings(proxy=f"https://127.0.0.1:{relay.port}", proxy_allow=["127.0.0.1"])
            async with fetching(network, ca_file=ca_file) as fetcher:
                result: FetchResult = await fetcher.fetch(FetchRequest("https://unknown.invalid/"))
                assert relay.asked == []
                return result

    assert run(test()).error is FetchError.LOCAL


@pytest.mark.parametrize("kind", KINDS)
def test_a_proxy_where_nobody_listens_is_our_own_failure(kind: str, run: Any, serving: Any, fetching: Any) -> None:
    async def test() -> None:
        async with serving(OK) as server:
            port = server.port
        network = NetworkSettings(proxy=f"{kind}://127.0.0.1:{port}", allow=["127.0.0.1", "192.0.2.7"])
        async with fetching(network) as fetcher:
            result = await fetcher.fetch(FetchRequest("https://192.0.2.7/"))
            assert result.error is FetchError.LOCAL
            assert result.detail.startswith(f"proxy {kind}://127.0.0.1:{port}: ")

    run(test())


@pytest.mark.parametrize("kind", KINDS)
def test_a_proxy_that_says_nothing_is_given_up(kind: str, run: Any, serving: Any, fetching: Any) -> None:
    async def silent(writer: asyncio.StreamWriter, number: int) -> None:
        await asyncio.sleep(0)

    async def test() -> None:
        async with serving(silent) as server:
            network = NetworkSettings(
                proxy=f"{kind}://127.0.0.1:{server.port}", proxy_allow=["127.0.0.1"], allow=["192.0.2.7"]
            )
            async with fetching(network, connect_timeout=0.1) as fetcher:
                result = await fetcher.fetch(FetchRequest("https://192.0.2.7/"))
                assert result.error is FetchError.LOCAL
                assert "not done after 0.1 s" in result.detail

    run(test())


# -- the guard ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("host", ["10.0.0.1", "[::1]", "169.254.169.254"])
def test_a_proxy_is_not_asked_for_a_private_address(host: str, kind: str, scheme: str, through: Through) -> None:
    results, relay, _ = through(kind, scheme, host)
    assert [result.error for result in results] == [FetchError.ADDRESS_REFUSED] * 2
    assert (relay.asked, relay.connections) == ([], 0)


@pytest.mark.parametrize("kind", ["http", "https"])
def test_a_name_that_has_a_private_address_among_others_is_not_left_to_the_proxy(kind: str, through: Through) -> None:
    results, relay, _ = through(kind, host="in.test")
    assert results[0].error is FetchError.ADDRESS_REFUSED
    assert relay.connections == 0


def test_with_socks5_only_the_address_that_passed_is_asked_for(through: Through) -> None:
    results, relay, _ = through("socks5", host="in.test")
    assert (results[0].error, relay.asked) == (None, ["192.0.2.7:80"])


@pytest.mark.parametrize(("kind", "error"), [("http", None), ("socks5h", None), ("socks5", FetchError.DNS)])
def test_a_name_that_we_cannot_look_up_is_the_proxys_matter(
    kind: str, error: FetchError | None, through: Through
) -> None:
    results, relay, _ = through(kind, host="onion.invalid")
    assert results[0].error is error
    assert bool(relay.asked) is (error is None)


@pytest.mark.parametrize("kind", ["http", "https", "socks5h"])
def test_without_a_contact_a_name_that_nobody_here_has_judged_is_refused(kind: str, through: Through) -> None:
    results, relay, _ = through(kind, host="onion.invalid", public=False)
    assert results[0].error is FetchError.ADDRESS_REFUSED
    assert "contact" in results[0].detail
    assert relay.connections == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_proxy_at_a_private_address_must_be_listed(kind: str, fetching: Any) -> None:
    async def test(network: NetworkSettings) -> None:
        async with fetching(network):
            pass

    with pytest.raises(ConfigError, match=r"network\.proxy") as caught:
        asyncio.run(test(NetworkSettings(proxy=f"{kind}://10.0.0.1:3128")))
    assert "proxy_allow" in caught.value.hint
    asyncio.run(test(NetworkSettings(proxy=f"{kind}://10.0.0.1:3128", proxy_allow=["10.0.0.0/8"])))


def test_a_name_that_leads_a_proxy_to_a_private_address_is_refused_and_opens_nothing_for_pages(
    serving: Any, fetching: Any
) -> None:
    async def test() -> None:
        async with serving(OK) as server:
            network = NetworkSettings(proxy={"b.test": f"http://proxy.test:{server.port}"})
            async with fetching(network) as fetcher:

                async def lookup(name: str) -> list[str]:
                    return ["127.0.0.1"] if name == "proxy.test" else ["192.88.99.1"]

                fetcher.resolver.lookup = lookup
                result = await fetcher.fetch(FetchRequest("http://b.test/"))
                assert result.error is FetchError.LOCAL
                assert "not a public address" in result.detail
            listed = NetworkSettings(proxy=network.proxy, proxy_allow=["127.0.0.1"])
            async with fetching(listed) as fetcher:
                result = await fetcher.fetch(FetchRequest(server.url()))
                assert result.error is FetchError.ADDRESS_REFUSED
            assert server.connections == 0

    asyncio.run(test())


# -- settings -------------------------------------------------------------------------------------------------


def test_socks_needs_its_library(monkeypatch: pytest.MonkeyPatch, fetching: Any) -> None:
    monkeypatch.setattr("crawlspace.fetch.tunnel.find_spec", lambda _name: None)

    async def test() -> None:
        async with fetching(NetworkSettings(proxy="socks5://127.0.0.1", proxy_allow=["127.0.0.1"])):
            pass

    with pytest.raises(ConfigError, match="python-socks"):
        asyncio.run(test())


def test_a_proxy_has_a_number_of_places_of_its_own(run: Any, serving: Any, fetching: Any) -> None:
    async def test() -> None:
        async with serving(OK) as server, relaying(server.port) as relay:
            network = NetworkSettings(
                proxy=f"http://127.0.0.1:{relay.port}", proxy_allow=["127.0.0.1"], proxy_connections=5
            )
            async with fetching(network, connections_per_address=1, timeout=5) as fetcher:
                requests = [FetchRequest(f"http://n{number}.invalid/") for number in range(5)]
                results = await asyncio.gather(*map(fetcher.fetch, requests))
                assert [result.body for result in results] == [b"ok"] * 5
                assert relay.connections == 5

    run(test())
