"""Zstandard files: what goes in comes out, by a dictionary or without, and nothing hostile bursts or hangs."""

from __future__ import annotations

import asyncio
import errno
import itertools
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from fastwarc.warc import ArchiveIterator

from crawlspace.archive import packing, zstd
from crawlspace.archive.members import BrokenMember, Member, members
from crawlspace.archive.repair import Repair
from crawlspace.archive.warc import ArchiveSettings, WarcArchive
from crawlspace.errors import ArchiveSuspect, DiskFull, StoreDamaged, StoreError
from crawlspace.exchange import Capture
from crawlspace.testing.disk import Fault, FaultyDisk
from crawlspace.types import Pointer

MakeCapture = Callable[..., Capture]
MakeArchive = Callable[..., WarcArchive]

ZSTD = ArchiveSettings(compression="zstd")


def read_all(data: bytes, cap: int = 10 << 20, start: int = 0) -> list[Member]:
    return list(members(lambda offset, length: data[offset : offset + length], start, len(data), cap))


@pytest.fixture(scope="module")
def dictionary() -> bytes:
    """One that is learnt from pages that have much in common."""
    chance = random.Random(3)
    common = b"<div class='page'><nav>home about</nav>" + chance.randbytes(3000).hex().encode()
    made = zstd.train([common + chance.randbytes(400) + common[:900] for _ in range(300)])
    assert made
    return made


@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize("with_dictionary", [False, True])
def test_frames_are_found_one_after_another_with_their_places(
    level: int, with_dictionary: bool, dictionary: bytes
) -> None:
    chance = random.Random(1)
    contents = [chance.randbytes(size) for size in (0, 1, 65_500, 65_536, 300_000, 3)] + [b"abc" * 200_000]
    packer = zstd.Packer(level, dictionary if with_dictionary else b"")
    data = packer.head + b"".join(packer.pack(each) for each in contents)
    found = read_all(data)
    assert [member.data for member in found] == contents
    assert packer.head + b"".join(data[each.offset : each.offset + each.length] for each in found) == data
    assert [member.data for member in read_all(data, start=found[3].offset)] == contents[3:]
    assert packer.pack(contents[2]) == zstd.Packer(level, dictionary if with_dictionary else b"").pack(contents[2])


def test_every_flipped_bit_is_found_or_means_nothing() -> None:
    """A flip may make a frame skippable or name another window; what is taken has the data that went in."""
    data = b"a page of a site" * 4
    frame = zstd.Packer(1).pack(data)
    taken = 0
    for bit in range(len(frame) * 8):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            found = read_all(bytes(damaged))
        except BrokenMember:
            continue
        assert all(member.data == data for member in found)
        taken += bool(found)
    assert taken <= 8


def test_a_frame_that_ends_early_is_broken_at_every_length(dictionary: bytes) -> None:
    packer = zstd.Packer(1, dictionary)
    data = packer.head[:8] + packer.head[8:] + packer.pack(random.Random(2).randbytes(300))
    for size in [*range(1, 12), len(packer.head) - 1, *range(len(packer.head) + 1, len(data))]:
        with pytest.raises(BrokenMember):
            read_all(data[:size])


def test_what_unfolds_beyond_the_cap_is_refused_before_it_is_in_memory() -> None:
    """20 bytes that stand for 4 TiB: blocks that repeat one byte, and no word of how many there are."""
    header = zstd.MAGIC + bytes([0x00, 0x58])
    block = struct.pack("<I", 1 << 1 | (128 << 10) << 3)[:3] + b"x"
    with pytest.raises(BrokenMember, match="more than"):
        read_all(header + block * 1000, cap=1 << 20)


def test_a_frame_that_wants_a_huge_window_is_refused() -> None:
    header = zstd.MAGIC + bytes([0x00, 0xF8])
    last = struct.pack("<I", 1 | 4 << 3)[:3] + b"abcd"
    with pytest.raises(BrokenMember):
        read_all(header + last)


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (zstd.DICTIONARY_FRAME + struct.pack("<I", 1 << 30), "has 1073741824 bytes"),
        (zstd.DICTIONARY_FRAME + struct.pack("<I", 100) + b"short", "ends too early"),
        (zstd.DICTIONARY_FRAME + struct.pack("<I", 4) + b"none", "is none"),
        (zstd.DICTIONARY_FRAME + struct.pack("<I", 12) + b"\x37\xa4\x30\xec" + b"\xff" * 8, "damaged"),
    ],
)
def test_a_dictionary_that_is_none_is_refused(head: bytes, why: str) -> None:
    with pytest.raises(BrokenMember, match=why):
        read_all(head + zstd.Packer(1).pack(b"x"))


def test_a_packed_dictionary_is_unpacked_and_other_skippable_frames_are_passed_over(dictionary: bytes) -> None:
    """As other writers of such files have them."""
    packed = zstandard.ZstdCompressor().compress(dictionary)
    head = zstd.DICTIONARY_FRAME + struct.pack("<I", len(packed)) + packed
    note = b"\x50\x2a\x4d\x18" + struct.pack("<I", 70_000) + bytes(70_000)
    frame = zstd.Packer(1, dictionary).pack(b"one page")
    assert [member.data for member in read_all(head + note + frame + note + frame)] == [b"one page"] * 2
    with pytest.raises(BrokenMember, match="too early"):
        read_all(head + frame + note[:-1])


def store(archive: WarcArchive, captures: list[Capture]) -> list[Pointer]:
    async def run() -> list[Pointer]:
        pointers = [await archive.append(each) for each in captures]
        await archive.close()
        return pointers

    return asyncio.run(run())


