"""Commands to a crawl, written down and answered, and hosts that a person holds. Inside a caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from crawlspace.frontier.bounds import KEPT_MS
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.ledger import new_edition
from crawlspace.policy.commands import Asked, Hold

_SQL = statements(__package__, "control.sql")


def ask(connection: sqlite3.Connection, commands: Sequence[str], now: int) -> list[int]:
    """Write commands down; their numbers."""
    connection.execute(_SQL["forget"], (now - KEPT_MS,))
    return [connection.execute(_SQL["ask"], (now, command)).fetchall()[0][0] for command in commands]


def asked(connection: sqlite3.Connection, limit: int) -> list[Asked]:
    """Commands that are not carried out yet, in order."""
    return [_asked(row) for row in connection.execute(_SQL["open"], (limit,))]


def answers(connection: sqlite3.Connection, numbers: Sequence[int]) -> list[Asked | None]:
    """How far these commands are."""
    rows = (connection.execute(_SQL["one"], (number,)).fetchone() for number in numbers)
    return [None if row is None else _asked(row) for row in rows]


def progress(connection: sqlite3.Connection, asked: Asked, now: int) -> None:
    """Write down how far a command is."""
    connection.execute(_SQL["progress"], (asked.progress, now if asked.done else None, asked.number))


def hold(connection: sqlite3.Connection, hosts: Sequence[tuple[int, str]], how: Hold | None) -> None:
    """Pause, block or free hosts, given by number and name; those that nobody knows yet too."""
    new_edition(connection)
    for hid, name in hosts:
        connection.execute(_SQL["add_host"], (hid, name))
        if how is None:
            connection.execute(_SQL["free"], (hid,))
        else:
            connection.execute(_SQL["hold"], {"hid": hid, "held": how.value})


def alarm(connection: sqlite3.Connection, hosts: Sequence[tuple[int, str]]) -> None:
    """Mark hosts whose URLs look like a trap of this kind."""
    connection.executemany(_SQL["alarm"], [(kind, hid) for hid, kind in hosts])


def _asked(row: tuple[int, str, str, int]) -> Asked:
    number, command, reached, done = row
    return Asked(number, command, reached, bool(done))
