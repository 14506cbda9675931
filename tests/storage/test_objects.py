"""The archive in object storage: whole or not there, whatever happens on the way."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from warcio.archiveiterator import ArchiveIterator

from crawlspace.archive import zstd
from crawlspace.archive.cdxj import archive_files
from crawlspace.archive.disk import Unreachable
from crawlspace.archive.joins import join
from crawlspace.archive.objects import OUTGOING, ObjectDisk
from crawlspace.archive.packing import SAMPLES
from crawlspace.archive.warc import ArchiveSettings, WarcArchive
from crawlspace.errors import ArchiveAway, ConfigError, StoreDamaged
from crawlspace.exchange import Capture, Reference
from crawlspace.settings import load
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.disk import Fault, FaultyDisk
from crawlspace.types import Pointer

Make = Callable[..., WarcArchive]


@pytest.fixture
def make(gated: Any, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Archives at the test's own address."""
    for name, value in gated.environment.items():
        monkeypatch.setenv(name, value)
    # A test waits for no retry that cannot help.
    monkeypatch.setattr("crawlspace.archive.objects.RETRIES", 3)

    def archive(disk: ObjectDisk | None = None, **settings: Any) -> WarcArchive:
        disk = disk or ObjectDisk(address, gated.environment)
        wanted = ArchiveSettings(store=address, **settings)
        return WarcArchive(tmp_path / "archive", wanted, ManualClock(), crawl="t", software="test", disk=disk)

    return archive


def page(number: int, payload: bytes = b"") -> Capture:
    return Capture(
        url=f"http://a.test/{number}",
        at=1_700_000_000_000,
        status=200,
        request_head=b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        request_body=b"",
        response_head=b"HTTP/1.1 200 OK\r\n\r\n",
        payload=payload or b"<p>%d</p>" % number,
    )


async def commit(archive: WarcArchive, *captures: Capture) -> list[Pointer]:
    pointers = [await archive.append(each) for each in captures]
    await archive.flush()
    return pointers


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_each_group_is_one_object_that_opens_by_itself(
    make: Make, gated: Any, address: str, tmp_path: Path, compression: str
) -> None:
    archive = make(compression=compression)

    async def run() -> list[Pointer]:
        pointers = await commit(archive, page(1), page(2)) + await commit(archive, page(3))
        await archive.close()
        return pointers

    pointers = asyncio.run(run())
    files = sorted({pointer.file for pointer in pointers})
    assert len(files) == 2
    assert sorted(gated.writes) == files
    assert not gated.lists, "nothing is listed to write or to go on"
    fresh = make()
    assert [fresh.open(pointer) for pointer in pointers] == [page(1), page(2), page(3)]
    assert [found for _, found in fresh.scan()] == [page(1), page(2), page(3)]
    assert list((tmp_path / "archive").rglob("*.warc*")) == []
    disk = ObjectDisk(address, gated.environment)
    assert archive_files(disk, tmp_path / "archive") == files
    if compression == "gzip":
        data = disk.read(Path(files[0]), 0, 1 << 20)
        kinds = [record.rec_type for record in ArchiveIterator(io.BytesIO(data))]
        assert kinds == ["warcinfo", "response", "request", "response", "request"]


def test_a_storage_that_refuses_for_a_moment_is_asked_again(make: Make, gated: Any) -> None:
    gated.refused = 2
    archive = make()
    (pointer,) = asyncio.run(commit(archive, page(1)))
    assert make().open(pointer) == page(1)


@pytest.mark.parametrize("how", ["refused", "broken"])
def test_what_could_not_be_uploaded_counts_nothing_and_is_written_again(
    make: Make, gated: Any, tmp_path: Path, how: str
) -> None:
    archive = make()

    async def run() -> list[Pointer]:
        confirmed = await commit(archive, page(1))
        setattr(gated, how, -1 if how == "refused" else True)
        with pytest.raises(ArchiveAway, match="s3://"):
            await commit(archive, page(2), page(3))
        setattr(gated, how, 0)
        assert list((tmp_path / "archive" / OUTGOING).iterdir()) == [], "the buffer does not grow by failures"
        confirmed += await commit(archive, page(2), page(3))
        await archive.close()
        return confirmed

    pointers = asyncio.run(run())
    assert [make().open(pointer) for pointer in pointers] == [page(1), page(2), page(3)]
    assert [found for _, found in make().scan()] == [page(1), page(2), page(3)]


def test_a_storage_that_is_away_is_no_damage(make: Make, gated: Any) -> None:
    """Who checks or repairs a crawl must not take silence for loss."""
    (pointer,) = asyncio.run(commit(make(), page(1)))
    gated.broken = True
    with pytest.raises(ArchiveAway):
        make().open(pointer)
    gated.broken = False
    with pytest.raises(StoreDamaged, match="cannot be read"):
        make().open(pointer._replace(file="nowhere.warc.gz"))


def test_what_a_killed_process_had_not_uploaded_is_removed_at_the_next_start(make: Make, tmp_path: Path) -> None:
    left = tmp_path / "archive" / OUTGOING
    left.mkdir(parents=True)
    (left / "t-20260101000000-00000-0.warc.gz").write_bytes(b"half")
    (left / "t-20260101000000-00000-7.warc.gz").write_bytes(b"another worker's")
    assert make().recover({"t-1.warc.gz": 100}, worker=0) == []
    assert [path.name for path in left.iterdir()] == ["t-20260101000000-00000-7.warc.gz"]
    make().recover({})
    assert list(left.iterdir()) == []


