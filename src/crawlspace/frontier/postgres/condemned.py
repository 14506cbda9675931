"""Hosts that are emptied, some rows at each call: those given up into the dead letters, those blocked into refusals.

Such a host is parked until it is empty, so that nobody leases what is about to end. Links found later to a host that
was given up are tried again; those to a blocked one are refused as they come.
"""

from __future__ import annotations

from msgspec import Struct

from crawlspace.frontier.bounds import BURIED_AT_ONCE
from crawlspace.frontier.postgres.columns import numbers, text
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.states import Event, UrlState, advance
from crawlspace.types import Reason

_SQL = queries("condemned.sql")

_GIVEN_UP = "its host was given up"


class _End(Struct, frozen=True):
    """How the waiting URLs of a host end."""

    event: Event
    reason: str
    detail: str | None


async def condemn(transaction: Transaction, hid: int, reason: str) -> None:
    """Give up a held, free host whose counters are written, and bury the first of its URLs."""
    await transaction.run(_SQL["condemn"], reason=text(reason), **_where(transaction, hid))
    await _give_up(transaction, hid, text(reason), BURIED_AT_ONCE)


async def empty_some(transaction: Transaction) -> None:
    """Go on with hosts that were given up or blocked before."""
    left = BURIED_AT_ONCE
    done: list[int] = []
    while left > 0:
        found = await transaction.rows(_SQL["next"], done=numbers(done))
        if not found:
            return
        hid, condemned = found[0]
        if condemned is None:
            left -= await _refuse(transaction, hid, left)
        else:
            left -= await _give_up(transaction, hid, condemned, left)
        done.append(hid)


async def _give_up(transaction: Transaction, hid: int, reason: str, limit: int) -> int:
    ended = await _empty(transaction, hid, _End(Event.DIE, reason, _GIVEN_UP), limit)
    await transaction.run(_SQL["pardon"], **_where(transaction, hid))
    return ended


async def _refuse(transaction: Transaction, hid: int, limit: int) -> int:
    reason = Reason.BLOCKED_HOST.value
    ended = await _empty(transaction, hid, _End(Event.REFUSE, reason, None), limit)
    await transaction.run(_SQL["refused"], reason=reason, n=ended, **_where(transaction, hid))
    return ended


async def _empty(transaction: Transaction, hid: int, end: _End, limit: int) -> int:
    """End waiting URLs of a host, no more than `limit`; how many."""
    facts = {
        "now": transaction.now,
        "state": int(advance(UrlState.QUEUED, end.event)),
        "reason": end.reason,
        "detail": end.detail,
        **_where(transaction, hid),
    }
    [(queued,)] = await transaction.rows(_SQL["end_queued"], limit=limit, **facts)
    [(delayed,)] = await transaction.rows(_SQL["end_delayed"], limit=limit - queued, **facts)
    delta = transaction.book.host(hid)
    delta.queued -= queued
    delta.delayed -= delayed
    if end.event is Event.DIE:
        delta.dead += queued + delayed
    transaction.book.move(UrlState.QUEUED, end.event, queued + delayed)
    await transaction.write_hosts()
    return int(queued + delayed)


def _where(transaction: Transaction, hid: int) -> dict[str, int]:
    return {"shard": transaction.shards.of(hid), "hid": hid}
