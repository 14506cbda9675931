"""Files that are packed themselves come out whole, or as far as they go, and never larger than allowed."""

from __future__ import annotations

import gzip
import random

import pytest

from crawlspace.pages.packed import PIECE, RATIO, UNPACKED, is_packed, pieces

TEXT = random.Random(1).randbytes(3 * PIECE + 5)
PACKED = gzip.compress(TEXT)


def out(body: bytes, limit: int = UNPACKED) -> bytes:
    found = list(pieces(body, limit))
    assert all(0 < len(piece) <= PIECE for piece in found)
    return b"".join(found)


def test_what_is_not_packed_comes_as_it_is() -> None:
    assert out(TEXT) == TEXT
    assert out(b"") == b""
    assert not is_packed(TEXT)


def test_members_one_after_another_are_one_file_and_rubbish_behind_them_is_none() -> None:
    assert is_packed(PACKED)
    assert out(PACKED) == TEXT
    assert out(PACKED + gzip.compress(b"more") + b"rubbish") == TEXT + b"more"
    assert out(gzip.compress(b"") + gzip.compress(b"more")) == b"more"


@pytest.mark.parametrize("end", [12, PIECE, len(PACKED) - 4])
def test_what_was_cut_or_damaged_comes_as_far_as_it_goes(end: int) -> None:
    assert TEXT.startswith(out(PACKED[:end]))
    damaged = PACKED[:end] + bytes([PACKED[end] ^ 255]) + PACKED[end + 1 :]
    assert len(out(damaged)) <= len(TEXT)


def test_the_limit_holds_whether_packed_or_not() -> None:
    for limit in (1, PIECE, PIECE + 1):
        assert out(TEXT, limit) == out(PACKED, limit) == TEXT[:limit]


def test_a_bomb_ends_at_the_ratio() -> None:
    bomb = gzip.compress(bytes(100 << 20))
    assert (1 << 20) < len(out(bomb)) <= RATIO * len(bomb) < 100 << 20
