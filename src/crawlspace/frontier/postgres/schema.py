"""The store's format: made and brought up to date by numbered steps that only go forward.

A new schema takes the same steps as an old one, so the two cannot differ. All steps are one transaction, and one
process at a time takes them. Never change a step that was released: add one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

from psycopg import sql

from crawlspace.errors import CrawlDirError
from crawlspace.frontier.postgres.place import Place, Shards
from crawlspace.frontier.postgres.sessions import Connection, queries

OWN_FACTS = frozenset({"format", "shards", "program", "edition"})
"""What the store writes itself."""

OLDEST_SERVER = 140_000
"""PostgreSQL 14; servers that are older are no longer kept by anybody."""

_SQL = queries("schema.sql")
_STEP = re.compile(r"(\d{4})_\w+\.sql")
_PROGRAM = "crawlspace"


def steps() -> list[str]:
    """The text of every step, the first at index 0."""
    found = sorted(
        (file for file in files("crawlspace.frontier.postgres.migrations").iterdir() if _STEP.fullmatch(file.name)),
        key=lambda file: file.name,
    )
    return [file.read_text("utf-8") for file in found]


async def migrate(connection: Connection, place: Place, upgrades: Sequence[str]) -> Shards:
    """Bring the schema to the format that `upgrades` lead to; raises `CrawlDirError` when it is not ours or newer."""
    _require_server(connection)
    async with connection.transaction():
        await connection.execute(_SQL["alone"], {"schema": place.schema})
        have, shards = await _found(connection, place, len(upgrades))
        if have is None:
            await connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(place.schema)))
        for step in upgrades[have or 0 :]:
            await connection.execute(step.encode(), prepare=False)
        if have != len(upgrades):
            facts = {"format": str(len(upgrades)), "shards": str(shards.number)}
            await connection.execute(_SQL["write_facts"], facts)
    return shards


async def require(connection: Connection, place: Place, upgrades: Sequence[str]) -> Shards:
    """Accept the schema as it is; raises `CrawlDirError` unless it has the format that `upgrades` lead to."""
    newest = len(upgrades)
    _require_server(connection)
    have, shards = await _found(connection, place, newest)
    if have is None:
        raise CrawlDirError(
            f"{place.shown} holds no crawl", hint="start one with: crawlspace crawl URL --frontier ..."
        )
    if have < newest:
        raise CrawlDirError(
            f"{place.shown} has format {have}, this version reads {newest}",
            hint="start the crawl once to bring it up to date",
        )
    return shards


async def _found(connection: Connection, place: Place, newest: int) -> tuple[int | None, Shards]:
    """The format that is there, None for none, and its shards."""
    row = await (await connection.execute(_SQL["tables"], {"schema": place.schema})).fetchone()
    if row is None or row[0] == 0:
        return None, Shards(place.shards)
    facts: dict[str, str] = dict(await (await connection.execute(_SQL["facts"])).fetchall()) if row[1] else {}
    if facts.get("program") != _PROGRAM:
        raise CrawlDirError(f"{place.shown} is a schema of another program", hint="name another with ?schema=NAME")
    have = int(facts["format"])
    if have > newest:
        raise CrawlDirError(
            f"{place.shown} has format {have}, this version knows {newest} and older", hint="use a newer crawlspace"
        )
    return have, Shards(int(facts["shards"]))


def _require_server(connection: Connection) -> None:
    have = connection.info.server_version
    if have < OLDEST_SERVER:
        raise CrawlDirError(
            f"PostgreSQL {OLDEST_SERVER // 10_000} or newer is needed, the server has {have // 10_000}"
        )
