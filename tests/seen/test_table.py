"""The table in memory keeps its promises under keys that want one place, and while it grows."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import pytest

from crawlspace.seen import vectors
from crawlspace.seen.keys import words
from crawlspace.seen.table import SLOTS, Hashed, Multipliers, Table

MULTIPLIERS = Multipliers(0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
WORD = 1 << 64
TOP = WORD - 1


def packed(table: Table, hashes: list[Hashed]) -> bytes:
    """Keys with these hashes, end to end."""
    return b"".join(key_of(table, one) for one in hashes)


def key_of(table: Table, hashed: Hashed) -> bytes:
    """The key that has this hash."""
    first = hashed.first * pow(MULTIPLIERS.first, -1, WORD) % WORD
    if table.second is None:
        return first.to_bytes(8, sys.byteorder)
    first = (first - hashed.second * MULTIPLIERS.second) % WORD
    return first.to_bytes(8, sys.byteorder) + hashed.second.to_bytes(8, sys.byteorder)


def add_plainly(table: Table, hashes: list[Hashed]) -> list[bool]:
    answers = []
    for one in hashes:
        answers.append(table.add(one))
        while not table.has_room_for(1):
            table.grow()
    return answers


def add_with_numpy(table: Table, hashes: list[Hashed]) -> list[bool]:
    return vectors.add_many(table, packed(table, hashes))


ENGINES = {"plain": add_plainly, "numpy": add_with_numpy}
Adder = Callable[[Table, list[Hashed]], list[bool]]


@pytest.fixture(params=ENGINES)
def add(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Adder:
    """Adds hashes by one of the two ways; both grow the table in several chunks."""
    monkeypatch.setattr(vectors, "_CHUNK", 5)
    return ENGINES[request.param]


@pytest.fixture(params=[8, 16])
def table(request: pytest.FixtureRequest) -> Table:
    return Table(request.param, MULTIPLIERS)


def assert_sound(table: Table, hashes: set[Hashed]) -> None:
    """All keys are there once; buckets fill from the left, and are full between a key's home and its own."""
    rows = [list(table.first[at : at + SLOTS]) for at in range(0, len(table.first), SLOTS)]
    assert len(rows) == table.buckets
    assert all(0 not in row[: SLOTS - row.count(0)] for row in rows)
    stored = [
        Hashed(word, 0 if table.second is None else table.second[at * SLOTS + slot])
        for at, row in enumerate(rows)
        for slot, word in enumerate(row)
        if word
    ]
    assert sorted(stored) == sorted(one for one in hashes if one.first)
    assert len(table) == len(hashes)
    for one in stored:
        assert table.holds(one)


def hostile(table: Table, kind: str, count: int) -> list[Hashed]:
    """Hashes that meet in one place; with two words also ones whose first word is the same."""
    chance = random.Random(kind)
    second = 0 if table.second is None else TOP
    firsts = {
        "the first bucket": lambda: chance.randrange(1, 1 << 40),
        "the last bucket": lambda: TOP - chance.randrange(1 << 40),
        "both ends": lambda: chance.choice([TOP - chance.randrange(1 << 40), chance.randrange(1, 1 << 40)]),
        "anywhere, many at the end": lambda: chance.choice(
            [TOP - chance.randrange(1 << 40), *[chance.randrange(WORD)] * 9]
        ),
        "the middle": lambda: (WORD >> 1) + chance.randrange(1 << 40),
        "anywhere": lambda: chance.randrange(WORD),
        "one word": lambda: TOP if second else chance.randrange(1, 1 << 20),
        "the empty word": lambda: 0 if second else chance.randrange(3),
    }
    return [Hashed(firsts[kind](), chance.randrange(second) if second else 0) for _ in range(count)]


KINDS = [
    "the first bucket",
    "the last bucket",
    "both ends",
    "anywhere, many at the end",
    "the middle",
    "anywhere",
    "one word",
    "the empty word",
]


@pytest.mark.parametrize("kind", KINDS)
def test_keys_that_want_one_place_are_all_kept_while_the_table_grows(table: Table, add: Adder, kind: str) -> None:
    hashes = hostile(table, kind, 900)
    known: set[Hashed] = set()
    for start in range(0, len(hashes), 225):
        batch = hashes[start : start + 225]
        answers = [one not in known and not known.add(one) for one in batch]  # type: ignore[func-returns-value]
        assert add(table, batch) == answers
        assert_sound(table, known)
    assert not any(add(table, hashes))


def test_the_two_ways_take_turns_on_one_table(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_CHUNK", 5)
    hashes = hostile(table, "anywhere", 3000)
    for number, start in enumerate(range(0, len(hashes), 100)):
        assert all([add_plainly, add_with_numpy][number % 2](table, hashes[start : start + 100]))
    assert_sound(table, set(hashes))


def test_a_batch_larger_than_the_table_makes_it_grow_as_often_as_needed(table: Table) -> None:
    hashes = list(dict.fromkeys(hostile(table, "anywhere", 50_000)))
    assert all(add_with_numpy(table, hashes))
    assert len(table) == len(hashes)
    assert not any(add_with_numpy(table, hashes))


def test_a_hash_belongs_to_one_key(table: Table) -> None:
    """What is stored is the hash alone, so two keys may never share one."""
    chance = random.Random(7)
    for _ in range(200):
        key = chance.randbytes(8 if table.second is None else 16)
        assert key_of(table, table.hashed(*words(key))) == key


def test_a_table_that_just_grew_is_64_percent_full(table: Table) -> None:
    """Hence the bytes that a key takes at worst."""
    filled = []
    for one in hostile(table, "anywhere", 4000):
        table.add(one)
        if not table.has_room_for(1):
            table.grow()
            filled.append(table.count / (SLOTS * table.buckets))
    assert len(filled) > 5
    assert all(0.63 < part < 0.65 for part in filled)