def test_a_name_that_counts_is_never_given_again(make: Make) -> None:
    """A crawl that is killed and started again within the same second: objects are replaced without a word."""
    (first,) = asyncio.run(commit(make(), page(1)))
    again = make()
    again.recover({first.file: first.offset + first.length})
    (second,) = asyncio.run(commit(again, page(2)))
    assert first.file != second.file
    assert [make().open(first), make().open(second)] == [page(1), page(2)]


def test_a_dictionary_is_learnt_also_where_each_group_is_an_object(make: Make, gated: Any, address: str) -> None:
    archive = make(compression="zstd")

    async def run() -> list[Pointer]:
        work = [page(n, b"<ul><li>%d</li></ul>" % n + bytes(range(200))) for n in range(SAMPLES)]
        return [*await commit(archive, *work), *await commit(archive, page(1)), *await commit(archive, page(2))]

    pointers = asyncio.run(run())
    disk = ObjectDisk(address, gated.environment)
    heads = [disk.read(Path(pointer.file), 0, 4) for pointer in (pointers[0], *pointers[-2:])]
    assert heads == [zstd.MAGIC, zstd.DICTIONARY_FRAME, zstd.DICTIONARY_FRAME]
    assert make().open(pointers[-1]) == page(2)


def test_a_bucket_that_is_not_there_is_told_at_the_start(make: Make, gated: Any) -> None:
    nowhere = ObjectDisk("s3://no-such-bucket/x", gated.environment)
    with pytest.raises(ConfigError, match="no bucket"):
        nowhere.require()
    with pytest.raises(ArchiveAway, match="no such bucket"):
        asyncio.run(commit(make(nowhere), page(1)))


def test_credentials_that_do_not_fit_are_told_at_the_start(make: Make, gated: Any, address: str) -> None:
    gated.refused, gated.status = -1, 403
    with pytest.raises(ConfigError, match="AWS_ACCESS_KEY_ID"):
        make().recover({})
    gated.refused, gated.broken = 0, True
    with pytest.raises(ArchiveAway):
        make().recover({})


def test_a_full_local_disk_is_said_as_on_any_disk(make: Make, gated: Any, address: str) -> None:
    faulty = FaultyDisk()
    archive = make(ObjectDisk(address, gated.environment, faulty))

    async def run() -> list[Pointer]:
        faulty.fault = Fault(faulty.steps + 2, error=28)
        with pytest.raises(Exception, match="no space is left"):
            await commit(archive, page(1))
        faulty.fault = None
        return await commit(archive, page(1))

    (pointer,) = asyncio.run(run())
    assert make().open(pointer) == page(1)


def test_large_objects_go_in_parts_and_come_back_whole(make: Make) -> None:
    payload = bytes(range(256)) * (36 << 10)
    (pointer,) = asyncio.run(commit(make(level=0), page(1, payload)))
    assert make().open(pointer).payload == payload


def test_a_revisit_refers_from_object_to_object(make: Make) -> None:
    payload = b"the same bytes " * 100
    archive = make()

    async def run() -> tuple[Pointer, Pointer]:
        (first,) = await commit(archive, page(1, payload))
        (second,) = await commit(archive, _referring(page(2, payload), first))
        return first, second

    first, second = asyncio.run(run())
    found = make().open(second)
    assert found.payload == payload
    assert found.refers_to is not None
    assert found.refers_to.pointer == first._replace(length=0)


def _referring(capture: Capture, pointer: Pointer) -> Capture:
    return replace(capture, refers_to=Reference("", 0, pointer))


def test_objects_are_joined_in_the_storage(make: Make, gated: Any, address: str, tmp_path: Path) -> None:
    archive = make()

    async def run() -> list[Pointer]:
        return [pointer for n in range(3) for pointer in await commit(archive, page(n))]

    pointers = asyncio.run(run())
    disk = ObjectDisk(address, gated.environment)
    directory = tmp_path / "archive"
    whole = join(disk, directory, "t-joined-0.warc.gz", [pointer.file for pointer in pointers])
    assert disk.size(directory / whole.name) == whole.length
    for pointer in pointers:
        disk.remove(directory / pointer.file)
    assert [make().open(pointer) for pointer in pointers] == [page(0), page(1), page(2)]
    assert [found for _, found in make().scan()] == [page(0), page(1), page(2)]


def test_reading_past_the_end_and_removing_twice_are_as_on_a_local_disk(make: Make, gated: Any, address: str) -> None:
    (pointer,) = asyncio.run(commit(make(), page(1)))
    disk, path = ObjectDisk(address, gated.environment), Path(pointer.file)
    size = disk.size(path)
    assert disk.read(path, size, 10) == b""
    assert len(disk.read(path, size - 3, 10)) == 3
    assert disk.read(path, 0, 0) == b""
    disk.remove(path)
    disk.remove(path)
    with pytest.raises(FileNotFoundError):
        ObjectDisk(address, gated.environment).size(path)
    gated.broken = True
    with pytest.raises(Unreachable):
        disk.names(Path())
    with pytest.raises(OSError, match="cannot be cut"):
        disk.cut(path, 1)


@pytest.mark.parametrize("wrong", ["s3://", "s3://user:word@bucket/x", "s3://bucket/x?key=1", "http://a/b", "bucket"])
def test_an_address_holds_no_secret_and_names_a_bucket(wrong: str) -> None:
    with pytest.raises(ConfigError, match="archive"):
        load(None, {}, [f"archive.store={wrong}"])
