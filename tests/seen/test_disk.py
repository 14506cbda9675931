"""The set on disk outlives what befalls its process, and says clearly what it cannot open."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from crawlspace.errors import CrawlspaceError, DiskFull, StoreDamaged, StoreError, UsageError
from crawlspace.seen import DiskSeenSet, DiskSettings
from crawlspace.seen.disk import _in_our_words

ADDS_FOR_EVER = """
import random, sys
from crawlspace.seen import DiskSeenSet
seen, chance = DiskSeenSet(sys.argv[1]), random.Random(int(sys.argv[2]))
while True:
    answers = seen.add_many([chance.randbytes(16) for _ in range(100)])
    print(sum(answers), flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "seen.db"


def random_keys(seed: int, count: int, size: int = 16) -> list[bytes]:
    chance = random.Random(seed)
    return [chance.randbytes(size) for _ in range(count)]


def kill_while_adding(path: Path, seed: int, batches: int) -> int:
    """Let another process add keys, kill it after so many answers; how many it was told were new."""
    child = subprocess.Popen(
        [sys.executable, "-c", ADDS_FOR_EVER, str(path), str(seed)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    with child:
        for _ in range(batches):
            assert child.stdout.readline() == "100\n"
        child.send_signal(signal.SIGKILL)
        return 100 * (batches + len(child.stdout.read().splitlines()))


def test_every_key_that_was_answered_survives_kill_9(path: Path) -> None:
    """Three times over on one file. What was written but not answered may be there too, whole batches of it."""
    told = 0
    for seed, batches in ((1, 1), (2, 7), (3, 20)):
        told += (answered := kill_while_adding(path, seed, batches))
        with DiskSeenSet(path) as seen:
            assert not any(seen.add_many(random_keys(seed, answered)))
            assert len(seen) >= told
            assert len(seen) % 100 == 0
            told = len(seen)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("SELECT count(*) FROM seen").fetchone() == (told,)
    connection.close()


def test_keys_are_there_when_the_file_is_opened_again(path: Path) -> None:
    with DiskSeenSet(path, 8) as seen:
        assert all(seen.add_many(random_keys(1, 1000, 8)))
    assert not path.with_name("seen.db-wal").exists()
    with DiskSeenSet(str(path), 8, DiskSettings(durability="full", cache_mb=1)) as seen:
        assert len(seen) == 1000
        assert not any(seen.add_many(random_keys(1, 1000, 8)))
        assert all(seen.add_many(random_keys(2, 10, 8)))
        assert len(seen) == 1010


def test_a_batch_of_several_statements_is_one_transaction(path: Path) -> None:
    """When the disk is full halfway, nothing of it was added, and later calls go on."""
    with DiskSeenSet(path) as seen:
        seen.add_many(random_keys(1, 100))
        seen._connection.execute("PRAGMA max_page_count = 100")
        with pytest.raises(DiskFull, match=r"seen\.db"):
            seen.add_many(random_keys(2, 30_000))
        assert len(seen) == 100
        assert not any(key in seen for key in random_keys(2, 10))
        seen._connection.execute("PRAGMA max_page_count = 100000")
        assert all(seen.add_many(random_keys(2, 30_000)))
        assert len(seen) == 30_100


@pytest.mark.parametrize(("size", "most"), [(8, 18), (16, 25)])
def test_a_key_takes_a_bounded_number_of_bytes_on_disk(path: Path, size: int, most: int) -> None:
    with DiskSeenSet(path, size) as seen:
        for seed in range(50):
            seen.add_many(random_keys(seed, 1000, size))
    assert path.stat().st_size / 50_000 <= most


def test_one_holder_at_a_time_opens_the_file(path: Path) -> None:
    with DiskSeenSet(path), pytest.raises(StoreError, match="open already"):
        DiskSeenSet(path)
    DiskSeenSet(path).close()


def test_a_set_that_was_closed_says_so(path: Path) -> None:
    seen = DiskSeenSet(path)
    seen.close()
    seen.close()
    for call in (lambda: seen.add_if_new(bytes(16)), lambda: seen.add_many([bytes(16)]), lambda: bytes(16) in seen):
        with pytest.raises(UsageError, match="closed"):
            call()


@pytest.mark.parametrize("size", [0, 7, 32, -8])
def test_keys_have_eight_bytes_or_sixteen(path: Path, size: int) -> None:
    with pytest.raises(UsageError, match="8 or 16 bytes"):
        DiskSeenSet(path, size)
    assert not path.exists()


def test_a_file_keeps_the_length_of_its_keys(path: Path) -> None:
    DiskSeenSet(path, 8).close()
    with pytest.raises(UsageError, match="keys of 8 bytes, not 16"):
        DiskSeenSet(path, 16)
    DiskSeenSet(path, 8).close()


def foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE seen (other)")
    connection.close()


def newer(path: Path) -> None:
    DiskSeenSet(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 2")
    connection.close()


def torn(path: Path) -> None:
    with DiskSeenSet(path) as seen:
        seen.add_many(random_keys(1, 1000))
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)


UNFIT = {
    "no database": (lambda path: path.write_bytes(b"not a database, but long enough" * 40), StoreDamaged, "damaged"),
    "torn": (torn, StoreDamaged, "damaged"),
    "another program's": (foreign, UsageError, "another program"),
    "a newer version's": (newer, UsageError, "newer crawlspace"),
    "a directory": (lambda path: path.mkdir(), UsageError, "cannot be opened"),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_a_file_that_is_no_seen_set_is_refused_in_words(path: Path, kind: str) -> None:
    make, error, words = UNFIT[kind]
    make(path)
    with pytest.raises(error, match=words) as caught:
        DiskSeenSet(path)
    assert "seen.db" in str(caught.value)


def test_a_directory_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does its directory exist"):
        DiskSeenSet(tmp_path / "missing" / "seen.db")


def test_names_with_signs_that_mean_something_in_a_uri_are_names(tmp_path: Path) -> None:
    with DiskSeenSet(tmp_path / "a b?c#d%41.db") as seen:
        seen.add_if_new(bytes(16))
    assert [entry.name for entry in tmp_path.iterdir()] == ["a b?c#d%41.db"]


@pytest.mark.parametrize(
    ("code", "ours"),
    [
        (sqlite3.SQLITE_FULL, DiskFull),
        (sqlite3.SQLITE_READONLY_DBMOVED, UsageError),
        (sqlite3.SQLITE_BUSY, StoreError),
        (sqlite3.SQLITE_CORRUPT_INDEX, StoreDamaged),
        (sqlite3.SQLITE_IOERR_WRITE, StoreError),
    ],
)
def test_each_kind_of_trouble_has_the_error_of_who_must_act(code: int, ours: type[CrawlspaceError]) -> None:
    error = sqlite3.OperationalError("words of SQLite")
    error.sqlite_errorcode = code
    assert type(_in_our_words(error, "seen.db")) is ours


@pytest.mark.parametrize("wrong", [{"cache_mb": 0}, {"durability": "none"}, {"cache": 1}])
def test_settings_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, DiskSettings)
