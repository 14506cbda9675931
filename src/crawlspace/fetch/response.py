"""One HTTP/1.1 response read from bytes as they come, without a socket (RFC 9112).

The grammar of heads and chunks is llhttp's, strict but for what real servers do and no one is harmed by: bare line
feeds, blanks behind a chunk size, and in a second reading header lines that mean nothing, which are left out, and
repeated equal lengths. Framing is decided here, because the archive needs every byte in its place. A connection is
used again only after a response that was read strictly and ended where it said.

However the bytes are cut into pieces, the same response comes out; caps hold to within one piece.
"""

from __future__ import annotations

from enum import Enum, auto

from crawlspace.exchange import FetchError, Headers, Truncated
from crawlspace.fetch.body import Decoder, at_once, codings
from crawlspace.fetch.chunks import Chunks, whole
from crawlspace.fetch.grammar import Framed, Malformed, objection, read_head
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.plain import plain_head
from crawlspace.fetch.types import Types

MAX_INTERIM = 20
"""Responses of class 1xx in front of the real one."""
MAX_CHUNKS = 100_000
"""Chunks of a body: 10 MiB in pieces of a hundred bytes."""

_NO_HEADERS = Headers()
_BODILESS = frozenset({204, 304})
_STARTS = (b"HTTP/", b"RTSP/", b"ICE/")


class _Framing(Enum):
    """How the end of a body is told (RFC 9112, section 6.3)."""

    NONE = auto()
    LENGTH = auto()
    CHUNKED = auto()
    CLOSE = auto()


_NONE, _LENGTH, _CHUNKED, _CLOSE = _Framing
"""A member by its class costs more than the rest of a comparison."""


