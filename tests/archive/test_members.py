"""Gzip members: taken whole or not at all, and never more than the cap."""

from __future__ import annotations

import gzip
import random
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.archive.members import FASTEST, SMALLEST, BrokenMember, Member, deflate, members
from crawlspace.archive.packing import SMALL, GzipPacking
from crawlspace.archive.record import encode

LARGE = 100 * 1024 * 1024
SAMPLES = Path(__file__).parents[1] / "data" / "warc"
REFUSED = frozenset({"clipped.warc.gz"})


def read_all(data: bytes, cap: int = 1 << 20, start: int = 0) -> list[Member]:
    return list(members(lambda offset, length: data[offset : offset + length], start, len(data), cap))


@pytest.mark.parametrize("level", range(FASTEST, SMALLEST + 1))
def test_every_level_gives_a_member_that_the_standard_library_opens(level: int) -> None:
    """And the same bytes each time, without time or name."""
    data = b"some page " * 1000
    member = deflate(data, level)
    assert gzip.decompress(member) == data
    assert member == deflate(data, level)
    assert member[4:8] == bytes(4)


def test_members_are_found_one_after_another_with_their_places() -> None:
    """Sizes around that of the chunk in which files are read, and the empty one."""
    chance = random.Random(1)
    contents = [chance.randbytes(size) for size in (0, 1, 65_500, 65_536, 65_600, 200_000, 3)]
    data = b"".join(deflate(each, 1) for each in contents)
    found = read_all(data)
    assert [member.data for member in found] == contents
    assert b"".join(data[member.offset : member.offset + member.length] for member in found) == data
    assert [member.data for member in read_all(data, start=found[3].offset)] == contents[3:]


def test_every_flipped_bit_is_found_or_means_nothing() -> None:
    """What is taken has the data that went in; only header bits that say nothing of the data and padding are idle."""
    data = b"a page of a site" * 4
    member = deflate(data, 1)
    idle = 0
    for bit in range(len(member) * 8):
        damaged = bytearray(member)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            (found,) = read_all(bytes(damaged))
        except BrokenMember:
            continue
        assert found.data == data
        idle += 1
    flags, time_and_system, padding = 4, 48, 7
    assert idle <= flags + time_and_system + padding


def test_a_member_cut_anywhere_is_not_taken() -> None:
    """The one before it is."""
    first, second = deflate(b"first", 1), deflate(b"second", 1)
    for size in range(1, len(second)):
        found = members(lambda at, n, d=first + second[:size]: d[at : at + n], 0, len(first) + size, 100)
        assert next(found).data == b"first"
        with pytest.raises(BrokenMember):
            next(found)


@pytest.mark.parametrize(("cap", "fits"), [(999, False), (1000, True), (1001, True)])
def test_the_cap_is_exact(cap: int, fits: bool) -> None:
    """A member of just that size is taken."""
    if fits:
        assert len(read_all(deflate(bytes(1000), 1), cap)) == 1
    else:
        with pytest.raises(BrokenMember, match="more than 999 bytes"):
            read_all(deflate(bytes(1000), 1), cap)


def test_a_bomb_is_left_at_the_cap() -> None:
    """A hundred megabytes of zeros in a hundred kilobytes: none of it is kept beyond the cap."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(LARGE >> 20)) + packer.flush()
    assert len(bomb) < 200_000
    with pytest.raises(BrokenMember, match="more than"):
        read_all(bomb, 1 << 20)


@given(st.binary(max_size=400), st.integers(0, 3))
def test_arbitrary_bytes_end(noise: bytes, after: int) -> None:
    """As members or as a broken one, wherever the noise begins."""
    data = deflate(b"x", 1) * after + noise
    taken = 0
    try:
        for member in members(lambda at, n: data[at : at + n], 0, len(data), 1000):
            taken += member.length
    except BrokenMember:
        assert noise
    assert after * len(deflate(b"x", 1)) <= taken <= len(data)


@pytest.mark.parametrize("path", sorted(path for path in SAMPLES.iterdir() if path.suffix not in (".json", ".md")))
def test_every_archive_of_other_makers_is_read_or_refused_with_a_reason(path: Path) -> None:
    """Compressed or not, of the older format or broken on purpose: members come out, or words say why not."""
    data = path.read_bytes()
    if path.name in REFUSED:
        with pytest.raises(BrokenMember, match=r"\w+ \w+"):
            read_all(data, cap=64 << 20)
    else:
        assert read_all(data, cap=64 << 20)


def test_records_that_are_not_compressed_are_found_by_their_lengths() -> None:
    record = encode([("WARC-Type", "resource")], b"\r\n\r\nWARC/1.1\r\nx" * 10)
    long = encode([("WARC-Type", "resource")], bytes(200_000))
    found = read_all(record + long + record)
    assert [member.data for member in found] == [record, long, record]
    assert [member.data for member in read_all(record + long, start=len(record))] == [long]
    for data, why in (
        (record[:-5], "too early"),
        (record + b"junk", "no record begins"),
        (b"WARC/1.1\r\nContent-Length: 5", "do not end"),
        (b"WARC/1.1\r\nA: b\r\n\r\n", "name no length"),
        (b"WARC/1.1\r\nContent-Length: 99999999\r\n\r\n", "more than"),
    ):
        with pytest.raises(BrokenMember, match=why):
            read_all(data)


@pytest.mark.parametrize(("level", "small"), [(0, 0), (1, 0), (2, 2), (3, 3)])
def test_small_records_get_no_code_of_their_own_unless_space_is_asked_for(level: int, small: int) -> None:
    """Packed as at the fastest level, which takes a quarter of the time."""
    packer = GzipPacking(level).packer()
    least, more = TEXT[:SMALL], TEXT[: SMALL + 1]
    assert len(more) > SMALL
    assert packer.pack(least) == deflate(least, small)
    assert packer.pack(more) == deflate(more, level)
    assert deflate(least, 0) != deflate(least, 1)


TEXT = b"".join(b"<li><a href='/page/%d'>page %d</a>" % (n * n, n) for n in range(300))
