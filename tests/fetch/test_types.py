"""Answers of types that nobody wants are left behind their heads."""

from __future__ import annotations

from typing import Any

import pytest

from crawlspace.exchange import FetchRequest, Headers, Truncated
from crawlspace.fetch import FetchSettings, NetworkSettings
from crawlspace.fetch.response import ResponseReader
from crawlspace.fetch.types import Types
from crawlspace.settings import load


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [
        (b"text/html; charset=x", True),
        (b"TEXT/CSS", True),
        (b"application/pdf", True),
        (b"application/pdfx", False),
        (b"image/png", False),
        (b"", True),
        (b"nonsense", True),
    ],
)
def test_a_type_is_wanted_itself_or_with_its_family(declared: bytes, wanted: bool) -> None:
    headers = Headers(((b"Content-Type", declared),))
    assert (Types(["text/*", "application/pdf"]).objection(headers) == "") is wanted


@pytest.mark.parametrize("size", [1, 10, 1000])
def test_what_is_not_wanted_is_cut_behind_its_head(size: int) -> None:
    raw = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 5\r\n\r\nPIXEL"
    reader = ResponseReader(FetchSettings(), types=Types(["text/*"]))
    for start in range(0, len(raw), size):
        if reader.feed(raw[start : start + size]):
            break
    assert (reader.error, reader.truncated, reader.payload, reader.body) == (None, Truncated.LENGTH, b"", b"")
    assert (reader.status, reader.reusable) == (200, False)
    assert reader.detail == "its type, image/png, is none of fetch.types"


@pytest.mark.parametrize("status", [b"404 No", b"301 Moved"])
def test_failures_and_redirects_are_read_whatever_they_are(status: bytes) -> None:
    reader = ResponseReader(FetchSettings(), types=Types(["text/*"]))
    assert reader.feed(b"HTTP/1.1 " + status + b"\r\nContent-Type: image/png\r\nContent-Length: 1\r\n\r\nx")
    assert (reader.body, reader.truncated) == (b"x", None)


def test_only_requests_that_ask_for_it_go_by_type(run: Any, serving: Any, fetching: Any) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 5\r\n\r\nPIXEL"

    async def main() -> list[bytes]:
        async with (
            serving(answer) as server,
            fetching(NetworkSettings(allow=["127.0.0.1"]), types=["text/*"]) as fetcher,
        ):
            requests = [FetchRequest(server.url(), by_type=by_type) for by_type in (False, True, False)]
            return [(await fetcher.fetch(request)).body for request in requests]

    assert run(main()) == [b"PIXEL", b"", b"PIXEL"]


@pytest.mark.parametrize("wrong", ["text", "*/*", "text/", "text/html; charset=x", "Text/HTML"])
def test_a_setting_that_is_no_type_is_refused(wrong: str) -> None:
    with pytest.raises(Exception, match=r"fetch\.types"):
        load(None, {}, values={"fetch.types": [wrong]})
