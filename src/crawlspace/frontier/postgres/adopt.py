"""Settlements without a lease: URLs that need no request, since somebody else made it before.

As in the embedded store: only what waits is settled so, and no request is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crawlspace.frontier.content_rows import Found
from crawlspace.frontier.postgres.claim import Claiming
from crawlspace.frontier.postgres.columns import numbers
from crawlspace.frontier.postgres.content import Contents
from crawlspace.frontier.postgres.hosts import HeldHost, hold
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.settle import _Settling
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.postgres.urls import Named, Place
from crawlspace.states import Event, UrlState
from crawlspace.types import Adopted, Answer, Claim

_SQL = queries("review.sql")


async def adopt(transaction: Transaction, settlements: Sequence[Adopted], claims: Sequence[Claim]) -> list[Answer]:
    """Claim the links, then settle what waits; `STALE` is the answer to those whose URL does not wait."""
    contents = Contents(transaction)
    claims = await contents.trodden(claims)
    claiming = Claiming(transaction, claims)
    await claiming.look()
    hids = claiming.hosts | {settlement.hid for settlement in settlements}
    held = await hold(transaction, hids, claiming.names, claiming.ask)
    claimed = await claiming.run(held)
    adopting = _Adopting(transaction, settlements, held)
    answers = await adopting.adopt()
    await contents.keep(settlements, adopting.pages, Found.of(claims, claimed, claiming.turned_away()))
    return answers


class _Adopting(_Settling):
    """One batch, its hosts held."""

    def __init__(
        self, transaction: Transaction, settlements: Sequence[Adopted], held: Mapping[int, HeldHost]
    ) -> None:
        super().__init__(transaction, settlements, held)
        self._wanted_of = settlements

    async def adopt(self) -> list[Answer]:
        waiting = await self._urls.waiting([Named(one.hid, one.url.id) for one in self._wanted_of])
        free = {number: place for number, place in waiting.items() if not place.leased}
        await self._urls.remove(list(free.values()))
        spent = [one for one in self._wanted_of if one.url.id in free]
        await self._read_for(spent)
        done = [self._one_adopted(one, free) for one in self._wanted_of]
        await self._write()
        ordered = sorted({settlement.hid for settlement in self._wanted_of})
        shards = numbers(map(self._transaction.shards.of, ordered))
        await self._transaction.run(_SQL["reclass"], shard=shards, hid=numbers(ordered))
        return done

    def _one_adopted(self, settlement: Adopted, free: dict[int, Place]) -> Answer:
        place = free.pop(settlement.url.id, None)
        if place is None:
            return Answer.STALE
        delta = self._book.host(settlement.hid)
        if place.due_at is None:
            delta.queued -= 1
        else:
            delta.delayed -= 1
        self._book.move(UrlState.QUEUED, Event.LEASE)
        self._apply(settlement, place.row)
        return Answer.SETTLED
