"""Hosts that a transaction holds: whoever writes a URL's rows holds its host first.

They are taken in the order of their numbers, all at once, so that no two transactions wait for each other in a
circle.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import NamedTuple

from crawlspace.frontier.postgres.columns import numbers, texts
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction

_SQL = queries("hosts.sql")


class HeldHost(NamedTuple):
    """A host as it stands while it is held."""

    hid: int
    seed: bool
    met: bool
    n_queued: int
    n_leased: int
    n_delayed: int
    token: int | None
    released: int | None
    blocked: bool
    """A person wants nothing of it."""
    crowded: bool
    """Too many hosts have its address."""
    name: str


async def hold(
    transaction: Transaction,
    hids: Collection[int],
    names: Mapping[int, str] | None = None,
    then: Callable[[], Awaitable[None]] | None = None,
) -> dict[int, HeldHost]:
    """Hold these hosts, by number; those in `names` are made when they are not there.

    `then` asks what is to be known once they are held: the questions go behind the order, and wait for no answer,
    since others wait meanwhile.
    """
    shards = transaction.shards
    if names:
        new = sorted(names)
        await transaction.run(
            _SQL["meet"], shard=numbers(shards.each(new)), hid=numbers(new), name=texts(names[hid] for hid in new)
        )
    if not hids:
        return {}
    ordered = sorted(hids)
    held = await transaction.ask(_SQL["hold"], shard=numbers(shards.each(ordered)), hid=numbers(ordered))
    if then is not None:
        await then()
    return {row[0]: HeldHost._make(row) for row in await held.fetchall()}


async def given(transaction: Transaction, leases: Mapping[int, int]) -> dict[int, dict[int, int]]:
    """What these live leases (host by token) were given: by token, each URL's class by its number.

    Those that a lease has settled are still among them.
    """
    if not leases:
        return {}
    rows = await transaction.rows(_SQL["held"], **_columns(transaction, leases))
    return {token: dict(zip(ids, classes, strict=True)) for token, classes, ids in rows}


async def drop_leases(transaction: Transaction, leases: Mapping[int, int]) -> None:
    """These leases (host by token) are over."""
    if leases:
        await transaction.run(_SQL["drop_leases"], **_columns(transaction, leases))


def _columns(transaction: Transaction, leases: Mapping[int, int]) -> dict[str, str]:
    return {"shard": numbers(transaction.shards.each(leases.values())), "token": numbers(leases)}
