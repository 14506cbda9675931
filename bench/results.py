"""What was measured, one value a run, and as a line of JSON. Pure."""

from __future__ import annotations

from typing import Any

import msgspec


class Run(msgspec.Struct, frozen=True, kw_only=True, tag="run", tag_field="what"):
    """One whole crawl of one site by one contender."""

    contender: str
    keeps: str
    bodies: str
    site: str
    round: int
    exit: int
    failed: bool
    """No result: it ended badly, or saw nothing."""
    cpu: float
    """Seconds of user and system time, start-up included."""
    wall: float
    """Seconds, start-up included."""
    rss_mb: float
    disk_mb: float
    pages: int
    """Distinct pages that the server was asked for."""
    missed: int
    beyond: int
    twice: int
    """Requests for a page after its first."""
    others: int
    """Requests that gave no page."""
    connections: int
    server_cpu: float
    calibration: float
    """Seconds of the fixed loop just before."""
    said: str = ""


class Resumption(msgspec.Struct, frozen=True, kw_only=True, tag="resumption", tag_field="what"):
    """A crawl that was killed on its way, and the same command again."""

    contender: str
    site: str
    before: int
    """Distinct pages fetched when it was killed."""
    again: int
    """Pages the second run asked for."""
    exit: int
    """Of the second run."""
    missed: int
    """Never fetched by either."""
    twice: int
    wall: float
    """Seconds that the second run took."""


class Circumstances(msgspec.Struct, frozen=True, kw_only=True, tag="circumstances", tag_field="what"):
    """Where and with what."""

    date: str
    machine: str
    sites: dict[str, str]
    versions: dict[str, str]


Result = Run | Resumption | Circumstances


def line(result: Result) -> bytes:
    """One line of JSON, its end included."""
    return msgspec.json.encode(result, order="sorted") + b"\n"


def parse(data: bytes) -> list[Result]:
    """The lines of a file of results."""
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Result)
    return [decoder.decode(each) for each in data.splitlines() if each.strip()]
