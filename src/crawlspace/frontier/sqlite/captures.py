"""Captures as the archive needs them known: where bytes lie that come again, and files that were joined."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from crawlspace.frontier.sql import statements
from crawlspace.types import Joined, Pointer

_SQL = statements(__package__, "captures.sql")

_SHORT = 16
"""Bytes of a digest in the table of contents."""


def originals(connection: sqlite3.Connection, digests: Sequence[bytes]) -> list[Pointer | None]:
    """Where settled pages with these bodies lie; in order."""
    return [_original(connection, digest) for digest in digests]


def relocate(connection: sqlite3.Connection, joined: Sequence[Joined]) -> None:
    """Let all that points into files which were joined point into the whole."""
    numbers = dict(connection.execute(_SQL["segments"]).fetchall())
    connection.execute(_SQL["moves"])
    for whole in joined:
        parts = [(numbers[part], base) for part, base in whole.parts if part in numbers]
        if not parts:
            continue
        [(target,)] = connection.execute(_SQL["add_segment"], (whole.name, whole.length)).fetchall()
        moves = [(number, target, base) for number, base in parts]
        connection.executemany(_SQL["add_move"], moves)
    [(has_merged,)] = connection.execute(_SQL["has_merged"]).fetchall()
    merged = ("move_merged",) if has_merged else ()
    for step in ("move_outcomes", "move_visits", *merged, "drop_segments", "end_moves"):
        connection.execute(_SQL[step])


def _original(connection: sqlite3.Connection, digest: bytes) -> Pointer | None:
    names = {"short": digest[:_SHORT], "digest": digest}
    found = connection.execute(_SQL["original"], names).fetchone()
    return None if found is None else Pointer(*found)
