"""llhttp's reading of response heads and chunks (RFC 9112), and a second, patient reading of heads it refuses.

The patient reading does what browsers do: header lines that mean nothing are left out, folded lines are joined,
equal lengths count once, lengths that are no numbers do not count. It never guesses where two answers are possible:
lengths that differ, or a length beside a transfer coding, stay an error (RFC 9112, section 11.2).
"""

from __future__ import annotations

import re

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct

from crawlspace.exchange import Headers

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_CHUNK = b"1\r\nx"
_STRIDE = 4096


class Malformed(Exception):
    """These bytes are no HTTP response; the message says why."""


class Framed(Struct, frozen=True):
    """A head that was read, and how its body is framed."""

    text: bytes
    """The head as it came, to its blank line."""
    status: int
    headers: Headers
    strict: bool
    """It was read without the patient reading."""
    keep: bool
    """The server means to leave the connection open."""
    length: int | None
    """Bytes of the body; None where it ends with the connection, or is chunked."""
    chunked: bool
    codings: tuple[str, ...]
    """What is to be undone, in the order in which it was applied."""


class _Fields:
    """The fields of a head, as the parser finds them."""

    __slots__ = ("fields",)

    def __init__(self) -> None:
        self.fields: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name, value.rstrip()))  # blanks behind a value are none of it


class _Content:
    """The content of chunks, as the parser finds it."""

    __slots__ = ("chunks", "complete", "content", "messages")

    def __init__(self) -> None:
        self.content: list[bytes] = []
        self.chunks = 0
        self.messages = 0
        self.complete = False

    def on_message_begin(self) -> None:
        self.messages += 1

    def on_body(self, content: bytes) -> None:
        if not self.complete:
            self.chunks += 1
            self.content.append(content)

    def on_message_complete(self) -> None:
        self.complete = True


class Head:
    """A head that llhttp read."""

    __slots__ = ("headers", "status", "strict", "text")

    def __init__(self, text: bytes, strict: bool) -> None:
        self.text = text
        """The bytes that llhttp read: the head itself, or its patient reading."""
        self.strict = strict
        """It was read without the patient reading."""
        found = _Fields()
        parser = _parser(found, lenient=not strict)
        parser.feed_data(text)
        self.status: int = parser.get_status_code()
        self.headers = Headers(tuple(found.fields))

    def framed(self, raw: bytes) -> Framed:
        """What it says; `raw` is the head as it came."""
        headers = self.headers
        transfer = tokens(headers, "transfer-encoding")
        length = headers.get("content-length")
        chunked = bool(transfer) and transfer[-1] == "chunked"
        applied = tokens(headers, "content-encoding") + (transfer[:-1] if chunked else ())
        return Framed(
            raw,
            self.status,
            headers,
            self.strict,
            self._keeps_alive(),
            int(length) if length and not transfer else None,
            chunked,
            applied,
        )

    def _keeps_alive(self) -> bool:
        """Whether the server means to leave the connection open (RFC 9112, section 9.3)."""
        wishes = tokens(self.headers, "connection")
        return "close" not in wishes and (self.text.startswith(b"HTTP/1.1") or "keep-alive" in wishes)


