"""What routes cost and bring, and their budgets: `ports.RouteBook`, a part of the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crawlspace.frontier.postgres.columns import numbers, texts
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.routes import Used
from crawlspace.types import RouteFigures

_SQL = queries("routes.sql")


async def write_used(transaction: Transaction, used: Used) -> None:
    """Add what a batch of settlements has moved, inside its transaction."""
    if not used.by_route:
        return
    names, requests, pages, blocked, sizes = zip(*used.rows(), strict=True)
    await transaction.run(
        _SQL["used"],
        worker=transaction.worker,
        name=texts(names),
        requests=numbers(requests),
        pages=numbers(pages),
        blocked=numbers(blocked),
        bytes=numbers(sizes),
    )


class RouteTable:
    """The part of the store that keeps routes."""

    _write: Callable[..., Any]
    _look: Callable[..., Any]

    async def take_route(self, name: str, most: int) -> bool:
        """See `ports.RouteBook`."""
        rows = await self._write(lambda it: it.rows(_SQL["take"], name=name, most=most), None)
        return bool(rows)

    async def give_route_back(self, name: str) -> None:
        """See `ports.RouteBook`."""
        await self._write(lambda it: it.run(_SQL["give_back"], name=name), None)

    async def route_figures(self) -> list[RouteFigures]:
        """See `ports.RouteBook`."""
        rows = await self._look(lambda it: it.rows(_SQL["figures"]))
        return [RouteFigures(*row) for row in rows]
