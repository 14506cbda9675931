"""What a start does to files that a crash left behind: whole records stay, the rest goes."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlspace.archive.members import deflate
from crawlspace.archive.repair import Repair
from crawlspace.archive.warc import WarcArchive
from crawlspace.errors import StoreError
from crawlspace.exchange import Capture
from crawlspace.testing.disk import Fault, FaultyDisk
from crawlspace.types import Pointer

MakeCapture = Callable[..., Capture]
MakeArchive = Callable[..., WarcArchive]


@pytest.fixture
def written(archive: MakeArchive, capture: MakeCapture) -> list[Pointer]:
    """Three captures in one closed file."""
    kept = archive()

    async def run() -> list[Pointer]:
        pointers = [await kept.append(capture(payload=bytes([65 + n]) * 20)) for n in range(3)]
        await kept.close()
        return pointers

    return asyncio.run(run())


def test_a_file_cut_at_any_byte_keeps_its_complete_records(
    archive: MakeArchive, written: list[Pointer], directory: Path
) -> None:
    """Every length from the second capture's end to the whole file, the store knowing nothing of it."""
    path = directory / written[0].file
    whole = path.read_bytes()
    response_end = written[2].offset + written[2].length
    for size in range(written[2].offset, len(whole)):
        path.write_bytes(whole[:size])
        kept = response_end if size >= response_end else written[2].offset
        expected = [] if kept == size else [Repair(path.name, size, kept)]
        assert archive().recover({}) == expected
        assert path.read_bytes() == whole[:kept]
        survivors = [pointer for pointer, _ in archive().scan()]
        assert survivors == (written if kept == response_end else written[:2])


def test_a_file_cut_at_any_byte_of_its_first_record_is_removed(
    archive: MakeArchive, written: list[Pointer], directory: Path
) -> None:
    """An empty file is no archive to other people's tools."""
    path = directory / written[0].file
    whole = path.read_bytes()
    for size in range(written[0].offset):
        path.write_bytes(whole[:size])
        assert archive().recover({}) == [Repair(path.name, size, 0)]
        assert not path.exists()


def test_a_flipped_bit_past_the_known_length_cuts_from_its_record(
    archive: MakeArchive, written: list[Pointer], directory: Path
) -> None:
    """Or it is one of the few that mean nothing (time and system in the header, padding), and all is as it was."""
    path = directory / written[0].file
    whole = path.read_bytes()
    before = list(archive().scan())
    start, end = written[2].offset, written[2].offset + written[2].length
    idle = 0
    for bit in range(start * 8, end * 8, 5):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        if archive().recover({path.name: start}):
            assert path.read_bytes() == whole[:start]
        else:
            idle += 1
            assert list(archive().scan()) == before
    assert idle <= 16


def test_what_the_store_knows_is_not_read_again(
    archive: MakeArchive, written: list[Pointer], directory: Path
) -> None:
    """A start must not cost time by the size of the archive: damage before the known length goes unseen."""
    path = directory / written[0].file
    damaged = bytearray(path.read_bytes())
    damaged[0:10] = bytes(10)
    path.write_bytes(damaged)
    assert archive().recover({path.name: len(damaged)}) == []
    assert archive().recover({path.name: written[2].offset}) == []
    assert path.read_bytes() == damaged


@pytest.mark.parametrize(
    "tail",
    [bytes(4096), b"\x1f\x8b", deflate(b"no record", 1), deflate(b"", 1), random.Random(5).randbytes(500)],
    ids=["zeros", "a member's first bytes", "a member that is no record", "an empty member", "noise"],
)
def test_a_tail_that_is_no_record_is_cut(
    archive: MakeArchive, written: list[Pointer], directory: Path, tail: bytes
) -> None:
    """Even when it is a whole gzip member."""
    path = directory / written[0].file
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(tail)
    assert archive().recover({path.name: size}) == [Repair(path.name, size + len(tail), size)]
    assert path.stat().st_size == size


def test_files_of_others_are_left_alone(archive: MakeArchive, directory: Path) -> None:
    """Only archive files of the directory itself are looked at; links are not followed."""
    kept = archive()
    (directory / "notes.txt").write_bytes(b"torn")
    (directory / ".hidden.warc.gz").write_bytes(b"torn")
    (directory / "sub-1.warc.gz").mkdir()
    outside = directory.parent / "outside.warc.gz"
    outside.write_bytes(b"torn")
    (directory / "link-1.warc.gz").symlink_to(outside)
    assert kept.recover({}) == []
    assert outside.read_bytes() == b"torn"


def test_a_disk_that_refuses_the_repair_is_said_in_one_line(archive: MakeArchive, directory: Path) -> None:
    """The crawl cannot start then."""
    kept = archive(FaultyDisk(Fault(2, errno.EROFS)))
    (directory / "torn-1.warc.gz").write_bytes(b"torn")
    with pytest.raises(StoreError, match="cannot be repaired: Read-only file system"):
        kept.recover({})


def test_a_repair_that_was_interrupted_anywhere_is_repeated(
    archive: MakeArchive, written: list[Pointer], directory: Path
) -> None:
    """Whatever step fails, the next start finishes it, and what is stored stays."""
    path = directory / written[0].file
    whole = path.read_bytes()
    for step in (2, 3, 4):
        path.write_bytes(whole + b"torn")
        (directory / "torn-1.warc.gz").write_bytes(b"torn")
        with pytest.raises(StoreError):
            archive(FaultyDisk(Fault(step))).recover({path.name: len(whole)})
        archive().recover({path.name: len(whole)})
        assert [each.name for each in directory.iterdir()] == [path.name]
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("repair", "words"), [(Repair("x", 9, 4), "from 9 to 4 bytes"), (Repair("x", 9, 0), "removed, 9 bytes")]
)
def test_a_repair_tells_in_words_what_was_done(repair: Repair, words: str) -> None:
    """It is shown to people at the start."""
    assert words in str(repair)
