"""One request and what came of it: the values between the network, the archive and those who read pages.

Nothing here knows a socket or a file. Times are integer milliseconds since 1970 UTC.
"""

from __future__ import annotations

import re
from collections.abc import Set
from enum import StrEnum, unique
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from crawlspace.types import Pointer


@unique
class FetchError(StrEnum):
    """How a request fails without an answer that was read whole. The words are classes of dead letters."""

    DNS = "dns"
    ADDRESS_REFUSED = "address_refused"
    CONNECT = "connect"
    CONNECT_TIMEOUT = "connect_timeout"
    TLS = "tls"
    RESET = "reset"
    IDLE_TIMEOUT = "idle_timeout"
    TOTAL_TIMEOUT = "total_timeout"
    TOO_SLOW = "too_slow"
    PROTOCOL = "protocol"
    HEAD_TOO_LARGE = "head_too_large"
    DECODING = "decoding"
    LOCAL = "local"
    """The failure is ours: no descriptors, no memory, no route."""


@unique
class Truncated(StrEnum):
    """Why a kept body is not whole; WARC-Truncated's own words."""

    LENGTH = "length"
    TIME = "time"
    DISCONNECT = "disconnect"


class Headers:
    """Response headers in order, as bytes on the wire read as Latin-1; names compare without case."""

    __slots__ = ("_first", "_raw")

    def __init__(self, raw: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        self._raw = raw
        # Few of a page's headers are ever asked for: they stay bytes until then.
        self._first = {name.lower(): value for name, value in reversed(raw)}

    @property
    def raw(self) -> tuple[tuple[bytes, bytes], ...]:
        """Names and values in order."""
        return self._raw

    def get(self, name: str, default: str = "") -> str:
        """The first value under `name` (lower case), or `default`."""
        value = self._first.get(name.encode("latin-1"))
        return default if value is None else value.decode("latin-1")

    def has_any(self, names: Set[str]) -> bool:
        """Whether there is one under any of these names (lower case)."""
        return any(key.decode("latin-1") in names for key in self._first)

    def all(self, name: str) -> list[str]:
        """Every value under `name` (lower case), in order."""
        wanted = name.encode("latin-1")
        first = self._first.get(wanted)
        if first is None:
            return []
        if len(self._first) == len(self._raw):  # no name comes twice, as is usual
            return [first.decode("latin-1")]
        return [value.decode("latin-1") for key, value in self._raw if key.lower() == wanted]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Headers) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        return f"Headers({self.raw!r})"


_FIELD = re.compile(r"\n([^:\r]++):([^\r]*+)")
"""A field of a plain head."""
_BLANKS = " \t\n\r\v\f"


class HeadText(Headers):
    """The headers of a head of plain lines, which stays text: a crawl asks for few of them, each a few times.

    The head must be plain, with its status line and its blank line: each line is a name, a colon, and a value, ends
    in CR LF and holds none of the two otherwise.
    """

    __slots__ = ("_fields", "_known", "_text")

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._known: dict[str, str] | None = None
        """The first value by name in lower case, once any was asked for."""
        self._fields: list[tuple[str, str]] = []
        """All of them in order."""

    @property
    def raw(self) -> tuple[tuple[bytes, bytes], ...]:
        lines = (line.partition(b":") for line in self._text.split(b"\r\n")[1:-2])
        return tuple((name, value.strip()) for name, _, value in lines)

    def get(self, name: str, default: str = "") -> str:
        return (self._known or self._read()).get(name, default)

    def has_any(self, names: Set[str]) -> bool:
        return not names.isdisjoint(self._known or self._read())

    def all(self, name: str) -> list[str]:
        known = self._known or self._read()
        first = known.get(name)
        if first is None:
            return []
        if len(known) == len(self._fields):  # no name comes twice, as is usual
            return [first]
        return [value.strip(_BLANKS) for key, value in self._fields if key.lower() == name]

    def _read(self) -> dict[str, str]:
        fields = self._fields = _FIELD.findall(self._text.decode("latin-1"))
        known = self._known = {name.lower(): value.strip(_BLANKS) for name, value in reversed(fields)}
        return known


class FetchRequest(Struct, frozen=True):
    """One request to be made. The URL is already in WHATWG form, without fragment and user information."""

    url: str
    method: str = "GET"
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    """Beyond those that every request carries; they replace a default of the same name."""
    by_type: bool = False
    """Of a successful answer whose type is not wanted (`fetch.types`) the head alone is read."""
    route: str = ""
    """The name of the route by which it goes; empty for plain HTTP."""


class Rendered(Struct, frozen=True):
    """What a browser made of an answer: the document as it stood once the page's scripts had run."""

    html: bytes
    """The document as text again, in UTF-8."""
    at: int
    """When it was taken."""
    why: str = ""
    """Why the page was given to a browser, in words; empty when read from an archive, whose facts have it."""
    requests: int = 0
    """Requests that the page itself made meanwhile."""
    refused: int = 0
    """Those of them that were not let through."""
    size: int = 0
    """Bytes that went over its connections, both ways."""
    truncated: bool = False
    """The document is cut at `browser.max_document`."""


class Unrendered(NamedTuple):
    """Why no browser made anything of an answer."""

    why: str
    passing: bool = False
    """The reason lies with the browser, and may be gone next time."""


