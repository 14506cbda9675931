"""Rows as a table of an SQLite database, for those who ask with SQL and have nothing else at hand.

Names of tables and columns are ours, and quoted all the same; values are bound, never spelled.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from crawlspace.exports.columns import Cell, Column, Kind, json_text, plain
from crawlspace.exports.tables import AddRow, Row

ROWS_AT_ONCE = 1000

_TYPES = {Kind.TEXT: "TEXT", Kind.WHOLE: "INTEGER", Kind.FLAG: "INTEGER", Kind.TIME: "TEXT", Kind.JSON: "TEXT"}


@contextmanager
def sqlite(path: Path, name: str, columns: Sequence[Column]) -> Iterator[AddRow]:
    """Fill the table `name` of a new database at `path`, an empty file: gives the function that takes its rows.

    What is raised inside leaves a file that is no database. Raises `OSError` when the disk cannot be written.
    """
    # The file gets its name when it is whole: until then it needs no journal.
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        try:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN")
            yield from _fill(connection, name, columns)
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise OSError(*_reason(error)) from error


def _fill(connection: sqlite3.Connection, name: str, columns: Sequence[Column]) -> Iterator[AddRow]:
    defined = ", ".join(f"{_quoted(column.name)} {_TYPES[column.kind]}" for column in columns)
    connection.execute(f"CREATE TABLE {_quoted(name)} ({defined})")
    marks = ", ".join("?" * len(columns))
    statement = f"INSERT INTO {_quoted(name)} VALUES ({marks})"  # noqa: S608 -- the name is quoted
    kinds = [column.kind for column in columns]
    held: list[list[Cell]] = []

    def add(row: Row) -> None:
        held.append([_value(kind, cell) for kind, cell in zip(kinds, row, strict=True)])
        if len(held) >= ROWS_AT_ONCE:
            connection.executemany(statement, held)
            held.clear()

    yield add
    connection.executemany(statement, held)
    if any(column.name == "url" for column in columns):
        connection.execute(f"CREATE INDEX {_quoted(f'{name}_url')} ON {_quoted(name)} (url)")


def _value(kind: Kind, cell: Cell) -> Cell:
    if kind is Kind.JSON:
        return json_text(cell)
    return plain(cell) if isinstance(cell, str) else cell


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _reason(error: sqlite3.OperationalError) -> tuple[int, str]:
    full = error.sqlite_errorcode == sqlite3.SQLITE_FULL
    return (errno.ENOSPC if full else errno.EIO), str(error)
