"""Responses read from bytes, against public cases and in any division."""

from __future__ import annotations

import base64
import gzip
import json
import random
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.exchange import FetchError, Truncated
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.response import MAX_CHUNKS, MAX_INTERIM, ResponseReader

LIMITS = FetchSettings()
OK = b"HTTP/1.1 200 OK\r\n"

ACCEPTED = {
    "HTTP/1.1 with keep-alive disabled and 204 status": "what follows the end is dropped with the connection",
    "HTTP/1.1 with keep-alive disabled, content-length": "what follows the end is dropped with the connection",
    "Only LFs present and no body": "bare line feeds end lines",
    "Only LFs present": "bare line feeds end lines",
    "No carriage ret": "bare line feeds end lines",
    "Spaces in header name": "a line that is no field is left out",
    "Trailing space on chunked body": "blanks behind a chunk size do no harm",
}
"""Refused by a strict parser; read here, for the reason given."""
REFUSED = {
    "Bare CR after response line (lenient)": "a bare carriage return ends no line",
    "Invalid HTTP version (lenient)": "there is no HTTP/5.6",
}
"""Taken by a lenient parser; refused here, for the reason given."""


def cases() -> list[pytest.param]:
    path = Path(__file__).resolve().parents[1] / "data" / "encoding-http" / "http-responses.json"
    return [pytest.param(row, id=f"{row['name']}") for row in json.loads(path.read_text())]


def read(
    raw: bytes, sizes: list[int] | None = None, bodiless: bool = False, limits: FetchSettings = LIMITS
) -> ResponseReader:
    """Read a response that comes in pieces of these sizes and ends with the connection."""
    reader = ResponseReader(limits, bodiless)
    at = 0
    for size in sizes or []:
        if reader.done or at >= len(raw):
            break
        reader.feed(raw[at : at + size])
        at += size
    if not reader.done and at < len(raw):
        reader.feed(raw[at:])
    reader.lost(clean=True)
    return reader


def facts(reader: ResponseReader) -> tuple[object, ...]:
    return (
        reader.status,
        reader.headers,
        reader.head,
        reader.payload,
        reader.body,
        reader.error,
        reader.truncated,
        reader.detail,
    )


@pytest.mark.parametrize("row", cases())
def test_a_response_gets_the_verdict_of_the_reference_parser(row: dict[str, object]) -> None:
    """A head that is merely cut off by the end of the data is no violation: it ends as a reset."""
    reader = read(base64.b64decode(str(row["raw_b64"])))
    expected = (row["ok"] or row["name"] in ACCEPTED) and row["name"] not in REFUSED
    assert (reader.error is not FetchError.PROTOCOL) == expected, reader.detail


@pytest.mark.parametrize("row", cases())
def test_any_division_of_a_response_reads_the_same(row: dict[str, object]) -> None:
    raw = base64.b64decode(str(row["raw_b64"]))
    chance = random.Random(str(row["name"]))
    whole = facts(read(raw))
    assert facts(read(raw, [1] * len(raw))) == whole
    for _ in range(20):
        assert facts(read(raw, [chance.randint(1, 40) for _ in raw])) == whole


def test_lengths_are_read_as_browsers_read_them(data: Path) -> None:
    """The length rule of the Fetch Standard: equal values count once, junk does not count, differences are errors."""
    for case in json.loads((data / "content-length.json").read_text())["cases"]:
        reader = read(OK + case["headers"].encode() + b"\r\n\r\n" + b"x" * 42)
        kept = None if reader.error else len(reader.body)
        assert kept == case["read"], case


# -- framing ----------------------------------------------------------------------------------------------------

chunk_lists = st.lists(st.binary(min_size=1, max_size=40), max_size=5)
field_lists = st.lists(
    st.tuples(st.sampled_from([b"X-A", b"x-b", b"Server"]), st.from_regex(rb"[!-~]{0,12}", fullmatch=True)),
    max_size=4,
)