RENDERED_TYPE = b"text/html; charset=utf-8"
_NO_HEADERS = Headers()


class FetchResult(Struct, frozen=True):
    """What came of a request. Failures are values here, never exceptions.

    `error` is None exactly when a whole response head was read and the body was read to its end or to its cap;
    a body that broke off has `truncated` and, unless only our own cap cut it, an `error` too.
    """

    url: str
    started_at: int
    """When the request was sent, or, when it never was, when we set out to: from here a host's delay counts."""
    elapsed_ms: int = 0
    error: FetchError | None = None
    detail: str = ""
    status: int = 0
    """0 when no response head was read."""
    headers: Headers = _NO_HEADERS
    request_head: bytes = b""
    """Request line and headers as sent, with the blank line."""
    request_body: bytes = b""
    response_head: bytes = b""
    """Status line and headers as received, byte for byte, with the blank line."""
    payload: bytes = b""
    """The body as it came on the wire: chunk framing and content coding still on."""
    body: bytes = b""
    """The body decoded: what parsers read. Cut at the caps."""
    truncated: Truncated | None = None
    address: str = ""
    """IP address really connected to, with port."""
    protocol: str = ""
    """What was spoken, as ALPN names it, such as `h2`; heads are then put into the words of HTTP/1.1. "": that."""
    route: str = ""
    """The route by which it came; empty for plain HTTP."""
    rendered: Rendered | None = None
    """Set where a browser made `body`; heads and payload stay what came on the wire."""

    def showing(self, rendered: Rendered) -> FetchResult:
        """The same answer, to be read as a browser has rendered it."""
        kept = (pair for pair in self.headers.raw if pair[0].lower() != b"content-type")
        headers = Headers((*kept, (b"Content-Type", RENDERED_TYPE)))
        return replace(self, headers=headers, body=rendered.html, rendered=rendered)

    @property
    def wire_size(self) -> int:
        """Bytes of the response on the wire."""
        return len(self.response_head) + len(self.payload)


@unique
class RobotsVerdict(StrEnum):
    """What an origin's robots.txt comes to (RFC 9309, section 2.3.1)."""

    RULES = "rules"
    """It was read: its rules decide."""
    ALLOW_ALL = "allow_all"
    """4xx: there are no rules."""
    DEFER = "defer"
    """5xx, 429 or no answer: nothing may be fetched until it answers."""


class RobotsFile(Struct, frozen=True):
    """One origin's answer to /robots.txt, as it is kept."""

    origin: str
    """Scheme, host and port, as `https://example.com` or `http://example.com:8080`."""
    fetched_at: int
    expires_at: int
    verdict: RobotsVerdict
    text: str = ""
    """The rules, decoded; empty unless the verdict is RULES."""
    detail: str = ""
    """Status or error that led to the verdict."""


class Outlink(NamedTuple):
    """A link as it was read from a page."""

    url: str
    """As it stands there, relative to `Facts.base`."""
    relation: str
    text: str = ""
    """The words of the link, where the crawl reads them."""
    nofollow: bool = False


class Facts(Struct, frozen=True, omit_defaults=True):
    """What the crawler made of a response: kept beside it in the archive, so that nothing else is needed to know it.

    Numbers of URLs are those of the crawl. Digests are hexadecimal.
    """

    id: int | None = None
    canonical: str | None = None
    host: str | None = None
    parent: int | None = None
    depth: int | None = None
    hops: int | None = None
    relation: str | None = None
    generation: int | None = None
    outcome: str | None = None
    """`done`, `stored`, `redirected`, `moved`, `retry`, `rerouted` or `dead`."""
    error: str | None = None
    detail: str = ""
    elapsed_ms: int | None = None
    detected: str | None = None
    """Type as it was read."""
    charset: str | None = None
    language: str | None = None
    body_digest: str | None = None
    """SHA-256 of the decoded body."""
    text_digest: str | None = None
    body_size: int | None = None
    """Bytes of the decoded body."""
    target: str | None = None
    """Where it redirects to."""
    declared: str | None = None
    """The address that the page declares as its own, as it stands there."""
    title: str = ""
    noindex: bool = False
    nofollow: bool = False
    rendered: str | None = None
    """Why a browser rendered it, in words; None where none did."""
    base: str | None = None
    """What links are relative to."""
    route: str | None = None
    """By which route it came, if not by plain HTTP: heads of others' answers are written in HTTP/1.1's words."""
    links: tuple[Outlink, ...] = ()


class Reference(Struct, frozen=True):
    """An earlier capture that has the bytes which a later one does not repeat."""

    url: str
    at: int
    pointer: Pointer | None = None
    """Where it lies; None when only its name is known."""


class Capture(Struct, frozen=True):
    """One stored exchange, as it goes into the archive and comes out of it."""

    url: str
    at: int
    status: int
    request_head: bytes
    request_body: bytes
    response_head: bytes
    payload: bytes
    truncated: Truncated | None = None
    address: str = ""
    protocol: str = ""
    """As in `FetchResult`."""
    method: str = "GET"
    refers_to: Reference | None = None
    """For status 304 the capture that is still right; else one with the same payload, which is not kept twice."""
    rendered: Rendered | None = None
    """What a browser made of it, which is what was read of the page."""
    facts: Facts | None = None
    """What was made of it; goes into the archive, and is not read back with the bytes."""
