"""Captures and archives to test with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from crawlspace.archive.disk import Disk, RealDisk
from crawlspace.archive.warc import ArchiveSettings, WarcArchive
from crawlspace.exchange import Capture
from crawlspace.testing.clock import ManualClock

MakeCapture = Callable[..., Capture]
MakeArchive = Callable[..., WarcArchive]

REQUEST = b"GET /a?b=c HTTP/1.1\r\nHost: shop.test\r\nUser-Agent: crawlspace\r\n\r\n"
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Bytes: \xe9\xff\r\n\r\n"


@pytest.fixture
def capture() -> MakeCapture:
    """A capture with the given fields and likely values for the rest."""

    def make(**fields: object) -> Capture:
        usual: dict[str, object] = {
            "url": "https://shop.test/a?b=c",
            "at": 1_700_000_000_123,
            "status": 200,
            "request_head": REQUEST,
            "request_body": b"",
            "response_head": RESPONSE,
            "payload": b"<p>one</p>",
            "address": "192.0.2.7",
        }
        return Capture(**{**usual, **fields})  # type: ignore[arg-type]

    return make


@pytest.fixture
def archive(tmp_path: Path) -> MakeArchive:
    """An archive under the test's directory; its clock stands still unless one is given."""

    def make(disk: Disk | None = None, clock: ManualClock | None = None, **names: object) -> WarcArchive:
        settings = names.pop("settings", ArchiveSettings())
        usual = {"crawl": "Test", "software": "crawlspace/0 (test)"}
        return WarcArchive(
            tmp_path / "warc",
            settings,  # type: ignore[arg-type]
            clock or ManualClock(),
            disk=disk or RealDisk(),
            **{**usual, **names},  # type: ignore[arg-type]
        )

    return make


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where `archive` writes."""
    return tmp_path / "warc"