def pages(capture: MakeCapture, count: int, start: int = 0) -> list[Capture]:
    chance = random.Random(start)
    common = "".join(f"<li class='entry'>{word}</li>" for word in ["alpha", "beta", "gamma", "delta", "epsilon"] * 20)
    return [
        capture(url=f"http://a.test/{n}", payload=f"<ul>{common}</ul>{chance.random()}{n}".encode())
        for n in range(start, start + count)
    ]


def test_a_crawl_learns_its_dictionary_once_and_files_open_by_themselves(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    """The first file has none; those after it begin with one; a crawl that goes on takes it from there."""
    work = pages(capture, packing.SAMPLES + 40)
    pointers = store(archive(settings=ZSTD), work)
    later = pages(capture, 3, start=1000)
    pointers += store(archive(settings=ZSTD), later)
    names = sorted(path.name for path in directory.iterdir())
    heads = [zstd.dictionary_of(lambda o, n, path=directory / name: path.read_bytes()[o : o + n]) for name in names]  # type: ignore[misc]
    assert [bool(head) for head in heads] == [False, True, True]
    assert heads[1] == heads[2]
    fresh = archive()
    assert [fresh.open(pointer) for pointer in pointers] == work + later
    assert len(list(fresh.scan())) == len(pointers)
    first, second = pointers[0], pointers[-4]
    assert second.length < first.length / 2


def test_without_the_setting_there_is_no_dictionary(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    store(
        archive(settings=ArchiveSettings(compression="zstd", dictionary=False)), pages(capture, packing.SAMPLES + 5)
    )
    (file,) = directory.iterdir()
    assert file.read_bytes()[:4] == zstd.MAGIC


def test_records_that_have_nothing_in_common_give_no_dictionary(archive: MakeArchive, capture: MakeCapture) -> None:
    """And the crawl goes on without."""
    made = packing.ZstdPacking(1)
    for _ in range(packing.SAMPLES):
        made.learn(b"")
    assert made.is_ready
    made.train()
    assert not made.is_ready
    assert made.packer().head == b""


def test_fastwarc_reads_every_record_of_a_file_without_dictionary(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    """Version 2 of it knows no dictionaries; other tools for web archives do not read this format at all yet."""
    work = pages(capture, 5)
    store(archive(settings=ZSTD), work)
    (file,) = directory.iterdir()
    with file.open("rb") as opened:
        read = ArchiveIterator(opened, parse_http=False)
        records = [(record.headers["WARC-Type"], record.verify_block_digest()) for record in read]
    assert records == [("warcinfo", True), *[("response", True), ("request", True)] * 5]


def test_a_torn_file_keeps_its_complete_records(archive: MakeArchive, capture: MakeCapture, directory: Path) -> None:
    """Cut at any byte of its last record, its dictionary being at its head."""
    store(archive(settings=ZSTD), pages(capture, packing.SAMPLES + 1))
    pointers = store(archive(settings=ZSTD), pages(capture, 2))
    path = directory / pointers[0].file
    whole = path.read_bytes()
    assert whole[:4] == zstd.DICTIONARY_FRAME
    end = pointers[1].offset
    for size in range(end + 1, end + pointers[1].length, 9):
        path.write_bytes(whole[:size])
        assert archive().recover({path.name: pointers[0].offset}) == [Repair(path.name, size, end)]
    for size in (1, 5, 5000, pointers[0].offset - 1):
        path.write_bytes(whole[:size])
        assert archive().recover({}) == [Repair(path.name, size, 0)]


@pytest.mark.parametrize("kind", [{"error": errno.ENOSPC, "taken": 1000}, {"error": errno.EIO}])
def test_a_fault_at_any_step_loses_nothing_confirmed(
    archive: MakeArchive, capture: MakeCapture, directory: Path, kind: dict[str, int]
) -> None:
    """A full disk takes back also a file's dictionary; a file whose fsync failed is never pointed into."""
    store(archive(settings=ZSTD), pages(capture, packing.SAMPLES + 1))
    work = pages(capture, 4, start=500)
    for step in itertools.count(2):
        disk = FaultyDisk(Fault(step, **kind))
        kept = archive(disk, settings=ZSTD)
        confirmed = asyncio.run(insist(kept, work))
        fresh = archive()
        fresh.recover({name: length for name, length in kept.flushed.items() if length})
        assert [fresh.open(pointer) for pointer in confirmed] == work
        for pointer in confirmed:
            (directory / pointer.file).unlink(missing_ok=True)
        for name in kept.flushed:
            (directory / name).unlink(missing_ok=True)
        if disk.steps < step:
            break
    assert step > 4


async def insist(archive: WarcArchive, work: list[Capture]) -> list[Pointer]:
    for _ in range(3):
        try:
            pointers = [await archive.append(each) for each in work]
            await archive.flush()
            await archive.close()
            return pointers
        except (DiskFull, ArchiveSuspect, StoreError):
            continue
    raise AssertionError


def test_a_damaged_record_is_told_and_not_returned(
    archive: MakeArchive, capture: MakeCapture, directory: Path
) -> None:
    (pointer,) = store(archive(settings=ZSTD), pages(capture, 1))
    data = bytearray((directory / pointer.file).read_bytes())
    data[pointer.offset + 60] ^= 1
    (directory / pointer.file).write_bytes(data)
    with pytest.raises(StoreDamaged, match="cannot be read"):
        archive().open(pointer)
