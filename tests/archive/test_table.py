"""The table of captures: a row for each, the same while crawling and from the files, whole or not there."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.dataset
import pytest

from crawlspace.archive import table as module
from crawlspace.archive.cdxj import Indexer, archive_files
from crawlspace.archive.columns import BUCKETS, COLUMNS, partition_of
from crawlspace.archive.disk import RealDisk
from crawlspace.archive.reader import Reader
from crawlspace.archive.rows import host_of, row_of_stored
from crawlspace.archive.table import MARK, CaptureTable, lacks_rows
from crawlspace.archive.warc import WarcArchive
from crawlspace.errors import ArchiveSuspect, DiskFull, UsageError
from crawlspace.exchange import Capture, Facts, Outlink, Reference, Truncated
from crawlspace.testing.disk import Fault, FaultyDisk

MakeCapture = Callable[..., Capture]
MakeArchive = Callable[..., WarcArchive]
Row = dict[str, Any]

DAY = 86_400_000
PAYLOAD = b"<p>one</p>" * 300


def store(archive: WarcArchive, groups: Sequence[Sequence[Capture]]) -> None:
    async def run() -> None:
        for group in groups:
            for each in group:
                await archive.append(each)
            await archive.flush()
        await archive.close()

    asyncio.run(run())


def rows(directory: Path) -> list[Row]:
    found = pyarrow.dataset.dataset(directory, partitioning="hive")
    return sorted(found.to_table().to_pylist(), key=lambda row: (row["file"], row["offset"]))


def files(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.parquet"))


@pytest.fixture
def captures(capture: MakeCapture) -> list[Capture]:
    """Of several hosts and days, with facts and without, of every kind."""
    facts = Facts(
        id=7,
        canonical="http://a.test/",
        host="a.test",
        parent=3,
        depth=2,
        hops=1,
        relation="redirect",
        generation=1,
        outcome="done",
        elapsed_ms=12,
        detected="text/html",
        charset="utf-8",
        language="en",
        body_digest="ab" * 32,
        text_digest="cd" * 32,
        body_size=3000,
        declared="/canonical",
        noindex=True,
        base="http://a.test/",
        links=(Outlink("x", "hyperlink"), Outlink("y", "frame")),
    )
    head = b"HTTP/1.1 301 Moved\r\nLocation: /b\r\nContent-Type: Text/HTML; charset=x\r\n\r\n"
    moved = Facts(id=8, host="b.test:8080", outcome="redirected", target="http://b.test:8080/b")
    return [
        capture(url="http://a.test/", facts=facts, payload=PAYLOAD),
        capture(url="http://b.test:8080/", status=301, response_head=head, payload=b"", facts=moved),
        capture(url="https://C.test:443/robots.txt", at=1_700_000_000_123 + DAY),
        capture(truncated=Truncated.LENGTH, request_head=b"POST / HTTP/1.1\r\n\r\n", method="POST"),
        capture(response_head=b"ICY what\r\n\r\n", status=0, address=""),
        capture(
            status=304,
            response_head=b"HTTP/1.1 304 No\r\n\r\n",
            payload=b"",
            refers_to=Reference("http://a.test/", 1_700_000_000_000),
        ),
    ]


def written(archive: MakeArchive, directory: Path, captures: Sequence[Capture], table: Path, **options: int) -> None:
    """Each capture, and then the first again as a revisit."""
    kept = archive(table=CaptureTable(table, "0", **options))

    async def run() -> None:
        first = await kept.append(captures[0])
        await kept.flush()
        for each in captures[1:]:
            await kept.append(each)
        await kept.append(
            Capture(
                **{
                    **{name: getattr(captures[0], name) for name in captures[0].__struct_fields__},
                    "url": "http://mirror.test/",
                    "refers_to": Reference("", 0, first),
                    "facts": None,
                }
            )
        )
        await kept.close()

    asyncio.run(run())


def test_a_row_says_what_is_known_of_a_capture(
    archive: MakeArchive, captures: list[Capture], directory: Path, tmp_path: Path
) -> None:
    written(archive, directory, captures, tmp_path / "captures")
    found = rows(tmp_path / "captures")
    assert len(found) == len(captures) + 1
    page, moved, robots, post, odd, fresh, again = found
    assert list(page)[: len(COLUMNS)] == [column.name for column in COLUMNS]
    assert (page["url"], page["id"], page["parent"], page["depth"]) == ("http://a.test/", 7, 3, 2)
    assert (page["outcome"], page["mime"], page["detected"], page["charset"]) == (
        "done",
        "text/html",
        "text/html",
        "utf-8",
    )
    assert (page["noindex"], page["nofollow"], page["links"], page["declared"]) == (True, False, 2, "/canonical")
    assert (page["at"].isoformat(), page["date"], page["kind"]) == (
        "2023-11-14T22:13:20.123000+00:00",
        "2023-11-14",
        "response",
    )
    assert (page["address"], page["wire_size"]) == ("192.0.2.7", len(captures[0].response_head) + len(PAYLOAD))
    assert (moved["status"], moved["target"], moved["host"], moved["mime"]) == (
        301,
        "http://b.test:8080/b",
        "b.test:8080",
        "text/html",
    )
    assert (robots["host"], robots["id"], robots["outcome"], robots["date"]) == ("c.test", None, None, "2023-11-15")
    assert (post["method"], post["truncated"]) == ("POST", "length")
    assert (odd["status"], odd["mime"], odd["address"]) == (None, None, None)
    assert (fresh["kind"], fresh["refers_url"]) == ("not_modified", "http://a.test/")
    assert (again["kind"], again["refers_url"], again["payload_digest"], again["wire_size"]) == (
        "revisit",
        "http://a.test/",
        page["payload_digest"],
        page["wire_size"],
    )


def test_the_files_alone_give_the_same_rows(
    archive: MakeArchive, captures: list[Capture], directory: Path, tmp_path: Path
) -> None:
    written(archive, directory, captures, tmp_path / "captures")
    again = CaptureTable(tmp_path / "again", "index")
    indexer, reader = (
        Indexer(RealDisk(), directory, 1 << 20, pytest.fail),
        Reader(RealDisk(), directory, 1 << 20),
    )
    for name in archive_files(RealDisk(), directory):
        again.add(row_of_stored(stored, reader.capture(stored)) for stored in indexer.stored(name))
    again.close()
    assert rows(tmp_path / "again") == rows(tmp_path / "captures")


def test_rows_are_written_when_there_are_enough_and_memory_stays_bounded(
    archive: MakeArchive, capture: MakeCapture, tmp_path: Path
) -> None:
    table = CaptureTable(tmp_path / "captures", "0", rows=10)
    kept = archive(table=table)

    async def run() -> None:
        for number in range(25):
            await kept.append(capture(url=f"http://h{number % 3}.test/{number}"))
            if number % 4 == 3:
                await kept.flush()
        assert len(rows(tmp_path / "captures")) == 20
        assert lacks_rows(tmp_path / "captures"), "until the writer has ended"
        await kept.close()

    asyncio.run(run())
    assert [row["url"] for row in rows(tmp_path / "captures")] == [f"http://h{n % 3}.test/{n}" for n in range(25)]
    assert not lacks_rows(tmp_path / "captures")
    buckets = {path.parent.name for path in files(tmp_path / "captures")}
    assert buckets == {f"bucket={partition_of(0, f'h{n}.test').bucket:02}" for n in range(3)}


def test_a_killed_writer_leaves_a_mark_and_no_half_file(
    archive: MakeArchive, capture: MakeCapture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed where its file is whole and has not its name yet."""

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    table = CaptureTable(tmp_path / "captures", "0", rows=1)
    monkeypatch.setattr(module.Path, "replace", kill)
    with pytest.raises(KeyboardInterrupt):
        store(archive(table=table), [[capture()]])
    assert files(tmp_path / "captures") == []
    assert lacks_rows(tmp_path / "captures")


