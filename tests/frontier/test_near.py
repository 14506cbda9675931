"""The rows of the index of near-duplicates: they find what comparing with all would, and no more."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.frontier.near import MEMBERS_LIMIT, added, search, slots

DISTANCES = range(1, 8)


class Rows:
    """An index as a store keeps it."""

    def __init__(self, distance: int) -> None:
        self.distance = distance
        self.rows: dict[int, bytes] = {}

    def add(self, value: int, number: int) -> None:
        for slot in slots(value, self.distance):
            row = added(slot, number, self.rows.get(slot.key, b""))
            if row is not None:
                self.rows[slot.key] = row

    def near(self, value: int) -> list[tuple[int, int]]:
        return [tuple(hit) for hit in search(slots(value, self.distance), self.distance, self.rows)]  # type: ignore[misc]


def _values(chance: random.Random, count: int, spread: int) -> Iterator[int]:
    """Numbers of which every second is near the one before it."""
    value = 0
    for place in range(count):
        if place % 2:
            for bit in chance.sample(range(64), chance.randint(0, spread)):
                value ^= 1 << bit
        else:
            value = chance.getrandbits(64)
        yield value


@pytest.mark.parametrize("distance", DISTANCES)
def test_all_that_is_near_is_found_and_nothing_else(distance: int) -> None:
    rows, known = Rows(distance), []
    for number, value in enumerate(_values(random.Random(distance), 400, distance + 2)):
        wanted = sorted(
            ((value ^ other).bit_count(), place)
            for place, other in enumerate(known)
            if (value ^ other).bit_count() <= distance
        )
        assert rows.near(value) == wanted
        rows.add(value, number)
        known.append(value)


@given(st.integers(0, 2**64 - 1), st.sampled_from(DISTANCES), st.data())
def test_whatever_bits_differ_one_band_finds_it(value: int, distance: int, data: st.DataObject) -> None:
    """By the cycle lemma there is a band that is equal and is followed by one that differs in a bit at most."""
    bits = data.draw(st.lists(st.integers(0, 63), unique=True, max_size=distance))
    other = value
    for bit in bits:
        other ^= 1 << bit
    rows = Rows(distance)
    rows.add(value, 7)
    assert rows.near(other) == [(len(bits), 7)]


@given(st.integers(0, 2**64 - 1), st.sampled_from(DISTANCES))
def test_rows_of_two_distances_are_apart(value: int, distance: int) -> None:
    keys = {slot.key for slot in slots(value, distance)}
    assert len(keys) == distance + 1
    assert not keys & {slot.key for other in DISTANCES if other != distance for slot in slots(value, other)}


def test_a_full_row_takes_no_more() -> None:
    rows = Rows(3)
    # Equal in the lowest band, and far from each other in all others.
    chance = random.Random(1)
    for number in range(MEMBERS_LIMIT + 5):
        rows.add(chance.getrandbits(48) << 16, number)
    assert max(map(len, rows.rows.values())) == MEMBERS_LIMIT * 10


@pytest.mark.long
def test_a_million_pages_take_sixty_bytes_each(tmp_path: Path) -> None:
    """As SQLite keeps the rows, which grow in no order."""
    pages, batch, chance = 1_000_000, 3_000, random.Random(1)
    file = tmp_path / "rows.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("CREATE TABLE near_row (key INTEGER PRIMARY KEY, members BLOB NOT NULL) STRICT")
        for begin in range(0, pages, batch):
            made = [slots(chance.getrandbits(64), 3) for _ in range(batch)]
            keys = sorted({slot.key for each in made for slot in each})
            rows = dict(_rows(database, keys))
            for place, slot in ((place, slot) for place, each in enumerate(made) for slot in each):
                rows[slot.key] = added(slot, begin + place, rows.get(slot.key, b"")) or rows[slot.key]
            database.execute("BEGIN")
            database.executemany("REPLACE INTO near_row VALUES (?, ?)", [(key, rows[key]) for key in keys])
            database.execute("COMMIT")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert file.stat().st_size / pages <= 60


def _rows(database: sqlite3.Connection, keys: list[int]) -> Iterator[tuple[int, bytes]]:
    for start in range(0, len(keys), 500):
        chunk = keys[start : start + 500]
        marks = ",".join("?" * len(chunk))
        yield from database.execute(f"SELECT key, members FROM near_row WHERE key IN ({marks})", chunk)


SHORT = 100


def _filled(pages: int) -> tuple[Rows, list[int]]:
    """An index of so many evenly spread fingerprints, and some that are asked for."""
    chance = random.Random(3)
    rows = Rows(3)
    per_row = round(pages / 65536)
    asked = [chance.getrandbits(64) for _ in range(2_000)]
    for value in asked:
        for slot in slots(value, 3):
            rows.rows[slot.key] = chance.randbytes(10 * per_row)
    return rows, asked


def test_a_look_up_among_ten_million_costs_a_few_times_one_among_none() -> None:
    """Measured against a fixed piece of work on the same machine: an absolute time says nothing here. Of many short
    rounds, some are left alone by others."""
    rows, asked = _filled(10_000_000)
    work = [sum(number * number for number in range(1_000)) for _ in range(2)]
    costs = []
    for start in range(0, len(asked), SHORT):
        short = asked[start : start + SHORT]
        begin = time.process_time()
        for value in short:
            rows.near(value)
        middle = time.process_time()
        for _ in short:
            work[0] = sum(number * number for number in range(1_000))
        costs.append((middle - begin) / (time.process_time() - middle))
    # A thousand squares take 40 to 60 microseconds; 20,000 look-ups a second are 50.
    assert min(costs) < 1.5, costs
