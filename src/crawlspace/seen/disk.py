"""The seen-set on disk: one SQLite file, some 24 bytes for a key of 16 and 15 for one of 8.

An answer is given once its transaction is committed: killing the process loses nothing that was answered. A power cut
can lose the last answers under `durability = "normal"`, a suffix of them and never one in between; with "full" it
loses none. One process at a time holds the file, for as long as it has it open; the lock goes with the process.

Keys whose first bytes are shared by what belongs together, as a crawl's are by host, lie together in the file and
are found twice as fast as keys that are random from the first byte.

Calls block on the disk: from asyncio use `asyncio.to_thread`. No network file systems.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from threading import Lock
from types import TracebackType
from typing import Annotated, Final, Literal
from urllib.parse import quote

import msgspec

from crawlspace.errors import CrawlspaceError, DiskFull, StoreDamaged, StoreError, UsageError
from crawlspace.seen.keys import Keys, checked, checked_size, end_to_end

_APPLICATION_ID: Final = 0x63727365
_FORMAT: Final = 1
_OLDEST_SQLITE: Final = (3, 37, 0)
"""STRICT tables; RETURNING is older."""
_SLICE: Final = 8192
"""Keys in one statement, so that what it sorts stays small; all slices of a call are one transaction."""
_PAGE_BYTES_A_KEY_BYTE: Final = 256
"""Pages of 4 KiB for keys of 16 bytes. Those of 8 are random throughout: each new one writes a page of its own, and
small pages then made a third more offers a second."""
_CHECKPOINT_PAGES: Final = 8_000
_PRIMARY_CODE: Final = 0xFF


def _sql(name: str) -> str:
    return files("crawlspace.seen").joinpath(f"{name}.sql").read_text("utf-8")


_SCHEMA, _BEGIN, _FACTS, _OBJECTS, _ADD, _COUNT, _HOLDS = map(
    _sql, ("schema", "begin", "facts", "objects", "add", "count", "holds")
)


class DiskSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What can be set about a seen-set on disk."""

    cache_mb: Annotated[
        int,
        msgspec.Meta(
            description="Memory for pages of the file, in MiB; more is faster once the file is larger.", ge=1
        ),
    ] = 64
    durability: Annotated[
        Literal["normal", "full"],
        msgspec.Meta(description="`full` loses nothing at a power cut and waits for the disk at every call."),
    ] = "normal"


class DiskSeenSet:
    """A `SeenSet` in a file, made when it is not there. Close it, or use it in a `with` statement.

    Raises `UsageError` when the file cannot be opened, is another program's or has keys of another length,
    `StoreError` when another process holds it, `StoreDamaged` when it is damaged, `DiskFull` when no space is left.
    """

    def __init__(
        self, path: str | os.PathLike[str], key_bytes: int = 16, settings: DiskSettings | None = None
    ) -> None:
        self._key_bytes = checked_size(key_bytes)
        self._path = os.fspath(path)
        self._lock = Lock()
        with _translated(self._path):
            self._connection = _opened(self._path, key_bytes, settings or DiskSettings())
            try:
                self._known = _prepared(self._connection, self._path, key_bytes)
            except BaseException:
                self._connection.close()
                raise

    @property
    def key_bytes(self) -> int:
        """Length of its keys: 8 or 16 bytes."""
        return self._key_bytes

    def add_if_new(self, key: bytes) -> bool:
        """Add a key; True when it was not there. Raises `UsageError` for a key of another length."""
        return self._add(checked(key, self._key_bytes))[0]

    def add_many(self, keys: Keys) -> list[bool]:
        """Add keys in one transaction; one answer each, in order. Of equal keys the first alone is new.

        Raises `UsageError` and adds nothing when one key has another length.
        """
        packed = end_to_end(keys, self._key_bytes)
        return self._add(packed) if packed else []

    def __contains__(self, key: bytes) -> bool:
        """Whether a key is there, without adding it."""
        checked(key, self._key_bytes)
        with self._lock, _translated(self._path):
            return bool(self._connection.execute(_HOLDS, (key,)).fetchone()[0])

    def __len__(self) -> int:
        """How many keys are there."""
        return self._known

    def close(self) -> None:
        """Fold the log back into the file and let go of it. Closing twice does nothing."""
        with self._lock, _translated(self._path):
            self._connection.close()

    def __enter__(self) -> DiskSeenSet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _add(self, packed: bytes) -> list[bool]:
        step = _SLICE * self._key_bytes
        answers: list[bool] = []
        with self._lock, _translated(self._path):
            with _writing(self._connection):
                for start in range(0, len(packed), step):
                    answers += self._add_slice(packed[start : start + step])
                added = answers.count(True)
                if added:
                    self._connection.execute(_COUNT, (added,))
            self._known += added
        return answers

    def _add_slice(self, packed: bytes) -> list[bool]:
        size = self._key_bytes
        # All rows must be read before the statement is over.
        new = {row[0] for row in self._connection.execute(_ADD, (packed, size)).fetchall()}
        answers = []
        for start in range(0, len(packed), size):
            key = packed[start : start + size]
            answers.append(key in new)
            new.discard(key)
        return answers


