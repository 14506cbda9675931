"""Rows 6 to 9 and 17: what a server can do with its answer alone."""

from __future__ import annotations

import asyncio
import datetime as dt
import gzip
import ssl
import warnings
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import brotli
import pytest
import trustme
import zstandard
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from crawlspace.clock import SystemClock
from crawlspace.exchange import FetchError, FetchRequest, FetchResult, Truncated
from crawlspace.fetch import FetchSettings, HttpFetcher, NetworkSettings
from crawlspace.fetch.limits import MIB
from crawlspace.fetch.response import MAX_CHUNKS, MAX_INTERIM, ResponseReader
from crawlspace.states import UrlState

LIMITS = FetchSettings(max_body=MIB)
ZEROS = bytes(8 * MIB)


def bare(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


BOMBS = {
    "gzip": gzip.compress(ZEROS),
    "deflate": bare(ZEROS),
    "br": brotli.compress(ZEROS, quality=4),
    "zstd": zstandard.compress(ZEROS),
    "gzip, gzip": gzip.compress(gzip.compress(ZEROS)),
    "gzip of members": gzip.compress(bytes(64 * 1024)) * 128,
}


def read(raw: bytes, limits: FetchSettings = LIMITS) -> ResponseReader:
    reader = ResponseReader(limits)
    for start in range(0, len(raw), 65_536):
        if reader.feed(raw[start : start + 65_536]):
            break
    else:
        reader.lost(clean=True)
    return reader


def answer(body: bytes, *fields: bytes, status: bytes = b"200 OK") -> bytes:
    lines = b"".join(field + b"\r\n" for field in fields)
    return b"HTTP/1.1 " + status + b"\r\n" + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body


# -- row 6: bombs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coding", BOMBS)
@pytest.mark.parametrize("status", [b"200 OK", b"301 Moved", b"404 No"])
def test_row_6_a_bomb_gives_no_more_than_the_cap_whatever_its_status(coding: str, status: bytes) -> None:
    fields = (b"Content-Encoding: " + coding.partition(" of ")[0].encode(), b"Location: /x")
    reader = read(answer(BOMBS[coding], *fields, status=status))
    assert reader.done
    assert reader.truncated is Truncated.LENGTH
    assert len(reader.body) <= LIMITS.max_body
    assert not reader.reusable


def test_row_6_a_bomb_in_a_later_chunk_is_cut_too() -> None:
    bomb = BOMBS["gzip"]
    chunks = b"".join(b"%x\r\n" % len(part) + part + b"\r\n" for part in (bomb[:20], bomb[20:], b"x" * 10))
    reader = read(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    assert reader.truncated is Truncated.LENGTH
    assert len(reader.body) <= LIMITS.max_body


def test_row_6_three_codings_on_top_of_each_other_are_not_undone() -> None:
    body = gzip.compress(gzip.compress(gzip.compress(b"x")))
    reader = read(answer(body, b"Content-Encoding: gzip, gzip, gzip"))
    assert (reader.error, reader.body) == (FetchError.DECODING, body)


# -- row 7: endless and slow bodies ---------------------------------------------------------------------------------


def fetched(answers: Callable[[asyncio.StreamWriter], Any], **limits: Any) -> FetchResult:
    """One request to a server that does this with its connection."""

    async def main() -> FetchResult:
        async with _serving(answers) as port:
            network = NetworkSettings(allow=["127.0.0.1"])
            fetcher = HttpFetcher(FetchSettings(**limits), network, SystemClock(), user_agent="t (+x)")
            try:
                return await asyncio.wait_for(fetcher.fetch(FetchRequest(f"http://127.0.0.1:{port}/")), 30)
            finally:
                await fetcher.close()

    return asyncio.run(main())


@asynccontextmanager
async def _serving(
    answers: Callable[[asyncio.StreamWriter], Any],
    asked: list[bytes] | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    tasks: set[asyncio.Task[Any]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                head = await reader.readuntil(b"\r\n\r\n")
                if asked is not None:
                    asked.append(head)
                await answers(writer)
        finally:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError, asyncio.CancelledError):
                await writer.wait_closed()

    async with await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls) as server:
        yield server.sockets[0].getsockname()[1]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _trickle(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


async def _endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"4000\r\n" + bytes(0x4000) + b"\r\n")
        await writer.drain()


async def _silent(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx")
    await asyncio.sleep(60)


def test_row_7_a_trickle_ends_by_its_rate_and_by_the_total_time() -> None:
    slow = fetched(_trickle, min_rate_after=0.3)
    assert (slow.error, slow.truncated) == (FetchError.TOO_SLOW, Truncated.TIME)
    late = fetched(_trickle, timeout=0.4)
    assert (late.error, late.truncated) == (FetchError.TOTAL_TIMEOUT, Truncated.TIME)


def test_row_7_silence_ends_by_the_idle_time() -> None:
    result = fetched(_silent, idle_timeout=0.3)
    assert (result.error, result.body) == (FetchError.IDLE_TIMEOUT, b"x")


def test_row_7_an_endless_body_is_cut_at_the_cap() -> None:
    result = fetched(_endless, max_body=MIB, max_wire=2 * MIB)
    assert (result.error, result.truncated, len(result.body)) == (None, Truncated.LENGTH, MIB)


@pytest.mark.parametrize(
    ("raw", "error", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", FetchError.RESET, b"abc"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", FetchError.RESET, b"abc"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", None, b"ab"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc", FetchError.PROTOCOL, b""),
    ],
)
def test_row_7_a_length_that_lies_is_told_and_ends_the_connection(
    raw: bytes, error: FetchError | None, body: bytes
) -> None:
    reader = read(raw)
    assert (reader.error, reader.body, reader.reusable) == (error, body, False)


# -- row 8: floods of headers ---------------------------------------------------------------------------------------


def _with_fields(n: int) -> bytes:
    return answer(b"", *(b"X-%d: y" % number for number in range(n - 1)))


def _with_line(length: int) -> bytes:
    return answer(b"", b"X: " + b"y" * (length - len(b"X: \r")))


def _with_head(length: int) -> bytes:
    empty = answer(b"", *(b"X: " + b"y" * 7000 for _ in range(9)), b"Y: ")
    return empty.replace(b"Y: ", b"Y: " + b"z" * (length - len(empty)))


def _with_interim(n: int) -> bytes:
    return b"HTTP/1.1 103 Early\r\n\r\n" * n + answer(b"")


def _with_chunks(n: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * n + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("make", "limit", "more"),
    [
        (_with_fields, LIMITS.max_headers, 1),
        (_with_line, LIMITS.max_line, 1),
        (_with_head, LIMITS.max_head, 1),
        (_with_interim, MAX_INTERIM, 1),
        (_with_chunks, MAX_CHUNKS - 100, 20_000),  # to within one piece of 64 KiB, and a cut chunk counts twice
    ],
)
def test_row_8_what_is_beyond_a_limit_is_too_much(make: Callable[[int], bytes], limit: int, more: int) -> None:
    assert read(make(limit)).error is None
    refused = read(make(limit + more))
    assert refused.error in (FetchError.HEAD_TOO_LARGE, FetchError.PROTOCOL)
    assert not refused.reusable


# -- row 9: redirects -----------------------------------------------------------------------------------------------


def test_row_9_circles_end_and_a_chain_ends_at_its_limit(web: Any) -> None:
    web.page("http://a.test/", "/self", "/one", "/chain0")
    web.redirect("http://a.test/self", b"/self")
    web.redirect("http://a.test/one", b"/two")
    web.redirect("http://a.test/two", b"/one")
    for number in range(50):
        web.redirect(f"http://a.test/chain{number}", b"/chain%d" % (number + 1))
    web.crawl("http://a.test/")
    assert web.story("http://a.test/self").reason == "redirect_loop"
    assert web.story("http://a.test/one").state is UrlState.REDIRECTED
    assert web.story("http://a.test/two").state is UrlState.REDIRECTED
    assert len([url for url in web.urls if "chain" in url]) <= 11
    assert len([url for url in web.urls if url.endswith("/self")]) <= 6
    assert len(web.urls) == len(set(web.urls)) + len([url for url in web.urls if url.endswith("/self")]) - 1


def test_row_9_a_circle_that_a_cookie_opens_is_left_with_cookies_off(web: Any) -> None:
    def gate(head: bytes) -> bytes:
        if b"Cookie: pass=1" in head:
            return answer(b"inside")
        return answer(b"", b"Location: /gate", b"Set-Cookie: pass=1", status=b"302 Found")

    web.pages["http://a.test/gate"] = gate
    web.page("http://a.test/", "/gate")
    web.crawl("http://a.test/")
    assert web.story("http://a.test/gate").state is UrlState.DONE


# -- row 17: TLS ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["self-signed", "wrong host", "expired", "old version"])
def test_row_17_a_host_that_cannot_prove_itself_is_given_nothing(fault: str, tmp_path: Path) -> None:
    trusted, stranger = trustme.CA(), trustme.CA()
    ca_file = tmp_path / "ca.pem"
    trusted.cert_pem.write_to_path(str(ca_file))
    past = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    leaf = {
        "self-signed": lambda: stranger.issue_cert("a.test"),
        "wrong host": lambda: trusted.issue_cert("b.test"),
        "expired": lambda: trusted.issue_cert("a.test", not_after=past),
        "old version": lambda: trusted.issue_cert("a.test"),
    }[fault]()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    leaf.configure_cert(context)
    if fault == "old version":
        context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # as everybody should know
            context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
            context.maximum_version = ssl.TLSVersion.TLSv1_1
    asked: list[bytes] = []

    async def answered(writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"ok", b"Connection: close"))
        await writer.drain()

    async def main() -> tuple[FetchResult, FetchResult]:
        # What a server says of a handshake that failed is none of ours.
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        async with _serving(answered, asked, context) as port:
            names = {f"{name}:{port}": f"127.0.0.1:{port}" for name in ("a.test", "c.test")}
            network = NetworkSettings(allow=["127.0.0.1"], resolve=names)
            settings = FetchSettings(ca_file=str(ca_file), tls_unverified=[f"https://c.test:{port}"])
            fetcher = HttpFetcher(settings, network, SystemClock(), user_agent="t (+x)")
            try:
                refused = await fetcher.fetch(FetchRequest(f"https://a.test:{port}/"))
                excepted = await fetcher.fetch(FetchRequest(f"https://c.test:{port}/"))
            finally:
                await fetcher.close()
            return refused, excepted

    refused, excepted = asyncio.run(main())
    assert (refused.error, refused.body) == (FetchError.TLS, b"")
    if fault == "old version":
        assert (excepted.error, asked) == (FetchError.TLS, [])
    else:
        assert len(asked) == 1, "only the origin that is excepted was asked for anything"
        assert excepted.body == b"ok"
        assert "not checked" in excepted.detail


def test_row_17_nobody_is_asked_whether_a_certificate_was_revoked(tmp_path: Path) -> None:
    """An authority learns nothing of a crawl, though the certificate says where it could be asked."""
    trusted = trustme.CA()
    ca_file = tmp_path / "ca.pem"
    trusted.cert_pem.write_to_path(str(ca_file))
    asked: list[bytes] = []
    authority: list[bytes] = []

    async def answered(writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"ok", b"Connection: close"))
        await writer.drain()

    async def main() -> FetchResult:
        async with _serving(answered, authority) as revocations:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            _issue(trusted, "a.test", f"http://127.0.0.1:{revocations}/", tmp_path, context)
            async with _serving(answered, asked, context) as port:
                network = NetworkSettings(allow=["127.0.0.1"], resolve={f"a.test:{port}": f"127.0.0.1:{port}"})
                fetcher = HttpFetcher(
                    FetchSettings(ca_file=str(ca_file)), network, SystemClock(), user_agent="t (+x)"
                )
                try:
                    return await fetcher.fetch(FetchRequest(f"https://a.test:{port}/"))
                finally:
                    await fetcher.close()

    result = asyncio.run(main())
    assert (result.error, result.body, len(asked)) == (None, b"ok", 1)
    assert authority == []


def _issue(ca: trustme.CA, name: str, authority: str, folder: Path, context: ssl.SSLContext) -> None:
    """A certificate that names an authority to be asked about it, in both ways there are."""
    issuer = x509.load_pem_x509_certificate(ca.cert_pem.bytes())
    signer = serialization.load_pem_private_key(ca.private_key_pem.bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    place = x509.UniformResourceIdentifier(authority)
    ocsp = x509.AccessDescription(x509.AuthorityInformationAccessOID.OCSP, place)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=True)
        .add_extension(x509.AuthorityInformationAccess([ocsp]), critical=False)
        .add_extension(
            x509.CRLDistributionPoints([x509.DistributionPoint([place], None, None, None)]), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    chain = folder / "chain.pem"
    chain.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context.load_cert_chain(chain)
