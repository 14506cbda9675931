"""URLs whose capture was durable while its processing failed: done, now that it was read again.

As in the embedded store: only what is `stored` is settled so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crawlspace.frontier.content_rows import Found
from crawlspace.frontier.postgres.claim import Claiming
from crawlspace.frontier.postgres.content import Contents
from crawlspace.frontier.postgres.hosts import HeldHost, hold
from crawlspace.frontier.postgres.settle import _Settling
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.postgres.urls import Named
from crawlspace.frontier.rows import Waiting
from crawlspace.states import Event, UrlState
from crawlspace.types import Claim, Finished


async def finish_stored(
    transaction: Transaction, settlements: Sequence[Finished], claims: Sequence[Claim]
) -> list[bool]:
    """Claim the links, then settle what is stored; whether each settlement found its URL so."""
    contents = Contents(transaction)
    claims = await contents.trodden(claims)
    claiming = Claiming(transaction, claims)
    await claiming.look()
    hids = claiming.hosts | {settlement.hid for settlement in settlements}
    held = await hold(transaction, hids, claiming.names, claiming.ask)
    claimed = await claiming.run(held)
    reprocessing = _Reprocessing(transaction, settlements, held)
    finished = await reprocessing.finish()
    await contents.keep(settlements, reprocessing.pages, Found.of(claims, claimed, claiming.turned_away()))
    return finished


class _Reprocessing(_Settling):
    """One batch, its hosts held."""

    def __init__(
        self, transaction: Transaction, settlements: Sequence[Finished], held: Mapping[int, HeldHost]
    ) -> None:
        super().__init__(transaction, settlements, held)
        self._finished = settlements

    async def finish(self) -> list[bool]:
        rows = await self._urls.reopen({Named(one.hid, one.url.id) for one in self._finished}, UrlState.STORED)
        await self._read_for([one for one in self._finished if one.url.id in rows])
        done = [self._one_finished(one, rows) for one in self._finished]
        await self._write()
        return done

    def _one_finished(self, settlement: Finished, rows: dict[int, Waiting]) -> bool:
        row = rows.pop(settlement.url.id, None)
        if row is None:
            return False
        state = self._book.move(UrlState.STORED, Event.FINISH)
        self._finish(settlement, row._replace(attempts=settlement.url.attempts), state)
        return True
