"""URLs whose capture was durable while its processing failed: done, now that it was read again.

No lease and no request comes into it: only what is `stored` is settled so, whatever else its host is doing. All runs
inside a transaction of the caller, who also writes the book.
"""

from __future__ import annotations

from collections.abc import Sequence

from crawlspace.frontier.sqlite.settle import Settling
from crawlspace.states import Event, UrlState
from crawlspace.types import Finished


class Reprocessing(Settling):
    """One batch of URLs that were read again; their settlements carry no token."""

    def finish(self, settlements: Sequence[Finished]) -> list[bool]:
        """Apply them in order; whether each found its URL stored."""
        done = [self._one_finished(settlement) for settlement in settlements]
        self._write_all()
        for hid in sorted({settlement.hid for settlement in settlements}):
            self._book.write_host(hid)
        return done

    def _one_finished(self, settlement: Finished) -> bool:
        row = self._urls.reopen(settlement.url.id, UrlState.STORED)
        if row is None:
            return False
        state = self._book.move(UrlState.STORED, Event.FINISH)
        self._finish(settlement, row._replace(attempts=settlement.url.attempts), state)
        return True
