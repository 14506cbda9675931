"""What an answer is by its first bytes, where its type is not declared."""

from __future__ import annotations

import pytest

from crawlspace.exchange import Headers
from crawlspace.pages.magic import detected_type


@pytest.mark.parametrize(
    ("declared", "body", "kind"),
    [
        (b"text/plain; charset=x", b"%PDF-1.7", "text/plain"),
        (b"Text/HTML", b"", "text/html"),
        (None, b"", None),
        (None, b"%PDF-1.7", "application/pdf"),
        (None, b"\x89PNG\r\n\x1a\n....", "image/png"),
        (None, b"GIF89a..", "image/gif"),
        (None, b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (None, b"RIFF\x00\x00\x00\x00WAVEfmt ", None),
        (None, b"  <!DOCTYPE html><p>x", "text/html"),
        (None, b"<?xml version='1.0'?>", "text/xml"),
        (b"*/*", b"\x1f\x8b\x08", "application/gzip"),
        (None, b"plain words", None),
    ],
)
def test_a_declared_type_holds_and_bytes_speak_where_there_is_none(
    declared: bytes | None, body: bytes, kind: str | None
) -> None:
    headers = Headers(((b"Content-Type", declared),)) if declared is not None else Headers()
    assert detected_type(headers, body) == kind
