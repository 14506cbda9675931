"""Seed lists: one URL a line, or one JSON object a line for requests with label, meta, method or body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from crawlspace.engine.intake import Request
from crawlspace.errors import UsageError

LINE_LIMIT = 1 << 20


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """A request as JSON."""

    url: str
    label: str | None = None
    meta: dict[str, object] = {}
    method: str = "GET"
    body: str = ""
    content_type: str = ""


def read_seeds(file: str) -> Iterator[Request]:
    """The requests in a file, or on standard input for `-`; raises `UsageError` that names the line."""
    if file == "-":
        import sys

        yield from parse_seeds(sys.stdin, "standard input")
        return
    try:
        with Path(file).open(encoding="utf-8") as lines:
            yield from parse_seeds(lines, file)
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is no UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise UsageError(f"the seed file {file} cannot be read: {(error.strerror or '').lower()}") from None


def parse_seeds(lines: Iterable[str], source: str) -> Iterator[Request]:
    """Requests from lines. Empty lines and those beginning with `#` are passed over."""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if len(text) > LINE_LIMIT:
            raise UsageError(f"{source}, line {number}: longer than {LINE_LIMIT} characters")
        yield _parsed(text, f"{source}, line {number}") if text.startswith("{") else Request(text)


def _parsed(text: str, place: str) -> Request:
    try:
        line = msgspec.json.decode(text, type=_Line)
    except msgspec.DecodeError as error:
        raise UsageError(f"{place}: {error}", hint="keys: url, label, meta, method, body, content_type") from None
    request = Request(line.url, line.label, line.meta, line.method, line.body.encode(), line.content_type)
    request.meta_text()
    return request
