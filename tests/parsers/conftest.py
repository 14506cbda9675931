"""Pages as parsers see them."""

from __future__ import annotations

from typing import Protocol

import pytest

from crawlspace.exchange import FetchResult, Headers
from crawlspace.parsers import Document, Way


class MakeDocument(Protocol):
    def __call__(
        self, body: str | bytes, url: str = ..., type: str = ..., way: Way = ..., headers: dict[str, str] = ...
    ) -> Document: ...


@pytest.fixture
def document() -> MakeDocument:
    """Makes a page of its body."""

    def make(
        body: str | bytes,
        url: str = "https://shop.test/a/page",
        type: str = "text/html; charset=utf-8",
        way: Way = Way(),  # noqa: B008
        headers: dict[str, str] = {},  # noqa: B006
    ) -> Document:
        raw = tuple((name.encode(), value.encode()) for name, value in {"Content-Type": type, **headers}.items())
        data = body.encode() if isinstance(body, str) else body
        return Document(FetchResult(url, 1000, status=200, headers=Headers(raw), body=data), way)

    return make
