"""The way out of a page: no refused address is connected to, and what is over its limits is cut."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from ipaddress import ip_address
from typing import Any

import can_ada
import pytest
import uvloop

from crawlspace.clock import SystemClock
from crawlspace.exchange import FetchError
from crawlspace.fetch import FetchSettings, NetworkSettings
from crawlspace.fetch.dial import Dialler, Reach
from crawlspace.fetch.pool import Pool
from crawlspace.fetch.proxy import Proxies
from crawlspace.fetch.rendering import gate as gates
from crawlspace.fetch.rendering.gate import Gate, Outside
from crawlspace.fetch.resolve import Resolver
from crawlspace.fetch.tunnel import Tunnels

FORMS = [
    *("127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "0"),
    *("0.0.0.0", "127.255.255.254", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.169.254"),
    *("2852039166", "0xa9fea9fe", "198.18.0.1", "192.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
    *("[::]", "[::1]", "[::127.0.0.1]", "[::a9fe:a9fe]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[::ffff:0:0]"),
    *("[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::]"),
    *("[2001:0:7f00:1:0:0:80ff:fffe]", "[2001:db8::1]", "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]"),
    *("[fec0::1]", "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021", "%31%32%37.0.0.1"),
]
"""As in tests/security: spellings of private addresses."""


CLIENTS: list[asyncio.StreamWriter] = []
"""What is open towards gates."""


@asynccontextmanager
async def opened(max_bytes: int = 1 << 20, **network: Any) -> AsyncIterator[tuple[Gate, int]]:
    limits, settings, clock = FetchSettings(connect_timeout=2), NetworkSettings(**network), SystemClock()
    resolver = Resolver(settings, clock)
    dialler = Dialler(limits, Reach.of(settings, public=True), resolver, Pool(1, 0))
    proxies = Proxies(settings.proxy, settings.proxy_auth, {"PROXY_LOGIN": "robot:open sesame"})
    tunnels = Tunnels(limits, settings, proxies, dialler, Pool(1, 0))
    gate = Gate(Outside(dialler, proxies, tunnels), max_bytes)
    try:
        yield gate, await gate.open()
    finally:
        for client in CLIENTS:
            client.transport.abort()
        CLIENTS.clear()
        await gate.close()
        await resolver.close()


async def ask(
    port: int, host: str, to: int, command: int = 1
) -> tuple[int, asyncio.StreamReader, asyncio.StreamWriter]:
    """What a browser says to a SOCKS5 proxy; the reply's code, and what follows."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    CLIENTS.append(writer)
    writer.write(b"\x05\x01\x00")
    assert await reader.readexactly(2) == b"\x05\x00"
    writer.write(bytes((5, command, 0)) + _address(host) + struct.pack(">H", to))
    reply = await reader.readexactly(10)
    return reply[1], reader, writer


def _address(host: str) -> bytes:
    try:
        packed = ip_address(host.strip("[]")).packed
    except ValueError:
        return bytes((3, len(host))) + host.encode()
    return bytes((1 if len(packed) == 4 else 4,)) + packed


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    return asyncio.run if request.param == "asyncio" else uvloop.run


def test_every_form_of_a_private_address_is_refused(run: Callable[[Any], Any]) -> None:
    """As a browser spells them once it has read the URL, and as they stand; by number and by name."""

    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as tripwire:
            tripwire.setblocking(False)
            to = tripwire.getsockname()[1]
            async with opened(allow=["127.0.0.99"]) as (gate, port):
                spelled = {can_ada.parse(f"http://{form}/").hostname for form in FORMS}
                plain = {form for form in FORMS if form.isascii() and "%" not in form}
                for host in spelled | plain:
                    code, _, _ = await ask(port, host, to)
                    assert code == 2, host
                assert {each.error for each in gate.problems.values()} == {FetchError.ADDRESS_REFUSED}
                assert len(gate.refusals) == 10
                assert gate.size == 0
            with pytest.raises(BlockingIOError):
                tripwire.accept()

    run(test())


