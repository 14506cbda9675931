"""Certificates are checked, and what is wrong with one is a value."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchError, FetchRequest, FetchResult, Truncated
from crawlspace.fetch import FetchSettings, NetworkSettings
from crawlspace.fetch.request import Origin
from crawlspace.fetch.tls import Contexts

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


def context_of(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


@pytest.fixture
def ask(run: Any, serving: Any, fetching: Any, ca_file: str) -> Callable[..., Any]:
    """One request to `https://host/`, whose server has this context."""

    def once(context: ssl.SSLContext | None, host: str = "a.test", answer: Any = OK, **limits: Any) -> Any:
        async def test() -> FetchResult:
            async with serving(answer, tls=context) as server:
                network = NetworkSettings(
                    allow=["127.0.0.1"], resolve={f"{host}:{server.port}": f"127.0.0.1:{server.port}"}
                )
                async with fetching(network, **{"ca_file": ca_file, **limits}) as fetcher:
                    result = await fetcher.fetch(FetchRequest(server.url(scheme="https", host=host)))
                    again = await fetcher.fetch(FetchRequest(server.url(scheme="https", host=host)))
                    assert (again.error, again.body) == (result.error, result.body)
                    if answer is OK and result.error is None:
                        assert server.connections == 1
                    return result

        return run(test())

    return once


def test_a_certificate_of_a_trusted_authority_passes_and_its_connection_is_kept(
    ask: Any, authority: trustme.CA
) -> None:
    result = ask(context_of(authority.issue_cert("a.test")))
    assert (result.error, result.body) == (None, b"ok")


def test_the_server_is_told_the_name_and_no_address(ask: Any, authority: trustme.CA) -> None:
    """Public bug case bug-055: RFC 6066 section 3 allows no literal address as a server name."""
    told: list[str | None] = []
    context = context_of(authority.issue_cert("a.test", "127.0.0.1"))
    context.sni_callback = lambda _socket, name, _context: told.append(name)
    for host, name in (("a.test", "a.test"), ("a.test.", "a.test"), ("127.0.0.1", None)):
        assert ask(context, host).error is None
        assert told.pop() == name


@pytest.mark.parametrize("fault", ["authority", "name", "expired"])
def test_a_certificate_that_does_not_prove_the_host_is_refused(fault: str, ask: Any, authority: trustme.CA) -> None:
    past = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    certificate = {
        "authority": trustme.CA().issue_cert("a.test"),
        "name": authority.issue_cert("b.test"),
        "expired": authority.issue_cert("a.test", not_after=past),
    }[fault]
    result = ask(context_of(certificate))
    assert (result.error, result.request_head) == (FetchError.TLS, b"")
    assert "certificate" in result.detail


def test_without_verification_any_certificate_passes(ask: Any) -> None:
    assert ask(context_of(trustme.CA().issue_cert("b.test")), tls_verify=False, ca_file="").body == b"ok"


def test_versions_before_1_2_are_not_spoken() -> None:
    assert Contexts(FetchSettings()).of(Origin("https", "a.test", 443)).minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_server_that_speaks_no_tls_is_a_value(ask: Any) -> None:
    async def talk(writer: asyncio.StreamWriter, number: int) -> None:
        writer.close()

    assert ask(None, answer=talk, connect_timeout=0.3).error in (FetchError.TLS, FetchError.CONNECT_TIMEOUT)


def test_a_handshake_that_never_comes_is_given_up(run: Any, fetching: Any) -> None:
    async def test() -> None:
        came = asyncio.Event()

        async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()
            came.set()

        server = await asyncio.start_server(hold, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with fetching(connect_timeout=0.1) as fetcher:
            result = await fetcher.fetch(FetchRequest(f"https://127.0.0.1:{port}/"))
            assert result.error is FetchError.CONNECT_TIMEOUT
            assert "TLS" in result.detail
            await came.wait()
        server.close()
        await server.wait_closed()

    run(test())


def test_a_server_that_hangs_up_in_the_handshake_is_a_value(run: Any, fetching: Any) -> None:
    async def test() -> None:
        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(10)
            writer.transport.abort()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with fetching() as fetcher:
            assert (await fetcher.fetch(FetchRequest(f"https://127.0.0.1:{port}/"))).error is FetchError.TLS
        server.close()
        await server.wait_closed()

    run(test())


@pytest.mark.parametrize(("length", "truncated"), [(b"", None), (b"Content-Length: 9\r\n", Truncated.DISCONNECT)])
def test_the_end_of_a_connection_ends_only_a_body_without_a_length(
    length: bytes, truncated: Truncated | None, ask: Any, authority: trustme.CA
) -> None:
    async def send(writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + length + b"\r\nabc")
        writer.close()

    result = ask(context_of(authority.issue_cert("a.test")), answer=send)
    assert (result.body, result.truncated) == (b"abc", truncated)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_of_authorities_that_cannot_be_used_is_named(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=r"ca\.pem"):
        Contexts(FetchSettings(ca_file=str(path)))


def test_an_exception_holds_for_its_origin_alone_and_is_told(run: Any, serving: Any, fetching: Any) -> None:
    async def test() -> None:
        async with serving(OK, tls=context_of(trustme.CA().issue_cert("x.test"))) as server:
            table = {f"{name}.test": f"127.0.0.1:{server.port}" for name in "ab"}
            network = NetworkSettings(allow=["127.0.0.1"], resolve=table)
            async with fetching(network, tls_unverified=["https://a.test"]) as fetcher:
                passed, refused, port = [
                    await fetcher.fetch(FetchRequest(f"https://{host}/"))
                    for host in ("a.test", "b.test", "a.test:8443")
                ]
                assert (passed.error, passed.detail) == (None, "the certificate was not checked")
                assert (refused.error, port.error) == (FetchError.TLS, FetchError.TLS)

    run(test())


def test_a_client_certificate_is_shown_to_its_origin_and_to_nobody_else(
    run: Any, serving: Any, fetching: Any, authority: trustme.CA, ca_file: str, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.pem"
    authority.issue_cert("robot@a.test").private_key_and_cert_chain_pem.write_to_path(str(mine))
    context = context_of(authority.issue_cert("a.test", "b.test"))
    context.verify_mode = ssl.CERT_OPTIONAL
    authority.configure_trust(context)
    shown: list[bool] = []

    async def answer(writer: asyncio.StreamWriter, number: int) -> None:
        shown.append(bool(writer.get_extra_info("ssl_object").getpeercert()))
        writer.write(OK)

    async def test() -> None:
        async with serving(answer, tls=context) as server:
            table = {f"{name}.test": f"127.0.0.1:{server.port}" for name in "ab"}
            network = NetworkSettings(allow=["127.0.0.1"], resolve=table)
            certificates = {"https://a.test": str(mine)}
            async with fetching(network, ca_file=ca_file, client_certificates=certificates) as fetcher:
                for host in ("a.test", "b.test"):
                    result = await fetcher.fetch(FetchRequest(f"https://{host}/"))
                    assert (result.error, result.body) == (None, b"ok"), result.detail

    run(test())
    assert shown == [True, False]


LOCKED = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"


@pytest.mark.parametrize("content", [None, "nothing", LOCKED])
def test_a_client_certificate_that_cannot_be_used_is_named(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "mine.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=r"mine\.pem"):
        Contexts(FetchSettings(client_certificates={"https://a.test": str(path)}))


def test_a_key_with_a_password_is_refused_rather_than_asked_for(authority: trustme.CA, tmp_path: Path) -> None:
    """OpenSSL would otherwise ask at the terminal, and a crawl would wait for ever."""
    from cryptography.hazmat.primitives import serialization

    leaf = authority.issue_cert("robot@a.test")
    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    path = tmp_path / "mine.pem"
    path.write_bytes(locked + leaf.cert_chain_pems[0].bytes())
    with pytest.raises(ConfigError, match=r"mine\.pem"):
        Contexts(FetchSettings(client_certificates={"https://a.test": str(path)}))


def test_bug_054_hosts_at_one_address_with_one_certificate_get_connections_of_their_own(
    run: Any, serving: Any, fetching: Any, authority: trustme.CA, ca_file: str
) -> None:
    """A server may answer 421 to a Host that is not the name its connection was made with (RFC 9110, 15.5.20)."""
    told: list[str | None] = []
    context = context_of(authority.issue_cert("a.test", "b.test"))
    context.sni_callback = lambda _socket, name, _context: told.append(name)

    async def test() -> list[int]:
        async with serving(OK, tls=context) as server:
            names = {f"{host}:{server.port}": f"127.0.0.1:{server.port}" for host in ("a.test", "b.test")}
            async with fetching(NetworkSettings(allow=["127.0.0.1"], resolve=names), ca_file=ca_file) as fetcher:
                urls = [server.url(scheme="https", host=host) for host in ("a.test", "b.test", "a.test")]
                return [(await fetcher.fetch(FetchRequest(url))).status for url in urls]

    assert run(test()) == [200, 200, 200]
    assert told == ["a.test", "b.test"]


def test_a_connection_stays_open_through_the_delay_of_its_host(
    serving: Any, fetching: Any, ca_file: str, authority: trustme.CA
) -> None:
    """A handshake costs more than the rest of a page: ten seconds of silence spare it, as long as a minute does."""

    async def test() -> None:
        loop = asyncio.get_running_loop()
        clock, passed = loop.time, 0.0
        loop.time = lambda: clock() + passed  # type: ignore[method-assign]
        async with (
            serving(OK, tls=context_of(authority.issue_cert("127.0.0.1"))) as server,
            fetching(ca_file=ca_file, keep_alive=90, idle_timeout=5) as fetcher,
        ):
            for seconds in (0, 10, 60, 89, 91):
                passed += seconds
                await asyncio.sleep(0)
                if seconds == 91:
                    await server.left()
                assert (await fetcher.fetch(FetchRequest(server.url(scheme="https")))).body == b"ok"
            assert server.connections == 2

    asyncio.run(test())
