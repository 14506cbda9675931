"""The store's format: made and brought up to date by numbered steps that only go forward.

A new file takes the same steps as an old one, so the two cannot differ. Each step is one transaction together with
the number it leads to. Never change a step that was released: add one.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from importlib.resources import files

from crawlspace.errors import CrawlDirError
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.connection import writing

APPLICATION_ID = 0x63727773
"""`crws` in the file's header: tells our files from other SQLite files."""

FORMAT = "format"
"""The fact under which the number of the format is kept for those who ask."""

_SQL = statements(__package__, "schema.sql")
_STEP = re.compile(r"(\d{4})_\w+\.sql")


def steps() -> list[str]:
    """The text of every step, the first at index 0."""
    found = sorted(
        (file for file in files("crawlspace.frontier.sqlite.migrations").iterdir() if _STEP.fullmatch(file.name)),
        key=lambda file: file.name,
    )
    return [file.read_text("utf-8") for file in found]


def migrate(connection: sqlite3.Connection, path: str, upgrades: Sequence[str]) -> None:
    """Bring the file to the format that `upgrades` lead to; raises `CrawlDirError` when it is not ours or newer."""
    with writing(connection):
        have = _format(connection, path, len(upgrades))
    for number in range(have, len(upgrades)):
        with writing(connection):
            for statement in _split(upgrades[number]):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {number + 1}")
            connection.execute(_SQL["write_format"], (str(number + 1),))


def require(connection: sqlite3.Connection, path: str, newest: int) -> None:
    """Accept the file as it is; raises `CrawlDirError` unless it has the format `newest`."""
    have = _format(connection, path, newest)
    if have < newest:
        raise CrawlDirError(
            f"{path} has format {have}, this version reads {newest}",
            hint="start the crawl once to bring it up to date",
        )


def _format(connection: sqlite3.Connection, path: str, newest: int) -> int:
    owner: int = connection.execute("PRAGMA application_id").fetchone()[0]
    have: int = connection.execute("PRAGMA user_version").fetchone()[0]
    empty = connection.execute(_SQL["objects"]).fetchone()[0] == 0
    if owner != APPLICATION_ID and not empty:
        raise CrawlDirError(f"{path} is a database of another program")
    if have > newest:
        raise CrawlDirError(
            f"{path} has format {have}, this version knows {newest} and older", hint="use a newer crawlspace"
        )
    return have


def _split(script: str) -> list[str]:
    """The statements of a script; SQLite itself says where one ends."""
    found: list[str] = []
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return found
