"""The plan of a re-keying: every URL of a store under its new key, and in each group of one key who stays.

Made by looking at each row once, in batches, from where the last one ended. The plan may lie in the store itself,
when it is to be carried out, or in a file of its own, when somebody only asks what would happen.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from crawlspace.frontier.rekeying import WALKED, Cursor, Naming, Place, Planned, Walked, planned
from crawlspace.frontier.sql import statements

_SQL = statements(__package__, "rekey.sql")

WALKS: dict[Place, tuple[str, Cursor]] = {
    Place.OUTCOME: ("read_outcome", (0,)),
    Place.QUEUE: ("read_queue", (-1, -1, -1)),
    Place.DELAYED: ("read_delayed", (-1, -1)),
    Place.MERGED: ("read_merged", (0,)),
}
"""The statement that reads a table in its order, and where it begins."""

Walk = Callable[[Place, Cursor | None, int], list[tuple[Any, ...]]]


class Planning:
    """Walks over the URLs of some store and writes the plan into `plan`."""

    def __init__(self, walk: Walk, plan: sqlite3.Connection, naming: Naming) -> None:
        self._walk = walk
        self._plan = plan
        self._naming = naming

    def step(self, place: Place, after: Cursor | None, limit: int) -> tuple[Cursor | None, int, int]:
        """Plan the next rows of a table: where that ended (None at its end), how many, and how many keys change."""
        rows = self._walk(place, after, limit)
        found = [planned(self._naming, place, Walked._make(row[:WALKED])) for row in rows]
        self._plan.executemany(_SQL["plan"], sorted(found))
        changed = sum(each.is_live and each.key != each.old_key for each in found)
        return (tuple(rows[-1][WALKED:]) if rows else None), len(rows), changed


def walk_over(connection: sqlite3.Connection) -> Walk:
    """The walks over the tables of a store of SQLite."""

    def walk(place: Place, after: Cursor | None, limit: int) -> list[tuple[Any, ...]]:
        statement, first = WALKS[place]
        return connection.execute(_SQL[statement], (*(after or first), limit)).fetchall()

    return walk


def planned_after(connection: sqlite3.Connection, after: tuple[bytes, int, int], limit: int) -> list[Planned]:
    """The next rows of the plan, group after group."""
    return list(map(Planned._make, connection.execute(_SQL["planned"], (*after, limit))))