def test_a_name_that_leads_to_a_private_address_is_refused_whatever_it_led_to_before() -> None:
    async def test() -> None:
        async with opened(dns_ttl=0) as (gate, port):
            found = iter([["127.0.0.1"], ["::ffff:10.0.0.1"], []])

            async def lookup(_name: str) -> list[str]:
                return next(found)

            gate._outside._dialler._resolver.lookup = lookup
            codes = [(await ask(port, "rebinding.test", 80))[0] for _ in range(3)]
            assert codes == [2, 2, 4]

    asyncio.run(test())


def test_what_is_asked_of_an_allowed_host_goes_through_both_ways() -> None:
    async def test() -> None:
        server = await asyncio.start_server(echo, "127.0.0.99", 0)
        to = server.sockets[0].getsockname()[1]
        async with opened(allow=["127.0.0.99"], resolve={"a.test": f"127.0.0.99:{to}"}) as (gate, port):
            for host, its_port in (("a.test", 80), ("127.0.0.99", to)):
                code, reader, writer = await ask(port, host, its_port)
                assert code == 0
                writer.write(b"hello")
                writer.write_eof()
                assert await reader.read() == b"hello"
            assert (gate.size, gate.address, gate.refusals) == (20, f"127.0.0.99:{to}", [])
        server.close()

    asyncio.run(test())


def test_a_page_that_uses_up_its_bytes_is_cut_and_gets_no_more() -> None:
    async def test() -> None:
        server = await asyncio.start_server(echo, "127.0.0.99", 0)
        to = server.sockets[0].getsockname()[1]
        async with opened(100_000, allow=["127.0.0.99"]) as (gate, port):
            _, reader, writer = await ask(port, "127.0.0.99", to)
            writer.write(bytes(90_000))
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await reader.readexactly(90_000)
            assert gate.is_spent
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await ask(port, "127.0.0.99", to)
        server.close()

    asyncio.run(test())


def test_connections_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        monkeypatch.setattr(gates, "CONNECTIONS", 2)
        server = await asyncio.start_server(echo, "127.0.0.99", 0)
        to = server.sockets[0].getsockname()[1]
        async with opened(allow=["127.0.0.99"]) as (_, port):
            assert [(await ask(port, "127.0.0.99", to))[0] for _ in range(2)] == [0, 0]
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await ask(port, "127.0.0.99", to)
        server.close()

    asyncio.run(test())


def test_what_a_browser_asks_for_itself_is_refused_before_it_is_looked_up() -> None:
    async def test() -> None:
        async with opened() as (gate, port):
            gate._outside._dialler._resolver.lookup = never
            assert [(await ask(port, host, 443))[0] for host in sorted(gates.MAKERS)] == [2] * len(gates.MAKERS)

    async def never(name: str) -> list[str]:
        raise AssertionError(name)

    asyncio.run(test())