def _opened(path: str, key_bytes: int, settings: DiskSettings) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        wanted = ".".join(map(str, _OLDEST_SQLITE))
        raise UsageError(f"SQLite {wanted} or newer is needed, this Python has {sqlite3.sqlite_version}")
    # Whoever holds the file holds it for long, so waiting for it is of no use.
    connection = sqlite3.connect(
        f"file:{quote(path)}?mode=rwc", timeout=0, isolation_level=None, check_same_thread=False, uri=True
    )
    for pragma in (
        f"page_size = {_PAGE_BYTES_A_KEY_BYTE * key_bytes}",
        "locking_mode = EXCLUSIVE",
        f"cache_size = {-1024 * settings.cache_mb}",
        "temp_store = MEMORY",
        f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
        f"synchronous = {settings.durability}",
        "trusted_schema = OFF",
        "cell_size_check = ON",
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _prepared(connection: sqlite3.Connection, path: str, key_bytes: int) -> int:
    """Make the tables of a new file, or make sure that it is one of ours; how many keys it has."""
    owner: int = connection.execute("PRAGMA application_id").fetchone()[0]
    if owner != _APPLICATION_ID and connection.execute(_OBJECTS).fetchone()[0]:
        raise UsageError(f"{path} is a database of another program")
    have: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if have > _FORMAT:
        raise UsageError(f"{path} has format {have}, this version knows {_FORMAT}", hint="use a newer crawlspace")
    connection.execute("PRAGMA journal_mode = WAL")
    if have < _FORMAT:
        connection.executescript(_SCHEMA)
    with _writing(connection):
        connection.execute(_BEGIN, (key_bytes,))
        held, known = connection.execute(_FACTS).fetchone()
    if held != key_bytes:
        raise UsageError(f"{path} has keys of {held} bytes, not {key_bytes}")
    return int(known)


@contextmanager
def _writing(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk makes SQLite undo by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _translated(path: str) -> Iterator[None]:
    """SQLite's errors as ours, with what a person can do; the cause stays attached."""
    try:
        yield
    except sqlite3.Error as error:
        raise _in_our_words(error, path) from error


def _in_our_words(error: sqlite3.Error, path: str) -> CrawlspaceError:
    if isinstance(error, sqlite3.ProgrammingError):
        return UsageError(f"{path} is closed")
    match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE:
        case sqlite3.SQLITE_FULL:
            return DiskFull(hint=f"free some space for {path}, then open it again")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return UsageError(f"{path} cannot be written", hint="is the disk or the file read-only?")
        case sqlite3.SQLITE_CANTOPEN:
            return UsageError(f"{path} cannot be opened", hint="does its directory exist, and may you use it?")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreError(f"{path} is open already", hint="one process at a time; close it there first")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreDamaged(f"{path} is damaged or no seen-set: {error}", hint="restore it from a backup")
        case _:
            return StoreError(f"{path}: {error}")
