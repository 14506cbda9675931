"""What an answer is by its first bytes, for those that come without a type that can be read.

Only kinds that are told by a signature; what remains is text or unknown. Source: MIME Sniffing Standard, sections
"matching an image type pattern" and the following.
"""

from __future__ import annotations

from typing import Final

from crawlspace.exchange import Headers
from crawlspace.pages.mime import content_type, looks_like_html

_SIGNATURES: Final = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"OggS\x00", "application/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"<?xml", "text/xml"),
)


def detected_type(headers: Headers, body: bytes) -> str | None:
    """The type that is declared, else the one that the bytes show; None when neither says anything."""
    declared = content_type(headers).essence
    if declared or not body:
        return declared or None
    if looks_like_html(body):
        return "text/html"
    if body[:4] == b"RIFF" and body[8:14] == b"WEBPVP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES if body.startswith(signature)), None)
