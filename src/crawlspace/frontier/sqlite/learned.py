"""Learned rules, and what pages declare as their own addresses. Inside a caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from crawlspace.frontier.lessons import MOST, columns, declarations, known_rule
from crawlspace.frontier.sql import statements
from crawlspace.policy.evidence import KnownRule, Lesson
from crawlspace.types import Answer, Settlement

_SQL = statements(__package__, "learned.sql")


def learned(connection: sqlite3.Connection) -> list[KnownRule]:
    """The rules that are known, the best founded first."""
    return [known_rule(row) for row in connection.execute(_SQL["learned"], (MOST,))]


def learn(connection: sqlite3.Connection, lessons: Sequence[Lesson], now: int) -> None:
    """Add to what is known."""
    connection.executemany(_SQL["learn"], [columns(lesson, now) for lesson in lessons])


def declared(connection: sqlite3.Connection, keys: Sequence[bytes]) -> list[str | None]:
    """What the pages with these fingerprints declare as their own address."""
    rows = (connection.execute(_SQL["declared"], (key,)).fetchone() for key in keys)
    return [None if row is None else str(row[0]) for row in rows]


def declare(connection: sqlite3.Connection, settlements: Sequence[Settlement], answers: Sequence[Answer]) -> None:
    """Keep what pages that were finished just now declare as their own addresses."""
    for _, number, canonical in declarations(settlements, answers):
        if canonical is None:
            connection.execute(_SQL["undeclare"], (number,))
        else:
            connection.execute(_SQL["declare"], (number, canonical))