async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heads: list[bytes]) -> None:
    """A proxy that says hello in the target's place, or refuses targets whose names tell it to."""
    first = await reader.readexactly(1)
    if first == b"\x05":
        await reader.readexactly(2)
        writer.write(b"\x05\x00")
        heads.append(await reader.readexactly(10))
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
    else:
        heads.append(first + await reader.readuntil(b"\r\n\r\n"))
        answers = {b"busy": b"503 Busy", b"shut": b"403 No", b"rash": b"200 Open\r\n\r\nrash"}
        said = next((answer for name, answer in answers.items() if name in heads[-1]), b"200 Open")
        writer.write(b"HTTP/1.1 " + said + b"\r\nContent-Length: 0\r\n\r\n")
    with suppress(asyncio.IncompleteReadError):
        writer.write(b"through: " + await reader.readexactly(5))
    writer.close()


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_host_with_a_proxy_is_reached_through_it(scheme: str) -> None:
    heads: list[bytes] = []

    async def test() -> None:
        server = await asyncio.start_server(partial(relay, heads=heads), "127.0.0.98", 0)
        where = f"{scheme}://127.0.0.98:{server.sockets[0].getsockname()[1]}"
        network: dict[str, Any] = {"allow": ["127.0.0.99"], "proxy_allow": ["127.0.0.98"], "proxy": where}
        login = {where: "PROXY_LOGIN"} if scheme == "http" else {}
        async with opened(**network, proxy_auth=login, resolve={"a.test": "127.0.0.99:443"}) as (gate, port):
            code, reader, writer = await ask(port, "a.test", 443)
            assert code == 0
            writer.write(b"hello")
            assert await reader.read() == b"through: hello"
            assert (gate.size, gate.problems) == (19, {})
            assert gate.address == ("127.0.0.99:443" if scheme == "socks5" else "")
            # What may not be reached is refused before the proxy hears of it.
            assert [(await ask(port, "127.0.0.1", 80))[0], len(heads)] == [2, 1]
        server.close()

    asyncio.run(test())
    if scheme == "http":
        assert heads[0].startswith(b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n")
        assert b"Proxy-Authorization: Basic cm9ib3Q6b3BlbiBzZXNhbWU=" in heads[0]
    else:
        assert heads[0] == b"\x05\x01\x00\x01" + ip_address("127.0.0.99").packed + b"\x01\xbb"


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("busy.test", FetchError.CONNECT, "proxy {} answered 503"),
        ("shut.test", FetchError.LOCAL, "proxy {}: it answered 403"),
        ("rash.test", FetchError.LOCAL, "proxy {}: it sent more than was asked for"),
    ],
)
def test_a_proxy_that_does_not_lead_on_is_told(name: str, error: FetchError, said: str) -> None:
    async def test() -> None:
        server = await asyncio.start_server(partial(relay, heads=[]), "127.0.0.98", 0)
        where = f"http://127.0.0.98:{server.sockets[0].getsockname()[1]}"
        network: dict[str, Any] = {"allow": ["127.0.0.99"], "proxy_allow": ["127.0.0.98"], "proxy": {name: where}}
        async with opened(**network, resolve={name: "127.0.0.99:443"}) as (gate, port):
            assert (await ask(port, name, 443))[0] == 4
            problem = gate.problems[name]
            assert (problem.error, problem.detail) == (error, said.format(where))
        server.close()

    asyncio.run(test())


def test_a_proxy_that_is_not_there_is_no_reason_to_go_around_it() -> None:
    async def test() -> None:
        network: dict[str, Any] = {"allow": ["127.0.0.98/31"], "proxy": {"a.test": "http://127.0.0.98:1"}}
        async with opened(**network, resolve={"a.test": "127.0.0.99:443"}) as (gate, port):
            assert (await ask(port, "a.test", 80))[0] == 4
            assert gate.problems["a.test"].error is FetchError.LOCAL
            assert gate.problems["a.test"].detail.startswith("proxy http://127.0.0.98:1: 127.0.0.98:1: ")

    asyncio.run(test())


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", b""),
        (b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00", b""),
        (b"\x05\x01\x00\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x50", b"\x05\x00\x05\x07"),
        (b"\x05\x01\x00\x05\x01\x00\x09", b"\x05\x00"),
        (b"\x05\x01\x00\x05\x01\x00\x03\x01\xff\x00\x50", b"\x05\x00"),
        (b"\x05\x01\x00\x05\x01\x00\x03\x00\x00\x50", b"\x05\x00\x05\x01"),
        (b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x00", b"\x05\x00\x05\x01"),
    ],
)
def test_what_is_no_wish_to_connect_is_not_served(said: bytes, answer: bytes) -> None:
    async def test() -> None:
        async with opened() as (gate, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(said)
            writer.write_eof()
            heard = b""
            try:
                while piece := await reader.read(100):
                    heard += piece
            except ConnectionError:
                pass
            assert heard.startswith(answer)
            assert len(heard) in (0, 2, 12)
            assert gate.size == 0
            writer.close()

    asyncio.run(test())
