"""Whatever the disk refuses, what a flush confirmed stays readable, and the archive goes on when it can."""

from __future__ import annotations

import asyncio
import errno
import itertools
import random
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from warcio.checker import Checker

from crawlspace.archive.disk import AppendFile, RealDisk
from crawlspace.archive.warc import WarcArchive
from crawlspace.errors import ArchiveSuspect, DiskFull, StoreDamaged, StoreError
from crawlspace.exchange import Capture
from crawlspace.testing.disk import Fault, FaultyDisk
from crawlspace.types import Pointer

MakeCapture = Callable[..., Capture]
MakeArchive = Callable[..., WarcArchive]

FAULTS = {
    "disk full": {"error": errno.ENOSPC},
    "disk full after some bytes": {"error": errno.ENOSPC, "taken": 1000},
    "disk full for a while": {"error": errno.ENOSPC, "taken": 10, "lasting": True},
    "quota used up": {"error": errno.EDQUOT},
    "input or output error": {"error": errno.EIO, "taken": 1000},
    "no more answers": {"error": errno.EIO, "lasting": True},
    "short write": {"error": 0, "taken": 1},
    "nothing written": {"error": 0, "taken": 0},
    "read-only": {"error": errno.EROFS, "lasting": True},
}


def groups(capture: MakeCapture) -> list[list[Capture]]:
    """Three groups, the second too large to wait in memory for its flush."""
    chance = random.Random(11)
    small = [capture(url=f"http://a.test/{n}", payload=chance.randbytes(50)) for n in range(6)]
    large = [capture(url=f"http://b.test/{n}", payload=chance.randbytes(600_000)) for n in range(3)]
    return [small[:3], large, small[3:]]


async def commit(archive: WarcArchive, group: list[Capture]) -> list[Pointer]:
    pointers = [await archive.append(each) for each in group]
    await archive.flush()
    return pointers


async def crawl(archive: WarcArchive, disk: FaultyDisk, work: list[list[Capture]]) -> dict[Pointer, Capture]:
    """Commit each group, again after an error, the fault being lifted at its third; what was confirmed."""
    confirmed: dict[Pointer, Capture] = {}
    for group in work:
        confirmed.update(zip(await insist(archive, disk, group), group, strict=True))
    await archive.close()
    return confirmed


async def insist(archive: WarcArchive, disk: FaultyDisk, group: list[Capture]) -> list[Pointer]:
    for attempt in itertools.count(1):
        try:
            return await commit(archive, group)
        except (DiskFull, ArchiveSuspect, StoreError):
            if attempt == 3:
                disk.fault = None
            assert attempt < 5
    raise AssertionError


def check_after_restart(archive: MakeArchive, lengths: dict[str, int], confirmed: dict[Pointer, Capture]) -> None:
    """What a new process finds: everything confirmed, in files that hold nothing broken."""
    fresh = archive()
    fresh.recover({name: length for name, length in lengths.items() if length})
    assert all(fresh.open(pointer) == capture for pointer, capture in confirmed.items())
    assert dict(fresh.scan()).items() >= confirmed.items()


@pytest.mark.parametrize("kind", FAULTS.values(), ids=FAULTS)
def test_a_fault_at_any_step_loses_nothing_confirmed(
    archive: MakeArchive, capture: MakeCapture, directory: Path, kind: dict[str, int]
) -> None:
    """The first step fails, then the second, and so on until the work is done without meeting the fault."""
    work = groups(capture)
    for step in itertools.count(2):
        disk = FaultyDisk(Fault(step, **kind))
        kept = archive(disk)
        confirmed = asyncio.run(crawl(kept, disk, work))
        assert sorted(each.url for each in confirmed.values()) == sorted(each.url for group in work for each in group)
        check_after_restart(archive, dict(kept.flushed), confirmed)
        files = [str(path) for path in directory.iterdir()]
        assert Checker(SimpleNamespace(inputs=files, verbose=False)).process_all() == 0
        for path in directory.iterdir():
            path.unlink()
        if disk.steps < step:
            break
    assert step > 10


def test_the_same_file_goes_on_after_a_full_disk(archive: MakeArchive, capture: MakeCapture, directory: Path) -> None:
    """It is cut back to its last durable length, then grows again."""
    disk = FaultyDisk()
    kept = archive(disk)

    async def run() -> None:
        (first,) = await commit(kept, [capture()])
        durable = kept.flushed[first.file]
        disk.fault = Fault(disk.steps + 1, errno.ENOSPC, taken=7)
        with pytest.raises(DiskFull, match="MiB free"):
            await commit(kept, [capture(payload=b"two")])
        assert (directory / first.file).stat().st_size == durable
        (again,) = await commit(kept, [capture(payload=b"two")])
        assert again == Pointer(first.file, durable, again.length)
        assert kept.open(again) == capture(payload=b"two")
        await kept.close()

    asyncio.run(run())


