"""Dead URLs that a person puts back into the queue."""

from __future__ import annotations

from collections.abc import Sequence

from crawlspace.frontier.postgres.columns import numbers
from crawlspace.frontier.postgres.hosts import hold
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.postgres.urls import Named, Urls
from crawlspace.states import Event, UrlState

_SQL = queries("revive.sql")


async def revive(transaction: Transaction, ids: Sequence[int]) -> int:
    """Queue these URLs again with all their tries; how many of them were dead."""
    found = [Named(hid, number) for hid, number in await transaction.rows(_SQL["dead"], id=numbers(set(ids)))]
    await hold(transaction, {url.hid for url in found})
    urls = Urls(transaction)
    rows = await urls.reopen(found, UrlState.DEAD)
    await urls.enqueue(list(rows.values()))
    for row in rows.values():
        delta = transaction.book.host(row.hid)
        delta.join(row.front_class)
        delta.dead -= 1
    transaction.book.move(UrlState.DEAD, Event.REVIVE, len(rows))
    return len(rows)
