"""Documents are read in a process of their own, and what it gives is checked."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Sequence

import pytest
from pypdf import PdfWriter
from pypdf.annotations import Link

from crawlspace.engine.documents import OUTPUT, Documents, Unread
from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchResult, Headers

PDF = Headers(((b"Content-Type", b"application/pdf"),))


def document(*addresses: str) -> bytes:
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    for address in addresses:
        writer.add_annotation(0, Link(rect=(0, 0, 9, 9), url=address))
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


def links(body: bytes, program: str = "", headers: Headers = PDF) -> Sequence[str]:
    command = (sys.executable, "-c", program) if program else (sys.executable, "-m", "crawlspace.engine.documents")
    result = FetchResult("http://a.test/x.pdf", 0, status=200, headers=headers, body=body)
    return asyncio.run(Documents(3, command=command).links(result))


def test_links_of_a_document_are_read_and_counted() -> None:
    addresses = [f"http://a.test/{n}" for n in range(5)]
    assert links(document(*addresses)) == addresses[:3]


def test_what_is_no_document_starts_no_process() -> None:
    assert links(b"<html>", "raise SystemExit(1)", Headers(((b"Content-Type", b"text/html"),))) == []


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import os; os.abort()", "SIGABRT"),
        ("import sys; sys.exit(3)", "more memory"),
        ("print('no list')", "no list of links"),
        (f"import sys; sys.stdout.buffer.write(bytes({OUTPUT + 1}))", "more than it may"),
        ("import sys; sys.stdin.close()", "no list of links"),
    ],
)
def test_whatever_the_process_does_is_told(program: str, told: str) -> None:
    with pytest.raises(Unread, match=told):
        links(document() + bytes(1 << 20), program)


def test_without_the_library_the_setting_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(ConfigError, match="extra `pdf`"):
        Documents(1)
