"""What a browser made of an answer is kept beside the answer, and is what is read again."""

from __future__ import annotations

import asyncio
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest
from msgspec.structs import replace
from warcio.archiveiterator import ArchiveIterator

from crawlspace.archive.disk import RealDisk
from crawlspace.archive.exchanges import Exchanges
from crawlspace.archive.members import members
from crawlspace.archive.record import decode
from crawlspace.archive.warc import ArchiveSettings, WarcArchive
from crawlspace.errors import StoreDamaged
from crawlspace.exchange import Capture, Facts, Reference, Rendered
from crawlspace.fetch import FetchSettings
from crawlspace.fetch.replay import result_of
from crawlspace.testing.clock import ManualClock
from crawlspace.types import Pointer

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=latin1\r\nContent-Length: 8\r\n\r\n"
RAW = Capture(
    "http://a.test/", 1_700_000_000_123, 200, b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", b"", HEAD, b"<p>\xe9</p>"
)
SHOWN = Rendered("<p>é</p><a href='/x'>x</a>".encode(), 1_700_000_002_500, why="a rule")
SEEN = replace(RAW, rendered=SHOWN, facts=Facts(rendered=SHOWN.why))


def archived(path: Path, *captures: Capture, **settings: object) -> tuple[WarcArchive, list[Pointer]]:
    chosen = ArchiveSettings(**settings)  # type: ignore[arg-type]
    archive = WarcArchive(path / "warc", chosen, ManualClock(), crawl="t", software="test")

    async def write() -> list[Pointer]:
        pointers = [await archive.append(each) for each in captures]
        await archive.close()
        return pointers

    return archive, asyncio.run(write())


@pytest.mark.parametrize("facts", [True, False])
def test_a_capture_comes_back_with_what_was_rendered(tmp_path: Path, facts: bool) -> None:
    archive, (first, second, third) = archived(tmp_path, SEEN, RAW, SEEN, metadata=facts)
    for pointer in (first, third):
        for found in (archive.open(pointer), archive.response(pointer)):
            assert found.rendered == Rendered(SHOWN.html, SHOWN.at)
            assert (found.response_head, found.payload) == (HEAD, RAW.payload)
    assert archive.open(second).rendered is None
    assert [capture.rendered is not None for _, capture in archive.scan()] == [True, False, True]


def test_it_reads_as_it_was_rendered_and_keeps_what_was_sent(tmp_path: Path) -> None:
    archive, (pointer,) = archived(tmp_path, SEEN)
    result = result_of(archive.open(pointer), FetchSettings())
    assert result.body == SHOWN.html
    assert result.headers.get("content-type") == "text/html; charset=utf-8"
    assert result.headers.get("content-length") == "8"
    assert (result.payload, result.response_head) == (RAW.payload, HEAD)


def test_others_read_it_as_a_conversion_of_the_response(tmp_path: Path) -> None:
    archived(tmp_path, replace(SEEN, rendered=replace_cut(SHOWN)))
    (file,) = (tmp_path / "warc").iterdir()
    found = {record.rec_type: record for record in _read(file)}
    record = found["conversion"]
    assert record.rec_headers["WARC-Refers-To"] == found["response"].rec_headers["WARC-Record-ID"]
    assert record.rec_headers["WARC-Date"] == "2023-11-14T22:13:22.500Z"
    assert record.rec_headers["WARC-Truncated"] == "length"
    assert record.rec_headers["Content-Type"] == "text/html; charset=utf-8"


def test_a_copy_of_the_exchange_has_it_too(tmp_path: Path) -> None:
    """Also of a revisit, whose payload lies elsewhere."""

    async def write() -> tuple[Pointer, Pointer]:
        archive = WarcArchive(tmp_path / "warc", ArchiveSettings(), ManualClock(), crawl="t", software="test")
        first = await archive.append(SEEN)
        await archive.flush()
        again = replace(SEEN, at=SEEN.at + 60_000, refers_to=Reference(SEEN.url, SEEN.at, first))
        second = await archive.append(again)
        await archive.close()
        assert archive.response(second).payload == RAW.payload
        return first, second

    for pointer in asyncio.run(write()):
        exchange = Exchanges(RealDisk(), tmp_path / "warc", ArchiveSettings().max_record).at(pointer)
        assert exchange.conversion is not None
        raw = exchange.raw
        found = [decode(each.data) for each in members(partial(_part, raw), 0, len(raw), 1 << 20)]
        assert [record.kind for record in found] == ["response", "request", "metadata", "conversion"]
        assert found[-1].block == SHOWN.html


def _part(raw: bytes, offset: int, length: int) -> bytes:
    return raw[offset : offset + length]


def test_a_capture_without_what_it_promises_is_damaged(tmp_path: Path) -> None:
    archive, (pointer,) = archived(tmp_path, SEEN)
    path = tmp_path / "warc" / pointer.file
    whole = path.read_bytes()
    last = list(members(partial(_part, whole), 0, len(whole), 1 << 20))[-1]
    path.write_bytes(whole[: last.offset])
    with pytest.raises(StoreDamaged, match="what a browser made of it"):
        archive.response(pointer)


def replace_cut(shown: Rendered) -> Rendered:
    return Rendered(shown.html, shown.at, truncated=True)


def _read(file: Path) -> list[object]:
    return list(ArchiveIterator(BytesIO(file.read_bytes())))
