"""The end of a simulation against the truth about its web (I3, I7, I9, I11, I14, L4)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from crawlspace.frontier.bounds import CRASHES_WORKER, LOSSES
from crawlspace.states import UrlState
from crawlspace.testing.sim.web import ZONE
from crawlspace.types import Pointer

if TYPE_CHECKING:
    from crawlspace.testing.sim.checker import Checker
    from crawlspace.testing.sim.world import World

_ROWS = """
  SELECT s.fp, s.id, o.url, o.state, o.reason, o.attempts, o.digest, o.offset, o.length,
    (SELECT name FROM segment WHERE id = o.segment)
  FROM seen s LEFT JOIN outcome o ON o.id = s.id
"""


class _Row(NamedTuple):
    key: bytes
    id: int
    url: str | None
    state: int | None
    reason: str | None
    attempts: int | None
    digest: bytes | None
    offset: int | None
    length: int | None
    file: str | None


class Verdict:
    """Looks at every URL that the store knows, and at every page that the web has."""

    def __init__(self, world: World, checker: Checker, place_of: Mapping[bytes, int]) -> None:
        self._world = world
        self._checker = checker
        self._place_of = place_of

    def give(self) -> None:
        """Tell the history what is not as it should be."""
        rows = [_Row._make(row) for row in self._checker.connection.execute(_ROWS)]
        found = {}
        perhaps = self._world.web.reachable(surely=False)
        for row in rows:
            place = self._place_of.get(row.key)
            if row.state is None or row.url is None:
                self._broken("I9", f"URL {row.id} is not ended")
            elif place is None:
                self._is_a_strangers(row, row.url)
            elif place not in perhaps:
                self._broken("I9", f"{row.url} cannot be found, and is known")
            else:
                found[place] = row
                self._ended_rightly(place, row, UrlState(row.state))
        lost = frozenset(place for place, row in found.items() if row.reason == CRASHES_WORKER)
        for place in sorted(self._world.web.reachable(surely=True, without=lost) - found.keys()):
            self._broken("L4", f"{self._world.web.pages[place].url} was not found")

    def _is_a_strangers(self, row: _Row, url: str) -> None:
        if f"{ZONE}/" in url or row.state != UrlState.SKIPPED:
            self._broken("I3", f"{url} is no page of the web, and ended as {row.state} ({row.reason})")

    def _ended_rightly(self, place: int, row: _Row, state: UrlState) -> None:
        page, checker = self._world.web.pages[place], self._checker
        losses = checker.losses[row.key]
        right = page.states()
        if row.reason == CRASHES_WORKER and losses >= LOSSES:
            right |= {UrlState.DEAD}
        if state not in right:
            self._broken("I9", f"{page.url} ({page.kind.name}) ended as {state.name} ({row.reason})")
        spent = checker.spent[row.key]
        if checker.fetches[row.key] > spent + losses:
            times = f"{checker.fetches[row.key]} times, with {spent} outcomes and {losses} lost leases"
            self._broken("I11", f"{page.url} was fetched {times}")
        if state is not UrlState.SKIPPED and row.attempts != checker.attempts[row.id]:
            self._broken("I14", f"{page.url} has {row.attempts} attempts, not {checker.attempts[row.id]}")
        if state is UrlState.DONE:
            self._can_be_read(row)

    def _can_be_read(self, row: _Row) -> None:
        capture = self._world.capture(Pointer(str(row.file), row.offset or 0, row.length or 0))
        digest: Any = None if capture is None else hashlib.sha256(capture.payload).digest()
        if capture is None or (row.digest is not None and digest != row.digest):
            self._broken("I7", f"{row.url} is done, and its capture cannot be read")

    def _broken(self, name: str, what: str) -> None:
        self._world.history.broken(name, what)