@st.composite
def responses(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """A whole response: its head, its body as sent, and its content."""
    fields = b"".join(name + b": " + value + b"\r\n" for name, value in draw(field_lists))
    chunks = draw(chunk_lists)
    content = b"".join(chunks)
    match draw(st.sampled_from(["length", "chunked", "trailer", "close"])):
        case "length":
            return OK + fields + b"Content-Length: %d\r\n\r\n" % len(content), content, content
        case "close":
            return OK + fields + b"\r\n", content, content
        case framing:
            trailer = b"X-T: 1\r\n" if framing == "trailer" else b""
            sent = (
                b"".join(b"%x;a=b\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n" + trailer + b"\r\n"
            )
            return OK + fields + b"Transfer-Encoding: chunked\r\n\r\n", sent, content


@given(responses(), st.lists(st.integers(1, 30), max_size=60))
def test_every_byte_of_a_response_is_kept_in_its_place(
    response: tuple[bytes, bytes, bytes], sizes: list[int]
) -> None:
    head, sent, content = response
    reader = read(head + sent, sizes)
    assert (reader.error, reader.truncated) == (None, None)
    assert (reader.head, reader.payload, reader.body) == (head, sent, content)


@given(responses(), st.binary(min_size=1, max_size=30), st.lists(st.integers(1, 30), max_size=60))
def test_what_stands_behind_a_response_is_none_of_it_and_ends_the_connection(
    response: tuple[bytes, bytes, bytes], rubbish: bytes, sizes: list[int]
) -> None:
    head, sent, content = response
    whole = b"Content-Length" in head or b"chunked" in head
    reader = ResponseReader(LIMITS)
    reader.feed(head + sent + rubbish)
    if whole:
        assert reader.done
        assert not reader.reusable
        assert (reader.payload, reader.body) == (sent, content)
    else:
        assert not reader.done


@given(st.binary(max_size=200), st.lists(st.integers(1, 20), max_size=200))
def test_no_bytes_make_the_reader_raise(rubbish: bytes, sizes: list[int]) -> None:
    for start in (b"", OK, OK + b"\r\n", OK + b"Transfer-Encoding: chunked\r\n\r\n", b"HTTP/1.1 100 \r\n\r\n"):
        assert read(start + rubbish, sizes).done


@pytest.mark.parametrize(
    ("start", "reusable"),
    [
        (b"HTTP/1.1 200 OK\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: Keep-Alive\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: x, Close\r\n", False),
        (b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nConnection: close\r\n", False),
        (b"HTTP/1.0 200 OK\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", True),
        (b"HTTP/1.1 200 OK\r\nno field\r\n", False),
    ],
)
def test_a_connection_is_used_again_only_if_the_server_means_it(start: bytes, reusable: bool) -> None:
    reader = ResponseReader(LIMITS)
    assert reader.feed(start + b"Content-Length: 2\r\n\r\nok")
    assert reader.reusable is reusable


@pytest.mark.parametrize(
    ("status_line", "bodiless"),
    [(b"HTTP/1.1 204 No\r\n", False), (b"HTTP/1.1 304 No\r\n", False), (b"HTTP/1.1 200 OK\r\n", True)],
)
@pytest.mark.parametrize("framing", [b"Content-Length: 9\r\n", b"Transfer-Encoding: chunked\r\n", b""])
def test_answers_without_a_body_end_with_their_head(status_line: bytes, bodiless: bool, framing: bytes) -> None:
    reader = ResponseReader(LIMITS, bodiless)
    assert reader.feed(status_line + framing + b"\r\n")
    assert (reader.error, reader.body, reader.reusable) == (None, b"", True)


@pytest.mark.parametrize(
    ("raw", "error", "truncated", "body"),
    [
        (b"", FetchError.RESET, None, b""),
        (b"HTTP/1.1 200", FetchError.RESET, None, b""),
        (OK + b"X: y\r\n", FetchError.RESET, None, b""),
        (b"SSH-2.0-OpenSSH", FetchError.PROTOCOL, None, b""),
        (OK + b"Content-Length: 500\r\n\r\n<html>", FetchError.RESET, Truncated.DISCONNECT, b"<html>"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", FetchError.RESET, Truncated.DISCONNECT, b"abc"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nx", FetchError.PROTOCOL, Truncated.DISCONNECT, b"abc"),
        (OK + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc", FetchError.PROTOCOL, None, b""),
        (OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", FetchError.PROTOCOL, None, b""),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", FetchError.PROTOCOL, None, b""),
        (b"HTTP/1.1 099 Odd\r\n\r\n", FetchError.PROTOCOL, None, b""),
    ],
)
def test_what_broke_off_is_kept_and_named(
    raw: bytes, error: FetchError, truncated: Truncated | None, body: bytes
) -> None:
    reader = read(raw)
    assert (reader.error, reader.truncated, reader.body) == (error, truncated, body)
    assert reader.detail


def test_a_body_without_a_length_is_whole_only_when_the_connection_ends_in_good_order() -> None:
    for clean, error in ((True, None), (False, FetchError.RESET)):
        reader = ResponseReader(LIMITS)
        assert not reader.feed(OK + b"\r\nabc")
        reader.lost(clean)
        assert (reader.body, reader.error, reader.reusable) == (b"abc", error, False)


def test_time_that_runs_out_is_a_truncation_once_a_head_was_read() -> None:
    for sent, truncated in ((OK, None), (OK + b"\r\nabc", Truncated.TIME)):
        reader = ResponseReader(LIMITS)
        reader.feed(sent)
        reader.overdue(FetchError.IDLE_TIMEOUT, "silent")
        assert (reader.done, reader.error, reader.truncated) == (True, FetchError.IDLE_TIMEOUT, truncated)


# -- heads ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "name", "values"),
    [
        (b"A: 1\r\nA: 2", "a", ["1", "2"]),
        (b"A: one\r\n two", "a", ["one two"]),
        (b" folded into nothing\r\nA: 1", "a", ["1"]),
        (b"A : 1", "a", ["1"]),
        (b"no field\r\nA: 1", "a", ["1"]),
        (b": 1\r\nA: 2", "a", ["2"]),
        (b"A: a\x01b", "a", ["a\x01b"]),
        (b"A: \xe4", "a", ["\xe4"]),
        (b"Content-Length: 0\r\nContent-Length: 0", "content-length", ["0"]),
        (b"Content-Length: zero", "content-length", []),
    ],
)
def test_odd_header_lines_are_read_as_browsers_do(line: bytes, name: str, values: list[str]) -> None:
    raw = OK + line + b"\r\n\r\n"
    reader = read(raw)
    assert reader.error is None
    assert reader.headers.all(name) == values
    assert reader.head == raw


def test_blank_lines_and_interim_responses_in_front_are_left_out() -> None:
    head = OK + b"Content-Length: 2\r\n\r\n"
    reader = read(b"\r\n\n" + b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n\r\n" + head + b"ok", [1] * 200)
    assert (reader.status, reader.head, reader.body) == (200, head, b"ok")
    assert reader.headers.get("link") == ""


@pytest.mark.parametrize(("interim", "error"), [(MAX_INTERIM, None), (MAX_INTERIM + 1, FetchError.PROTOCOL)])
def test_interim_responses_are_counted(interim: int, error: FetchError | None) -> None:
    raw = b"HTTP/1.1 100 Continue\r\n\r\n" * interim + OK + b"Content-Length: 2\r\n\r\nok"
    assert read(raw).error is error


SMALL = FetchSettings(max_head=400, max_line=100, max_headers=5)


@pytest.mark.parametrize(
    ("head", "error"),
    [
        (OK + b"A: " + b"x" * 95 + b"\r\n\r\n", None),
        (OK + b"A: " + b"x" * 97 + b"\r\n\r\n", FetchError.HEAD_TOO_LARGE),
        (OK + b"A: 1\r\n" * 5 + b"\r\n", None),
        (OK + b"A: 1\r\n" * 6 + b"\r\n", FetchError.HEAD_TOO_LARGE),
        ((OK + (b"A: " + b"x" * 85 + b"\r\n") * 4)[:398] + b"\n\n", None),
        ((OK + (b"A: " + b"x" * 85 + b"\r\n") * 5)[:399] + b"\n\n", FetchError.HEAD_TOO_LARGE),
        (b"\r\n" * 201 + OK + b"\r\n", FetchError.HEAD_TOO_LARGE),
        (OK + b"A: " + b"x" * 500, FetchError.HEAD_TOO_LARGE),
    ],
)
def test_heads_are_limited_in_lines_fields_and_bytes(head: bytes, error: FetchError | None) -> None:
    for sizes in ([], [1] * len(head)):
        reader = read(head, sizes, limits=SMALL)
        assert reader.error is error
        assert bool(reader.status) is (error is None)


# -- caps -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framing", ["length", "close", "chunked"])
@pytest.mark.parametrize(("size", "truncated"), [(10, None), (11, Truncated.LENGTH)])
def test_a_body_is_cut_at_its_cap_and_that_is_no_error(framing: str, size: int, truncated: Truncated | None) -> None:
    content = b"0123456789X"[:size]
    raw = {
        "length": OK + b"Content-Length: %d\r\n\r\n%s" % (size, content),
        "close": OK + b"\r\n" + content,
        "chunked": OK + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (size, content),
    }[framing]
    for sizes in ([], [1] * len(raw)):
        reader = read(raw, sizes, limits=FetchSettings(max_body=10))
        assert (reader.error, reader.truncated, reader.body) == (None, truncated, content[:10])
        assert reader.reusable is (truncated is None and framing != "close")


def test_the_wire_has_a_cap_of_its_own() -> None:
    raw = OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 100
    reader = read(raw, limits=FetchSettings(max_wire=60))
    assert (reader.error, reader.truncated) == (None, Truncated.LENGTH)
    assert (reader.body, reader.payload) == (b"a" * 10, b"1\r\na\r\n" * 10)


@pytest.mark.parametrize(
    "framing",
    [
        b"1\r\na\r\n" * (MAX_CHUNKS + 1),
        b"1;" + b"x" * 70_000,
        b"0\r\n" + b"A: 1\r\n" * 12_000,
    ],
    ids=["chunks", "extension", "trailers"],
)
def test_framing_that_goes_on_without_content_is_given_up(framing: bytes) -> None:
    reader = ResponseReader(LIMITS)
    reader.feed(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    reader.feed(framing)
    assert (reader.done, reader.error) == (True, FetchError.PROTOCOL)


def test_a_body_behind_a_transfer_coding_is_decoded() -> None:
    coded = zlib.compress(b"hello")
    raw = OK + b"Transfer-Encoding: deflate, chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(coded), coded)
    assert read(raw).body == b"hello"


@pytest.mark.parametrize(
    ("coding", "content", "error", "truncated"),
    [
        (b"gzip", b"plain", None, None),
        (b"gzip, gzip, gzip", b"plain", FetchError.DECODING, None),
        (b"compress", b"plain", FetchError.DECODING, None),
        (b"gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03K", FetchError.DECODING, Truncated.DISCONNECT),
        (b"identity", b"plain", None, None),
        (b"", b"plain", None, None),
        (b"gzip", b"", None, None),
    ],
)
def test_codings_that_cannot_be_undone_leave_the_body_and_say_so(
    coding: bytes, content: bytes, error: FetchError | None, truncated: Truncated | None
) -> None:
    reader = read(OK + b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s" % (coding, len(content), content))
    assert (reader.error, reader.truncated) == (error, truncated)
    assert reader.payload == content
    if truncated is None:
        assert reader.body == content


_TEXT = b"some words, " * 40
_PACKED = gzip.compress(_TEXT, mtime=0)


@pytest.mark.parametrize(
    "content",
    [
        _PACKED,
        gzip.compress(b"", mtime=0),
        gzip.compress(random.Random(1).randbytes(70_000), mtime=0),
        gzip.compress(b"x" * 300_000, mtime=0),
        _PACKED + _PACKED,
        _PACKED + b"junk",
        _PACKED[:-1],
        _PACKED[:-9] + b"\0" * 9,
        _PACKED[:-8] + b"\0" * 4 + _PACKED[-4:],
        _PACKED[:-4] + b"\0" * 4,
        _PACKED[:20] + b"\xff" * 20 + _PACKED[40:],
        _PACKED[:10],
        b"\x1f\x8b",
        b"plain",
    ],
)
@pytest.mark.parametrize("max_body", [LIMITS.max_body, len(_TEXT), len(_TEXT) - 1])
@pytest.mark.parametrize(
    "framing", [b"Content-Length: %d\r\n\r\n%s", b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"]
)
def test_a_packed_body_reads_the_same_whether_it_comes_at_once_or_not(
    content: bytes, max_body: int, framing: bytes
) -> None:
    raw = OK + b"Content-Encoding: gzip\r\n" + framing % (len(content), content)
    limits = FetchSettings(max_body=max_body)
    whole, divided = read(raw, limits=limits), read(raw, [len(raw) - 5, 2], limits=limits)
    if whole.truncated is not Truncated.LENGTH:  # of what is cut, more or less has come
        assert whole.payload == divided.payload
    assert (whole.body, whole.error, whole.truncated) == (divided.body, divided.error, divided.truncated)
    assert (whole.detail, whole.reusable) == (divided.detail, divided.reusable)
    assert len(whole.body) <= max_body