def test_a_disk_that_refuses_the_table_stops_no_crawl(
    archive: MakeArchive, capture: MakeCapture, tmp_path: Path
) -> None:
    """What was captured is in the WARC files, and the mark tells that the table lacks it."""
    (tmp_path / "captures").mkdir()
    table = CaptureTable(tmp_path / "captures", "0", rows=1)
    (tmp_path / "captures" / "date=2023-11-14").write_text("in the way")
    kept = archive(table=table)
    store(kept, [[capture()]])
    assert kept.table_failure is not None
    assert len(list(archive().scan())) == 1
    assert lacks_rows(tmp_path / "captures")


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_what_was_not_made_durable_has_no_row(
    archive: MakeArchive, capture: MakeCapture, tmp_path: Path, error: int
) -> None:
    disk = FaultyDisk()
    kept = archive(disk, table=CaptureTable(tmp_path / "captures", "0"))

    async def run() -> None:
        await kept.append(capture(url="http://a.test/lost"))
        disk.fault = Fault(disk.steps + 1, error)
        with pytest.raises((ArchiveSuspect, DiskFull)):
            await kept.flush()
        await kept.append(capture(url="http://a.test/kept"))
        await kept.close()

    asyncio.run(run())
    assert [row["url"] for row in rows(tmp_path / "captures")] == ["http://a.test/kept"]


def test_two_writers_never_write_over_each_other(archive: MakeArchive, capture: MakeCapture, tmp_path: Path) -> None:
    """One directory, two workers, the same second and the same partition."""
    for worker in (0, 1):
        table = CaptureTable(tmp_path / "captures", str(worker))
        store(archive(worker=worker, table=table), [[capture()]])
    assert len(files(tmp_path / "captures")) == 2
    assert list((tmp_path / "captures").glob(f"{MARK}*")) == []


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(UsageError, match="extra `parquet`"):
        CaptureTable(tmp_path, "0")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://A.test/x", "a.test"),
        ("https://a.test:443/", "a.test"),
        ("http://a.test:8080/", "a.test:8080"),
        ("http://[::1]:81/", "[::1]:81"),
        ("http://user:word@a.test/", "a.test"),
        ("http://[broken/", ""),
        ("urn:x", ""),
    ],
)
def test_the_host_of_a_bare_address(url: str, host: str) -> None:
    assert host_of(url) == host


def test_buckets_are_spread_and_do_not_change() -> None:
    """Their numbers are stored in names of directories."""
    assert partition_of(0, "example.com").path == "date=1970-01-01/bucket=09"
    assert {partition_of(0, f"h{n}.test").bucket for n in range(500)} == set(range(BUCKETS))
