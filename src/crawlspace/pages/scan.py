"""The one way to scan a page: by the compiled reader where it was built, else by its reference in Python.

Both give the same.
"""

from __future__ import annotations

from typing import Final

from crawlspace.pages import scanning
from crawlspace.pages.scanning import Scan

try:
    from crawlspace.pages._scan import scan as _scan
except ImportError:
    _scan = scanning.scan

COMPILED: Final = _scan is not scanning.scan
"""Whether pages are scanned by compiled code."""


def scan(body: bytes, max_links: int, *, text: bool = True) -> Scan:
    """What a page in UTF-8 says; bytes that are no UTF-8 are replaced, and NUL is passed over."""
    if not body.isascii():
        body = _as_valid(body)
    nul = b"\0" in body
    found = Scan(*_scan(body.replace(b"\0", b"") if nul else body, max_links, text))
    return found._replace(odd=True) if nul else found


def _as_valid(body: bytes) -> bytes:
    try:
        body.decode()
    except UnicodeDecodeError:
        return body.decode("utf-8", "replace").encode()
    return body
