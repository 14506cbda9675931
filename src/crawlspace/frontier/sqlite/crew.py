"""The workers that take hosts, and how many hosts there are for them."""

from __future__ import annotations

import sqlite3
from json import dumps

from crawlspace.frontier.crew import FACT, SOON_MS, heard, must_be_said, word
from crawlspace.frontier.sql import statements
from crawlspace.types import Crew

_SQL = statements(__package__, "crew.sql")


def meet(connection: sqlite3.Connection, worker: int, most: int, ttl_ms: int, now: int) -> Crew:
    """Inside a transaction that writes: say what this worker takes, and hear what the others do."""
    others, mine = heard(connection.execute(_SQL["words"]), worker, now)
    if most == 0:
        connection.execute(_SQL["leave"], (f"{FACT}{worker}",))
    elif must_be_said(mine, most, ttl_ms, now):
        connection.execute(_SQL["say"], (f"{FACT}{worker}", word(most, ttl_ms, now)))
    if not others:
        return Crew((), 0, 0)
    [(held,)] = connection.execute(_SQL["held"], (dumps([worker, *others]),))
    enough = most + sum(others.values())
    soon, free = (connection.execute(_SQL["free"], (time, enough)).fetchone()[0] for time in (now + SOON_MS, now))
    return Crew(tuple(others.values()), held + soon, free)