class OddChunks:
    """A chunked body from the beginning of a chunk on, read from pieces of any size."""

    def __init__(self, strict: bool, within: bool) -> None:
        """`strict` is how the head was read; trailers are fields too.

        With `within`, the line that ends a chunk comes first.
        """
        self._strict = strict
        self._within = within
        self._events = _Content()
        self._parser = _chunk_parser(self._events, strict, within)
        self._events.chunks = 0
        self._refused = False
        self._tail = b"" if within else b"\r\n"
        """The last bytes seen, those of the line end in front at first."""

    @property
    def complete(self) -> bool:
        return self._events.complete

    @property
    def count(self) -> int:
        """Chunks so far; one that came in several pieces counts several times."""
        return self._events.chunks

    def feed(self, data: bytes) -> tuple[list[bytes], str]:
        """The content in `data`, and what is wrong with its framing, or ""."""
        events = self._events
        content = events.content = []
        problem = ""
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._refused = True
            problem = "" if events.complete else str(error)
        self._tail = (self._tail + data[-len(_LAST_CHUNK) :])[-len(_LAST_CHUNK) :]
        return content, problem

    def length(self, wire: bytes) -> int:
        """How many bytes of `wire`, all that was fed, the body takes, once it is complete or a problem was told.

        The byte that is the problem counts. llhttp does not tell where it stopped, so unless the last chunk ends the
        input, the place is sought by reading again.
        """
        if self._tail == _LAST_CHUNK and not self._refused and self._events.messages == 1:
            return len(wire)
        coarse = self._last_before_the_end(wire, 0, _STRIDE)
        return self._last_before_the_end(wire, coarse, 1) + 1

    def _last_before_the_end(self, wire: bytes, start: int, stride: int) -> int:
        """Reading on from `start` in strides: where the stride begins that ends the body, or breaks it."""
        events = _Content()
        parser = _chunk_parser(events, self._strict, self._within)
        parser.feed_data(wire[:start])
        for at in range(start, len(wire), stride):
            try:
                parser.feed_data(wire[at : at + stride])
            except (HttpParserError, HttpParserUpgrade):
                return at
            if events.complete:
                return at
        return len(wire) - 1


def tokens(headers: Headers, name: str) -> tuple[str, ...]:
    """The comma-separated words of a field, in order and in lower case."""
    return words(", ".join(headers.all(name)))


def words(value: str) -> tuple[str, ...]:
    """The words between the commas of a value, in lower case."""
    return tuple(word.strip() for word in value.lower().split(",") if word.strip())


def read_head(raw: bytes) -> Head:
    """Read a head from its status line to its blank line; raises `Malformed`."""
    try:
        head = Head(raw, strict=True)
    except (HttpParserError, HttpParserUpgrade):
        head = _read_patiently(raw)
    if head.status < 100 or head.status == 101:
        raise Malformed(f"status {head.status} where none was asked for")
    return head


def objection(beginning: bytes) -> str:
    """What is wrong with the beginning of a head, or "" when it could have become one."""
    try:
        _parser(_Fields(), lenient=False).feed_data(beginning)
    except (HttpParserError, HttpParserUpgrade) as error:
        return str(error)
    return ""


def _read_patiently(raw: bytes) -> Head:
    try:
        return Head(_legible(raw), strict=False)
    except (HttpParserError, HttpParserUpgrade) as error:
        raise Malformed(str(error)) from error


def _legible(raw: bytes) -> bytes:
    status_line, *lines = raw.rstrip(b"\r\n").split(b"\n")
    fields: list[bytes] = []
    lengths: list[bytes] = []
    for line in lines:
        name, colon, value = line.rstrip(b"\r").partition(b":")
        if line[:1] in (b" ", b"\t"):
            if fields:
                fields[-1] += b" " + line.strip()
        elif not colon or not _TOKEN.fullmatch(name.rstrip(b" \t")):
            continue
        elif name.rstrip(b" \t").lower() == b"content-length":
            lengths += value.split(b",")
        else:
            fields.append(name.rstrip(b" \t") + b": " + value.strip())
    fields += _length_field(lengths)
    return b"\r\n".join([status_line.rstrip(b"\r"), *fields, b"", b""])


def _length_field(lengths: list[bytes]) -> list[bytes]:
    """One length, none where the only value is no number; raises `Malformed` where they differ."""
    values = {value.strip(b" \t") for value in lengths}
    if len(values) > 1:
        raise Malformed("lengths that differ")
    return [b"Content-Length: " + value for value in values if value.isdigit()]


def _parser(events: _Fields | _Content, lenient: bool) -> HttpResponseParser:
    parser = HttpResponseParser(events)
    parser.set_dangerous_leniencies(
        lenient_headers=lenient, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
    )
    return parser


def _chunk_parser(events: _Content, strict: bool, within: bool) -> HttpResponseParser:
    """A parser behind a head which says no more than that chunks follow, or behind the content of a chunk."""
    parser = _parser(events, lenient=not strict)
    parser.feed_data(_CHUNKED_HEAD + _CHUNK if within else _CHUNKED_HEAD)
    return parser
