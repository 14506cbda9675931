"""Carrying out the plan of a re-keying: the first of each group takes the new key, the others are merged into it.

Each batch is one transaction of the caller, and leaves a store in which every number is right: each URL in one place,
totals and hosts as their rows say. What is merged keeps its whole row in `merged`, and comes back from there when
later rules part the two again.

Requests of a host were made to its name, so they count where its name goes. A URL that goes to another host than
its host's name takes its own tries along.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field

from crawlspace.frontier.counters import DUPLICATES, HOSTS, PAGES, STATE_NAMES
from crawlspace.frontier.rekeying import Facts, Naming, Place, Planned, better_of, request_of
from crawlspace.frontier.rows import Waiting
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.book import Book
from crawlspace.frontier.sqlite.urls import Place as WaitingPlace
from crawlspace.frontier.sqlite.urls import Urls
from crawlspace.states import UrlState
from crawlspace.types import HOST_BYTES, host_id

_SQL = statements(__package__, "rekey.sql")


@dataclass(slots=True)
class Moved:
    """What one batch did."""

    merged: int = 0
    restored: int = 0
    touched: set[int] = field(default_factory=set)
    """Hosts whose queue changed."""


class Moving:
    """One batch, inside a transaction of the caller."""

    def __init__(
        self, connection: sqlite3.Connection, settings: FrontierSettings, naming: Naming, rules: str
    ) -> None:
        self._connection = connection
        self._naming = naming
        self._rules = rules
        self._book = Book(connection, settings)
        self._urls = Urls(connection)
        self._moved = Moved()
        self._met: dict[int, bool] = {}
        self._heirs: dict[int, int] = {}

    def run(self, rows: list[Planned], last: tuple[bytes, int]) -> tuple[Moved, tuple[bytes, int]]:
        """Carry out these rows; `last` is the key and the number of the group's first, which goes on over batches."""
        key, winner = last
        for row in rows:
            if row.key == key:
                self._absorb(row, winner)
                continue
            key, winner = row.key, row.id
            if not row.stays:
                self._take_key(row)
        self._book.write()
        for hid in self._moved.touched:
            self._connection.execute(_SQL["reclass_host"], (hid,))
        return self._moved, (key, winner)

    # -- who stays ------------------------------------------------------------------------------------------

    def _take_key(self, row: Planned) -> None:
        hid = self._host(row)
        if row.is_live:
            self._connection.execute(_SQL["forget_key"], (row.old_key, row.id))
            self._move(row, hid)
        else:
            self._restore(row, hid)
        self._connection.execute(_SQL["take_key"], (row.key, row.id))

    def _move(self, row: Planned, hid: int) -> None:
        tail = row.key[HOST_BYTES:]
        if row.place == Place.OUTCOME:
            facts = self._outcome_facts(row.id)
            self._connection.execute(_SQL["move_outcome"], (hid, tail, row.id))
        else:
            place = self._waiting(row.hid, row.id)
            facts = _facts_of(place)
            self._urls.replace(place, place.row._replace(hid=hid, tail=tail))
        if hid != row.hid:
            self._count(row.hid, facts, -1)
            self._count(hid, facts, 1)
            self._carry(row.hid, hid, facts.attempts)

    def _restore(self, row: Planned, hid: int) -> None:
        found = self._connection.execute(_SQL["merged_facts"], (row.id,)).fetchone()
        *told, counted_at, due_at, winner = found
        facts = Facts(*told)._replace(delayed=due_at is not None)
        where = {"id": row.id, "hid": hid, "tail": row.key[HOST_BYTES:]}
        if facts.state == UrlState.QUEUED:
            waiting = Waiting._make(self._connection.execute(_SQL["restore_waiting"], where).fetchone())
            if due_at is None:
                self._urls.enqueue(waiting)
            else:
                self._urls.delay(waiting, due_at)
        else:
            self._connection.execute(_SQL["restore_outcome"], where)
            self._connection.execute(_SQL["regain_content"], {"id": row.id, "winner": winner})
        self._connection.execute(_SQL["forget_merged"], (row.id,))
        self._count(hid, facts, 1)
        self._carry(counted_at, hid, facts.attempts)
        self._total(facts, 1)
        self._moved.restored += 1

    # -- who gives way --------------------------------------------------------------------------------------

    def _absorb(self, row: Planned, winner: int) -> None:
        hid = self._host(row)
        if not row.is_live:
            (attempts,) = self._merged_attempts(row.id)
            self._connection.execute(_SQL["redirect_merged"], (winner, hid, row.id))
            self._carry(row.hid, hid, attempts)
            return
        self._connection.execute(_SQL["forget_key"], (row.old_key, row.id))
        if row.place == Place.OUTCOME:
            facts = self._outcome_facts(row.id)
            keep = {"id": row.id, "winner": winner, "rules": self._rules, "hid": hid}
            self._connection.execute(_SQL["bury_outcome"], keep)
            self._connection.execute(_SQL["forget_outcome"], (row.id,))
        else:
            facts = self._absorb_waiting(row, winner, hid)
        self._count(row.hid, facts, -1)
        self._carry(row.hid, hid, facts.attempts)
        self._total(facts, -1)
        self._moved.merged += 1

    def _merged_attempts(self, number: int) -> tuple[int]:
        facts = self._connection.execute(_SQL["merged_facts"], (number,)).fetchone()
        return (facts[3],)

    def _absorb_waiting(self, row: Planned, winner: int, hid: int) -> Facts:
        place = self._waiting(row.hid, row.id)
        old = place.row
        self._connection.execute(_SQL["bury_waiting"], _merged_row(place, winner, self._rules, hid))
        self._urls.remove(place)
        stayed = self._urls.waiting(hid, winner)
        if stayed is not None:
            self._urls.replace(stayed, better_of(stayed.row, old))
            self._moved.touched.add(hid)
        return _facts_of(place)

    # -- counting -------------------------------------------------------------------------------------------

    def _count(self, hid: int, facts: Facts, n: int) -> None:
        """`n` URLs of this kind more at a host."""
        delta = self._book.host(hid)
        if facts.state == UrlState.QUEUED and facts.delayed:
            delta.delayed += n
        elif facts.state == UrlState.QUEUED:
            delta.queued += n
            self._moved.touched.add(hid)
        elif facts.state == UrlState.DONE:
            delta.done += n
        elif facts.state == UrlState.DEAD:
            delta.dead += n
        elif facts.state == UrlState.SKIPPED:
            self._connection.execute(_SQL["move_refusals"], {"hid": hid, "reason": facts.reason, "n": n})
        if facts.state != UrlState.SKIPPED:
            delta.discovered += n
        if facts.is_copy:
            delta.duplicates += n
        if n > 0 and facts.was_met:
            self._meet(hid)

    def _total(self, facts: Facts, n: int) -> None:
        """`n` URLs of this kind more in all. Requests and bytes were what they were."""
        self._book.add(STATE_NAMES[UrlState(facts.state)], n)
        if facts.is_page:
            self._book.add(PAGES, n)
        if facts.is_copy:
            self._book.add(DUPLICATES, n)

    def _carry(self, old: int, new: int, attempts: int) -> None:
        """Tries go along to a host that does not have the old one's name."""
        if attempts and old != new and self._heir(old) != new:
            self._book.host(old).fetched -= attempts
            self._book.host(new).fetched += attempts

    def _meet(self, hid: int) -> None:
        if not self._met[hid]:
            self._met[hid] = True
            self._book.host(hid).met = 1
            self._book.add(HOSTS, 1)

    # -- what the batch reads -------------------------------------------------------------------------------

    def _host(self, row: Planned) -> int:
        """The number of the row's new host: made when it is not there, and asked no faster than the old one."""
        hid = host_id(row.key)
        if hid not in self._met:
            found = self._connection.execute(_SQL["host"], (hid,)).fetchone()
            if found is None:
                self._add_host(row, hid)
            self._met[hid] = found is not None and bool(found[0])
        if hid != row.hid:
            for statement in ("slow_host", "hold_host"):
                self._connection.execute(_SQL[statement], {"old": row.hid, "new": hid})
        return hid

    def _add_host(self, row: Planned, hid: int) -> None:
        url, request = self._connection.execute(_SQL["url_of"], {"id": row.id, "hid": row.hid}).fetchone()
        named = self._naming.name(url, request_of(request))
        assert named is not None, f"URL {row.id} lost its key between plan and move"
        self._connection.execute(_SQL["add_host"], (hid, named.host, named.seed))

    def _heir(self, hid: int) -> int:
        if hid not in self._heirs:
            name: str = self._connection.execute(_SQL["host_name"], (hid,)).fetchone()[0]
            self._heirs[hid] = host_id(self._naming.heir(name).key)
        return self._heirs[hid]

    def _outcome_facts(self, number: int) -> Facts:
        return Facts(*self._connection.execute(_SQL["outcome_facts"], (number,)).fetchone())

    def _waiting(self, hid: int, number: int) -> WaitingPlace:
        place = self._urls.waiting(hid, number)
        assert place is not None, f"URL {number} is neither queued nor delayed"
        return place


def _facts_of(place: WaitingPlace) -> Facts:
    return Facts(int(UrlState.QUEUED), attempts=place.row.attempts, delayed=place.due_at is not None)


def _merged_row(place: WaitingPlace, winner: int, rules: str, hid: int) -> tuple[object, ...]:
    """A waiting URL as a row of `merged`."""
    row = place.row
    mine = (row.url, row.depth, row.hops, row.attempts, row.parent, row.relation, row.found_at, row.label, row.meta)
    last = (row.request, row.history, row.generation, place.due_at, row.suspect, row.route)
    return (row.id, winner, rules, hid, row.front_class, *mine, *last)
