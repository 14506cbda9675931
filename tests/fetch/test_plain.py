"""Plain heads are read by one search; llhttp, which reads all others, is the judge of what that finds."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawlspace.exchange import Headers, HeadText
from crawlspace.fetch import response
from crawlspace.fetch.grammar import Malformed, read_head
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.plain import plain_head
from crawlspace.fetch.response import ResponseReader

OK = b"HTTP/1.1 200 OK\r\n"
NAMES = [
    b"Content-Length",
    b"content-length",
    b"Transfer-Encoding",
    b"Content-Encoding",
    b"Connection",
    b"Upgrade",
    b"X-\xe9",
    b"Set-Cookie",
    b"",
    b" X",
]
VALUES = [
    b"5",
    b"+5",
    b"5, 5",
    b"chunked",
    b"gzip, chunked",
    b"gzip , br",
    b"close",
    b"Keep-Alive",
    b"upgrade, x",
    b"x, close",
    b"closed",
    b"",
]
lines = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from([b":", b": ", b":\t ", b" :"]),
    st.sampled_from(VALUES) | st.binary(max_size=6),
    st.sampled_from([b"\r\n"] * 8 + [b" \r\n", b"\n", b"\r", b"\r\n "]),
).map(b"".join)
heads = st.tuples(
    st.sampled_from(
        [OK] * 4 + [b"HTTP/1.1 404 \r\n", b"HTTP/1.1 200\r\n", b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 200 \xe9\r\n"]
    ),
    st.lists(lines, max_size=4).map(b"".join),
).map(lambda parts: b"".join(parts) + b"\r\n")


@given(heads)
@example(OK + b"Upgrade: h2c\r\nConnection: Upgrade, Keep-Alive\r\nContent-Length: 5\r\n\r\n")
@example(OK + b"Content-Encoding: \xc9\r\n\r\n")
@example(OK + b"Content-Encoding:\r\nX: a\tb \t\r\nx: \xff\r\n\r\n")
def test_what_is_plain_is_read_as_llhttp_reads_it(raw: bytes) -> None:
    found = plain_head(raw)
    if found is None:
        return
    judged = read_head(found.text).framed(found.text)
    assert found.headers.raw == judged.headers.raw
    assert replace(found, headers=judged.headers) == judged


@pytest.mark.parametrize(
    "fields",
    [
        b"Server: nginx\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 5\r\nConnection: keep-alive\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\nUpgrade: h2\r\nConnection: Upgrade, Keep-Alive\r\n",
        b"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nServer: caf\xe9\r\n",
        b"",
    ],
)
def test_what_servers_send_is_plain(fields: bytes) -> None:
    """Else the search would be no gain, and nobody would notice."""
    found = plain_head(OK + fields + b"\r\nbody")
    assert found is not None
    assert found.text == OK + fields + b"\r\n"


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 103 Early\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\n",
        OK + b"A: 1\n\r\n",
        OK + b"A: 1\r\n b\r\n\r\n",
        OK + b"A : 1\r\n\r\n",
        OK + b"A: \x00\r\n\r\n",
        OK + b"A: 1\r\n",
        OK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
        OK + b"Content-Length: 5, 5\r\n\r\n",
        OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        OK + b"Content-Length: " + b"9" * 16 + b"\r\n\r\n",
    ],
)
def test_what_is_odd_is_left_to_llhttp(raw: bytes) -> None:
    assert plain_head(raw) is None


def test_the_public_cases_read_the_same_without_the_search(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    def read(raw: bytes) -> tuple[object, ...]:
        reader = ResponseReader(FetchSettings())
        reader.feed(raw)
        reader.lost(clean=True)
        facts = (reader.status, reader.headers.raw, reader.head, reader.payload, reader.body)
        return (*facts, reader.error, reader.truncated, reader.detail, reader.reusable)

    cases = [base64.b64decode(row["raw_b64"]) for row in json.loads((data / "http-responses.json").read_text())]
    found = [read(raw) for raw in cases]
    monkeypatch.setattr(response, "plain_head", lambda _: None)
    assert found == [read(raw) for raw in cases]
    assert sum(plain_head(raw) is not None for raw in cases) > 10


def test_the_text_of_a_head_gives_the_same_headers_as_its_fields() -> None:
    text = OK + b"Server:  a b \r\nSet-Cookie: a=1\r\nX-Empty:\r\nset-cookie: b=\xe9\r\nX-Server: c\r\n\r\n"
    kept = HeadText(text)
    fields = Headers(kept.raw)
    assert kept == fields
    assert hash(kept) == hash(fields)
    for name in ("server", "set-cookie", "x-empty", "x-server", "cookie", "ok", "missing"):
        assert kept.get(name, "none") == fields.get(name, "none")
        assert kept.all(name) == fields.all(name)
        assert kept.has_any({name, "other"}) == fields.has_any({name, "other"}) == bool(fields.all(name))


def test_a_head_that_no_reading_saves_is_malformed() -> None:
    with pytest.raises(Malformed):
        read_head(OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n")
