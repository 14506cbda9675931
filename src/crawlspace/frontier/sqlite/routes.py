"""What routes cost and bring, and their budgets: `ports.RouteBook`, a part of the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from crawlspace.frontier.routes import Used
from crawlspace.frontier.sql import statements
from crawlspace.types import RouteFigures

_SQL = statements(__package__, "routes.sql")


def write_used(connection: sqlite3.Connection, used: Used) -> None:
    """Add what a batch of settlements has moved, inside its transaction."""
    if used.by_route:
        connection.executemany(_SQL["used"], used.rows())


class RouteTable:
    """The part of the store that keeps routes."""

    _write: Callable[..., Any]
    _read: Callable[..., Any]

    @property
    def _connection(self) -> sqlite3.Connection:
        raise NotImplementedError

    async def take_route(self, name: str, most: int) -> bool:
        """See `ports.RouteBook`."""
        taken: bool = await self._write(lambda _, __: self._take_route(name, most), None)
        return taken

    async def give_route_back(self, name: str) -> None:
        """See `ports.RouteBook`."""
        await self._write(lambda _, __: self._connection.execute(_SQL["give_back"], (name,)).rowcount, None)

    async def route_figures(self) -> list[RouteFigures]:
        """See `ports.RouteBook`."""
        rows = await self._read(lambda _: self._connection.execute(_SQL["figures"]).fetchall())
        return [RouteFigures(*row) for row in rows]

    def _take_route(self, name: str, most: int) -> bool:
        self._connection.execute(_SQL["meet"], (name,))
        return self._connection.execute(_SQL["take"], (name, most)).rowcount == 1
