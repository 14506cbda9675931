"""One write to the store: the session it runs in, its time, and the counters that it moves.

The order in which a transaction takes what others may want is always the same, so that none waits in a circle: hosts
in the order of their numbers, then content digests, then archive files, then its own row of totals, last of all.
"""

from __future__ import annotations

from typing import Any

import psycopg
from msgspec import Struct

from crawlspace.frontier.postgres.book import Book
from crawlspace.frontier.postgres.place import Shards
from crawlspace.frontier.postgres.sessions import Connection, Row, queries
from crawlspace.frontier.settings import FrontierSettings

_SQL = queries("book.sql")


Asked = psycopg.AsyncCursor[Row]
"""A question that was sent; its rows are fetched later."""


class Transaction(Struct, frozen=True):
    """What each step of a write needs."""

    connection: Connection
    settings: FrontierSettings
    shards: Shards
    worker: int
    now: int
    book: Book

    async def rows(self, query: bytes, **parameters: Any) -> list[Row]:
        """The rows of a statement."""
        return await (await self.ask(query, **parameters)).fetchall()

    async def ask(self, query: bytes, **parameters: Any) -> Asked:
        """Send a statement whose rows are fetched later, so that others can go with it."""
        return await self.connection.cursor(binary=True).execute(query, parameters)

    async def run(self, query: bytes, **parameters: Any) -> None:
        """Send a statement whose answer nobody waits for; its errors show up at the next answer."""
        await self.connection.execute(query, parameters)

    async def write_hosts(self) -> None:
        """Write what the book has of hosts; the caller holds them all."""
        moved = self.book.take_hosts(self.shards)
        if moved is not None:
            budgets = {"pages": self.settings.pages_per_host, "seed_pages": self.settings.pages_per_seed_host}
            await self.run(_SQL["host_delta"], **moved, **budgets)

    async def finish(self) -> None:
        """Write what is left in the book; the totals are the last row that a transaction touches."""
        await self.write_hosts()
        totals = self.book.take_totals()
        if totals is not None:
            await self.run(_SQL["tally_delta"], **totals)