class ResponseReader:
    """Takes bytes until `done`; then its fields say what came of the request.

    `bodiless` is set for the answer to HEAD, whose length speaks of another response (RFC 9110, section 9.3.2).
    With `types`, a successful answer of another type is cut behind its head.
    """

    # What one answer in a hundred sets is a default of the class, which costs an answer nothing.
    done = False
    reusable = False
    """The connection may carry another request."""
    received = 0
    """Bytes that came, whatever they were."""
    status = 0
    headers = _NO_HEADERS
    head = b""
    """From the status line to the blank line, byte for byte; interim responses are left out."""
    error: FetchError | None = None
    detail = ""
    truncated: Truncated | None = None
    _early = bytearray()
    """What came before the end of the head; never changed in place while it is this one."""
    _searched = 0
    _blank = 0
    _interim = 0
    _keep = False
    _framing = _NONE
    _left = 0
    """Bytes on the wire up to the body's end, or up to a cap where that comes first."""
    _capped = True
    """It is a cap that comes first, or the only end that is known."""
    _decoder: Decoder | None = None
    _chunks: Chunks | None = None
    _silent = 0
    """Bytes of framing since the last byte of content."""
    _size = 0

    def __init__(self, limits: FetchSettings, bodiless: bool = False, types: Types | None = None) -> None:
        self._limits = limits
        self._bodiless = bodiless
        self._types = types
        self._payload: list[bytes] = []
        self._content: list[bytes] = []

    @property
    def payload(self) -> bytes:
        """The body as it came, framing and content coding still on."""
        if len(self._payload) > 1:
            self._payload = [b"".join(self._payload)]
        return self._payload[0] if self._payload else b""

    @property
    def body(self) -> bytes:
        """The body decoded, up to the caps."""
        if self._decoder is not None:
            return self._decoder.body
        if self._content or self._framing is _CHUNKED:
            return b"".join(self._content)[: self._limits.max_body]
        return self.payload

    # -- what the connection tells ----------------------------------------------------------------------------

    def feed(self, data: bytes) -> bool:
        """Take the next bytes of the connection; True once the response is complete or given up."""
        self.received += len(data)
        if self.head:
            self._read_body(data)
            return self.done
        head = None if self._early else plain_head(data)
        if head is not None and self._fits(head.text):
            data = data[len(head.text) :]
            self._begin(head, data)
        else:
            rest = self._read_head(data)
            if rest is None:
                return self.done
            data = rest
        if not self.done and (data or self._framing is _NONE):
            self._read_body(data)
        return self.done

    def lost(self, clean: bool) -> None:
        """The connection has ended, in good order or by a failure."""
        if self.done:
            return
        if not self.head:
            self._lost_before_head()
        elif self._framing is _CLOSE and clean:
            self._complete(excess=True)
        else:
            self._stop(FetchError.RESET, "the connection ended before the body", Truncated.DISCONNECT)

    def broken(self, error: FetchError, detail: str) -> None:
        """What carries the response has failed, in a way that the response itself does not show."""
        if not self.done:
            self._stop(error, detail, Truncated.DISCONNECT if self.head else None)

    def overdue(self, error: FetchError, detail: str) -> None:
        """A time limit is over."""
        self._stop(error, detail, Truncated.TIME if self.head else None)

    # -- head -------------------------------------------------------------------------------------------------

    def _read_head(self, data: bytes) -> bytes | None:
        """Look for the end of the head; returns the bytes behind it, None while it has none."""
        seen: bytes | bytearray = data
        if self._early:
            self._early += data
            seen = self._early
        while True:
            seen = self._without_blank_lines(seen)
            if self.done:
                return None
            end = _end_of_head(seen, self._searched, self._limits.max_head)
            if not end:
                self._searched = max(len(seen) - 2, 0)
                self._early = seen if isinstance(seen, bytearray) else bytearray(seen)
                self._check_early()
                return None
            self._searched = 0
            head, seen = bytes(seen[:end]), bytes(seen[end:])
            if self._take_head(head):
                break
        self._early = bytearray()
        return bytes(seen)

    def _without_blank_lines(self, data: bytes | bytearray) -> bytes | bytearray:
        """Leave out what stands in front of the status line; a few servers send blank lines there."""
        if self._searched or data[:1] not in (b"\r", b"\n"):
            return data
        kept = data.lstrip(b"\r\n")
        self._blank += len(data) - len(kept)
        if self._blank > self._limits.max_head:
            self._stop(FetchError.HEAD_TOO_LARGE, "nothing but blank lines")
        return kept

    def _check_early(self) -> None:
        early = self._early
        if len(early) >= self._limits.max_head:
            self._stop(FetchError.HEAD_TOO_LARGE, f"the head is longer than {self._limits.max_head} bytes")
        elif len(early) >= 5 and not early.startswith(_STARTS):
            self._stop(FetchError.PROTOCOL, "this is no HTTP response")

    def _fits(self, head: bytes) -> bool:
        """Whether a plain head is surely within the limits; else they are looked at one by one."""
        limits, size = self._limits, len(head)
        return size <= limits.max_line and size <= limits.max_head and head.count(b"\n") <= limits.max_headers + 2

    def _take_head(self, raw: bytes) -> bool:
        """Read a head; True when it is the real one, or ends the matter."""
        limits = self._limits
        if len(raw) > limits.max_line and max(map(len, raw.split(b"\n"))) > limits.max_line:
            self._stop(FetchError.HEAD_TOO_LARGE, f"a header line is longer than {limits.max_line} bytes")
            return True
        try:
            head = plain_head(raw) or read_head(raw).framed(raw)
        except Malformed as malformed:
            self._stop(FetchError.PROTOCOL, str(malformed))
            return True
        if len(head.headers.raw) > limits.max_headers:
            self._stop(FetchError.HEAD_TOO_LARGE, f"more than {limits.max_headers} header fields")
            return True
        if head.status >= 200:
            self._begin(head)
            return True
        self._interim += 1
        if self._interim > MAX_INTERIM:
            self._stop(FetchError.PROTOCOL, f"more than {MAX_INTERIM} interim responses")
        return self.done

    def _begin(self, head: Framed, data: bytes = b"") -> None:
        """The real head is read: find out how its body ends, and what is to be undone.

        `data` is what came behind it, where that may be the whole body.
        """
        self.head = head.text
        self.status = status = head.status
        self.headers = head.headers
        self._keep = head.strict and head.keep
        if self._bodiless or status in _BODILESS:
            return
        if self._types is not None and status < 300:
            objection = self._types.objection(head.headers)
            if objection:
                self._cut()
                self.detail = objection
                return
        limits, length, chunked = self._limits, head.length, head.chunked
        cap = limits.max_wire
        if chunked or head.codings:
            content = self._at_once(head, data)
            if content is not None:
                self._content.append(content)
                length = len(data)
            elif head.codings:
                self._decoder = Decoder(codings(head.codings), limits)
        else:  # the body is its own payload: one cap for both
            cap = min(cap, limits.max_body)
        if length is not None:
            self._framing = _LENGTH if length else _NONE
            self._capped = length > cap
            self._left = min(length, cap)
            return
        self._left = cap
        self._framing = _CLOSE
        if chunked:
            self._framing = _CHUNKED
            self._chunks = Chunks(head.strict)

    def _at_once(self, head: Framed, data: bytes) -> bytes | None:
        """The content of a body that has come whole behind its head and has nothing odd; else None."""
        limits = self._limits
        if len(data) > limits.max_wire:
            return None
        content = whole(data) if head.chunked else data if len(data) == head.length else None
        if content is not None and head.codings:
            content = at_once(head.codings, content, limits)
        return content if content is not None and len(content) <= limits.max_body else None

    def _lost_before_head(self) -> None:
        problem = objection(bytes(self._early))
        if problem:
            self._stop(FetchError.PROTOCOL, problem)
        elif self.received:
            self._stop(FetchError.RESET, "the connection ended within the head")
        else:
            self._stop(FetchError.RESET, "the connection ended without an answer")

    # -- body -------------------------------------------------------------------------------------------------

    def _read_body(self, data: bytes) -> None:
        if self._framing is _NONE:
            self._complete(excess=bool(data))
            return
        left = self._left = self._left - len(data)
        if left < 0:
            data = data[:left]
        self._payload.append(data)
        if self._chunks is not None:
            self._read_chunks(self._chunks, data)
        elif self._decoder is not None and not self._decoder.feed(data):
            self._cut()
        if self.done or left > 0:
            return
        if not self._capped:
            self._complete(excess=left < 0)
        elif left < 0:
            self._cut()

    def _read_chunks(self, chunks: Chunks, data: bytes) -> None:
        content, problem = chunks.feed(data)
        self._silent = 0 if content else self._silent + len(data)
        excess = False
        if problem or chunks.complete:
            excess = self._end_payload(chunks)
        if not self._take_content(content):
            self._cut()
        elif problem:
            self._stop(FetchError.PROTOCOL, problem, Truncated.DISCONNECT)
        elif chunks.complete:
            self._complete(excess)
        elif chunks.count > MAX_CHUNKS or self._silent > self._limits.max_head:
            self._stop(FetchError.PROTOCOL, "more framing than content", Truncated.DISCONNECT)

    def _end_payload(self, chunks: Chunks) -> bool:
        """Leave out what stands behind the chunks, or behind what is wrong with them; True when that is something."""
        wire = self.payload
        end = chunks.length(wire)
        self._payload = [wire[:end]]
        return end < len(wire)

    def _take_content(self, content: list[bytes]) -> bool:
        """Keep content without its framing; False when no more is wanted."""
        if self._decoder is not None:
            return self._decoder.feed(b"".join(content))
        self._content += content
        self._size += sum(map(len, content))
        return self._size <= self._limits.max_body

    # -- end --------------------------------------------------------------------------------------------------

    def _complete(self, excess: bool) -> None:
        """The response came to the end that its framing gives; `excess` bytes behind it spoil the connection."""
        self.done = True
        self.reusable = self._keep and not excess
        if self._decoder is None:
            return
        self._decoder.end()
        problem = self._decoder.problem
        self.detail = problem or self._decoder.note
        if self._decoder.capped:
            self._cut()
        elif problem:
            self.error = FetchError.DECODING
            self.truncated = Truncated.DISCONNECT if self._decoder.broken_off else None

    def _cut(self) -> None:
        """A cap is reached: what fits is kept. This is no failure."""
        self.done = True
        self.reusable = False
        self.truncated = Truncated.LENGTH
        self.detail = "cut at a size limit"

    def _stop(self, error: FetchError, detail: str, truncated: Truncated | None = None) -> None:
        self.done = True
        self.reusable = False
        self.error = error
        self.detail = detail
        self.truncated = truncated
        if self._decoder is not None:
            self._decoder.end()


def _end_of_head(data: bytes | bytearray, start: int, limit: int) -> int:
    """Where the first empty line ends, 0 when there is none within the limit."""
    plain = data.find(b"\n\r\n", start, limit)
    bare = data.find(b"\n\n", start, limit if plain < 0 else plain + 1)
    if bare >= 0:
        return bare + 2
    return plain + 3 if plain >= 0 else 0
