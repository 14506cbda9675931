"""What each call of lease does first, some at a time: delayed URLs come back, and hosts whose budget was raised or
whose pace group has a turn; hosts that are being emptied lose some more of their URLs."""

from __future__ import annotations

from collections.abc import Collection

from crawlspace.frontier.crowds import Place
from crawlspace.frontier.postgres import crowds, groups, revisit
from crawlspace.frontier.postgres.columns import numbers
from crawlspace.frontier.postgres.condemned import empty_some
from crawlspace.frontier.postgres.lease import budgets
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.quotas import DUE_AT_ONCE

_SQL = queries("wake.sql")


async def wake(transaction: Transaction, worker: int) -> None:
    """Bring back what has come due."""
    limits = budgets(transaction)
    [(delayed, raised, emptying)] = await transaction.rows(_SQL["anything"], now=transaction.now, **limits)
    if emptying:
        await empty_some(transaction)
    if delayed:
        await _arrive(transaction)
    if raised:
        await _unpark(transaction, False, limits["pages"])
        await _unpark(transaction, True, limits["seed_pages"])
    await groups.call(transaction, worker)
    await revisit.wake(transaction)
    await transaction.write_hosts()


async def free_crowded(transaction: Transaction, after: Place) -> Place | None:
    """Hosts rest no longer where an address may have more of them now; where to go on, None at the end."""
    found, reached = await crowds.freed(transaction, after)
    if found:
        await transaction.run(_SQL["unpark"], **_columns(transaction, found))
    return reached


async def _arrive(transaction: Transaction) -> None:
    due = {"now": transaction.now, "limit": DUE_AT_ONCE}
    hids = [hid for (hid,) in await transaction.rows(_SQL["came_due"], **due)]
    held = await transaction.rows(_SQL["hold_free"], **_columns(transaction, hids))
    arrived = await transaction.rows(_SQL["arrive"], hid=numbers(hid for (hid,) in held), **due)
    for hid, n, best_class in arrived:
        delta = transaction.book.host(hid)
        delta.queued += n
        delta.delayed -= n
        delta.best_class = min(delta.best_class, best_class)


async def _unpark(transaction: Transaction, seed: bool, pages: int) -> None:
    rows = await transaction.rows(_SQL["raised"], seed=seed, pages=pages, limit=DUE_AT_ONCE)
    if rows:
        await transaction.run(_SQL["unpark"], **_columns(transaction, [hid for (hid,) in rows]))


def _columns(transaction: Transaction, hids: Collection[int]) -> dict[str, str]:
    ordered = sorted(hids)
    return {"shard": numbers(map(transaction.shards.of, ordered)), "hid": numbers(ordered)}
