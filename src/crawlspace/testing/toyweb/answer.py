"""What a toy host is asked and what it sends back, honest or not. Values only: the server does the sending."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto, unique

from msgspec import Struct, field
from msgspec.structs import replace

Fields = tuple[tuple[str, str], ...]
HTML: Fields = (("Content-Type", "text/html; charset=utf-8"),)


class Ask(Struct, frozen=True):
    """One request, as far as a host looks at it."""

    scheme: str
    host: str
    """Lower case, without port."""
    target: str
    """Path and query as sent."""
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""
    before: int = 0
    """How often this page was asked for before, under any spelling."""
    host_before: int = 0
    """Requests this host had before this one."""
    now: int = 0
    """Wall time of arrival, milliseconds."""

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}{self.target}"


@unique
class Framing(Enum):
    """How the end of the body is told, or how the connection fails instead."""

    LENGTH = auto()
    CHUNKED = auto()
    TO_CLOSE = auto()
    """No length: the body lasts until the connection closes."""
    CUT = auto()
    """Claims twice the length that is sent, then closes."""
    SILENT = auto()
    """Sends nothing until the client goes away."""
    RESET = auto()
    """Sends nothing and resets the connection."""


class Answer(Struct, frozen=True):
    """One response to be sent."""

    status: int = 200
    fields: Fields = HTML
    body: bytes = b""
    framing: Framing = Framing.LENGTH
    pause: float = 0.0
    """Seconds before the first byte."""
    drops: int = 1
    """Pieces in which the body is sent, `drop_pause` seconds apart."""
    drop_pause: float = 0.0
    repeat: int = 1
    """The body is sent this often in a row, as one."""
    wait_ms: int = 0
    """What its Retry-After asks for: kept in the log for the audit."""


Reply = Callable[[Ask], Answer]


def always(answer: Answer) -> Reply:
    """The same answer to everybody."""
    return lambda _ask: answer


def with_fields(answer: Answer, *more: tuple[str, str]) -> Answer:
    """The same answer with more header fields behind its own."""
    return replace(answer, fields=answer.fields + more)


def plain(status: int, text: str) -> Answer:
    """A short answer in plain text."""
    return Answer(status, (("Content-Type", "text/plain; charset=utf-8"),), text.encode())


def redirect(status: int, location: str) -> Answer:
    """A redirect with a small body, as servers send it."""
    return Answer(status, (("Location", location), *HTML), b"<html><body>This page is elsewhere.</body></html>")


NOT_FOUND = Answer(404, HTML, b"<html><head><title>Not found</title></head><body>No such page.</body></html>")
