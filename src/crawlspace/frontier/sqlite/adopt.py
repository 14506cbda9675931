"""Settlements without a lease: URLs that need no request, since somebody else made it before.

Only what waits is settled so; what a worker holds, and what has ended, stays as it is. No request is counted for it:
the host's budget is for those that we make. All runs inside a transaction of the caller, who also writes the book.
"""

from __future__ import annotations

from collections.abc import Sequence

from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.settle import Settling
from crawlspace.frontier.sqlite.urls import Place
from crawlspace.states import Event, UrlState
from crawlspace.types import Adopted, Answer

_SQL = statements(__package__, "review.sql")


class Adopting(Settling):
    """One batch of URLs that somebody else has asked for; their settlements carry no token."""

    def adopt(self, settlements: Sequence[Adopted]) -> list[Answer]:
        """Apply them in order; `STALE` is the answer to those whose URL does not wait."""
        done = [self._one_adopted(settlement) for settlement in settlements]
        self._write_all()
        for hid in sorted({settlement.hid for settlement in settlements}):
            self._book.write_host(hid)
            self._connection.execute(_SQL["reclass"], (hid,))
        return done

    def _one_adopted(self, settlement: Adopted) -> Answer:
        place = self._urls.waiting(settlement.hid, settlement.url.id)
        if place is None or self._is_held(place):
            return Answer.STALE
        self._urls.remove(place)
        delta = self._book.host(settlement.hid)
        if place.due_at is None:
            delta.queued -= 1
        else:
            delta.delayed -= 1
        self._book.move(UrlState.QUEUED, Event.LEASE)
        self._apply(settlement, place.row)
        return Answer.SETTLED

    def _is_held(self, place: Place) -> bool:
        """Whether a live lease has the URL, and has not sent it back."""
        fence = self._fence(place.row.hid)
        return place.due_at is None and place.row.id in fence.held and place.row.settled != fence.token
