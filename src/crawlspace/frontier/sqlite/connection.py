"""The one connection to the store's file: how it is opened, its transactions, and SQLite's errors in our words.

Transactions are begun and ended here alone. A writer takes the write lock at its BEGIN, so that it never finds out
halfway that somebody else was first; whatever is raised inside undoes all of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from crawlspace.errors import Bug, CrawlDirError, CrawlspaceError, DiskFull, StoreDamaged, StoreError
from crawlspace.frontier.settings import Durability, FrontierSettings

MEMORY = ":memory:"
OLDEST_SQLITE = (3, 37, 0)
"""STRICT tables; RETURNING is older."""

_BUSY_MS = 30_000
"""Several processes write by turns, and SQLite lets them wait in no order."""
_CHECKPOINT_PAGES = 16_000
"""Pages of the log that are written back into the file at once. The more there are, the more of them were written
several times meanwhile, which is done once then; the log takes 64 MiB for it, and is read again after a crash."""
_LOG_BYTES = 1 << 26
"""What the log takes on the disk at most, once whoever kept it from being written back is gone."""
_STATEMENTS = 512
_PRIMARY_CODE = 0xFF


def connect(path: str, settings: FrontierSettings) -> sqlite3.Connection:
    """Open for reading and writing; the file is made when it is not there, its directory is not."""
    address = path if path == MEMORY else f"file:{quote(path)}?mode=rwc"
    ways = (
        "page_size = 4096",
        "journal_mode = WAL",
        f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
        f"journal_size_limit = {_LOG_BYTES}",
        f"synchronous = {settings.durability}",
    )
    return _open(address, settings, ways)


def connect_reading(path: str, settings: FrontierSettings) -> sqlite3.Connection:
    """Open for reading only, also while a crawl writes, and also on a disk that cannot be written."""
    address = f"file:{quote(path)}?mode=ro"
    ways = ("query_only = ON", "user_version")
    try:
        return _open(address, settings, ways)
    except sqlite3.OperationalError:
        # Beside a file in WAL mode SQLite wants to make its shared memory. Where it may not, and no log is left
        # over, the file is all there is and nobody changes it.
        if not Path(path).is_file() or Path(path + "-wal").exists():
            raise
        return _open(address + "&immutable=1", settings, ways)


def _open(address: str, settings: FrontierSettings, ways: Sequence[str]) -> sqlite3.Connection:
    """Connect and set the pragmas that all connections share, then those in `ways`."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        raise CrawlDirError(f"SQLite {wanted} or newer is needed, this Python has {sqlite3.sqlite_version}")
    connection = sqlite3.connect(
        address,
        timeout=_BUSY_MS / 1000,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS,
        uri=address != MEMORY,
    )
    shared = (
        f"cache_size = {-1024 * settings.cache_mb}",
        "temp_store = MEMORY",
        "foreign_keys = ON",
        "trusted_schema = OFF",
        "cell_size_check = ON",
    )
    try:
        for pragma in (*shared, *ways):
            connection.execute(f"PRAGMA {pragma}").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """One transaction that may write."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        _undo(connection)
        raise


@contextmanager
def durably(connection: sqlite3.Connection, settings: FrontierSettings) -> Iterator[None]:
    """What is committed inside survives a power cut, whatever the setting."""
    connection.execute(f"PRAGMA synchronous = {Durability.FULL}")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA synchronous = {settings.durability}")


@contextmanager
def reading(connection: sqlite3.Connection) -> Iterator[None]:
    """One consistent view. Keep it short: the log cannot be folded back into the file while it is open."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        _undo(connection)


def _undo(connection: sqlite3.Connection) -> None:
    # A full disk makes SQLite undo by itself.
    if connection.in_transaction:
        connection.execute("ROLLBACK")


@contextmanager
def translated(path: str) -> Iterator[None]:
    """SQLite's errors as ours, with what a person can do; the cause stays attached."""
    try:
        yield
    except sqlite3.Error as error:
        raise _in_our_words(error, path) from error


def _in_our_words(error: sqlite3.Error, path: str) -> CrawlspaceError:
    match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE:
        case sqlite3.SQLITE_FULL:
            return DiskFull(hint=f"free some space for {path}, then start the crawl again")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return CrawlDirError(f"{path} cannot be written", hint="is the disk or the file read-only?")
        case sqlite3.SQLITE_CANTOPEN:
            return CrawlDirError(f"{path} cannot be opened", hint="does its directory exist, and may you use it?")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreError(f"{path} is held by another program", hint="end it, or wait until it is done")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreDamaged(f"{path} is damaged or no frontier: {error}", hint="restore it from a backup")
        case sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_MISUSE:
            return Bug(f"the store refused a change that breaks its own rules: {error}")
        case _:
            return StoreError(f"{path}: {error}")