def test_a_file_whose_fsync_failed_is_never_written_again(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    """Not cut either: nobody knows what is in it. The next append begins a new one, the next start cuts the old."""
    disk = FaultyDisk()
    kept = archive(disk)

    async def run() -> None:
        (first,) = await commit(kept, [capture()])
        disk.fault = Fault(disk.steps + 2)
        lost = await kept.append(capture(payload=b"two"))
        with pytest.raises(ArchiveSuspect, match=first.file):
            await kept.flush()
        before = (directory / first.file).read_bytes()
        (again,) = await commit(kept, [capture(payload=b"two")])
        assert lost.file == first.file != again.file
        assert (directory / first.file).read_bytes() == before
        assert [pointer for pointer, _ in kept.scan()] == [first, again]
        await kept.close()

    asyncio.run(run())


def test_a_directory_that_cannot_be_written_is_no_suspect_file(archive: MakeArchive, capture: MakeCapture) -> None:
    """There is no file yet; the message names the directory and the reason."""
    disk = FaultyDisk(Fault(2, errno.EROFS))
    with pytest.raises(StoreError, match="cannot be used: Read-only file system") as caught:
        asyncio.run(commit(archive(disk), [capture()]))
    assert type(caught.value) is StoreError


def test_no_room_for_a_new_file_is_a_full_disk(archive: MakeArchive, capture: MakeCapture) -> None:
    """As for any other byte."""
    with pytest.raises(DiskFull):
        asyncio.run(commit(archive(FaultyDisk(Fault(2, errno.ENOSPC))), [capture()]))


def test_a_file_that_never_held_anything_is_not_left_behind(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    """An empty file is no archive to other people's tools."""
    disk = FaultyDisk(Fault(3, errno.ENOSPC))
    kept = archive(disk)
    with pytest.raises(DiskFull):
        asyncio.run(commit(kept, [capture()]))
    assert [path.stat().st_size for path in directory.iterdir()] == [0]
    asyncio.run(kept.close())
    assert list(directory.iterdir()) == []


def test_names_are_not_tried_for_ever(archive: MakeArchive, capture: MakeCapture) -> None:
    """A disk that says of every name that it is there gets an end too."""
    disk = FaultyDisk(Fault(2, errno.EEXIST, lasting=True))
    with pytest.raises(StoreError, match="no free name"):
        asyncio.run(commit(archive(disk), [capture()]))


def test_a_full_disk_that_cannot_tell_its_space_is_still_a_full_disk(
    archive: MakeArchive, capture: MakeCapture
) -> None:
    """The figure is a courtesy."""

    class Mute(FaultyDisk):
        def free(self, path: Path) -> int:
            raise OSError(errno.EIO, "mute")

    with pytest.raises(DiskFull, match="free space unknown"):
        asyncio.run(commit(archive(Mute(Fault(3, errno.ENOSPC))), [capture()]))


def test_closing_gives_the_file_back_even_when_its_flush_fails(archive: MakeArchive, capture: MakeCapture) -> None:
    """The error is told; the archive can be used again."""
    disk = FaultyDisk(Fault(4))
    kept = archive(disk)

    async def run() -> None:
        await kept.append(capture())
        with pytest.raises(ArchiveSuspect):
            await kept.close()
        (pointer,) = await commit(kept, [capture()])
        assert kept.open(pointer) == capture()
        await kept.close()

    asyncio.run(run())


class _Gate(RealDisk):
    """Its files' syncs wait until the gate opens, then fail if told to."""

    def __init__(self, error: OSError | None) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()
        self.error = error

    def create(self, path: Path) -> AppendFile:
        file = super().create(path)
        gate = self

        class Gated:
            def write(self, data: bytes | memoryview) -> int:
                return file.write(data)

            def truncate(self, size: int) -> None:
                file.truncate(size)

            def sync(self) -> None:
                gate.entered.set()
                gate.open.wait()
                if gate.error:
                    raise gate.error
                file.sync()

            def close(self) -> None:
                file.close()

        return Gated()


@pytest.mark.parametrize("error", [None, OSError(errno.EIO, "no")])
def test_an_append_waits_for_a_flush_whose_caller_was_cancelled(
    archive: MakeArchive, capture: MakeCapture, error: OSError | None
) -> None:
    """The disk is still at work on the file; the answer that nobody heard changes nothing that was promised."""
    disk = _Gate(error)
    kept = archive(disk)

    async def run() -> None:
        await kept.append(capture())
        flush = asyncio.create_task(kept.flush())
        await asyncio.to_thread(disk.entered.wait)
        flush.cancel()
        with pytest.raises(asyncio.CancelledError):
            await flush
        append = asyncio.create_task(kept.append(capture(payload=b"two")))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not append.done()
        disk.open.set()
        pointer = await append
        disk.error = None
        await kept.close()
        assert kept.open(pointer) == capture(payload=b"two")

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(40))
def test_a_loss_of_power_at_any_step_loses_nothing_confirmed(
    archive: MakeArchive, capture: MakeCapture, directory: Path, seed: int
) -> None:
    """Bytes that were not synced are gone, torn or zeros; the start cuts them and the archive is whole."""
    chance = random.Random(seed)
    disk = FaultyDisk(Fault(chance.randint(2, 16), errno.EIO, lasting=True))
    kept = archive(disk)
    confirmed: dict[Pointer, Capture] = {}

    async def run() -> None:
        for group in groups(capture):
            confirmed.update(zip(await commit(kept, group), group, strict=True))

    try:
        asyncio.run(run())
    except StoreError:
        assert disk.steps >= 2
    disk.fault = None
    disk.lose_power(chance)
    check_after_restart(archive, dict(kept.flushed), confirmed)


def test_a_file_that_lost_durable_bytes_is_damage_and_is_left_alone(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    """A disk that lied about its sync: said at the start, with what to do, and nothing is changed."""
    kept = archive()
    (pointer,) = asyncio.run(commit(kept, [capture()]))
    asyncio.run(kept.close())
    path = directory / pointer.file
    durable = kept.flushed[pointer.file]
    path.write_bytes(path.read_bytes()[:-1])
    (directory / "torn-1.warc.gz").write_bytes(b"torn")
    with pytest.raises(StoreDamaged, match=f"{durable - 1} bytes where {durable} were stored") as caught:
        archive().recover(kept.flushed)
    assert caught.value.hint
    assert (directory / "torn-1.warc.gz").exists()
    path.unlink()
    with pytest.raises(StoreDamaged, match="has 0 bytes"):
        archive().recover(kept.flushed)
