"""Settlements: the named ways in which a leased URL ends, each fenced by its lease's token.

The token is compared before anything is written. A settlement that comes a second time from the lease that had made
it is told so; from any other lease it is stale, and changes nothing.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, assert_never

from crawlspace.frontier.counters import BYTES, DUPLICATES, FETCHES, PAGES
from crawlspace.frontier.rounds import last_done, planned, unchanged
from crawlspace.frontier.routes import Used
from crawlspace.frontier.rows import Ending, Waiting, detail_column, ending, rerouted, with_attempt
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import chunks, listed, statements
from crawlspace.frontier.sqlite import crowds, groups
from crawlspace.frontier.sqlite.book import Book
from crawlspace.frontier.sqlite.condemned import condemn
from crawlspace.frontier.sqlite.moves import Moves, Where
from crawlspace.frontier.sqlite.revisit import visits
from crawlspace.frontier.sqlite.routes import write_used
from crawlspace.frontier.sqlite.urls import Urls, held_urls
from crawlspace.states import Event, UrlState, advance
from crawlspace.types import (
    Answer,
    Attempt,
    Died,
    Evidence,
    Finished,
    Moved,
    ProcessingFailed,
    Refused,
    Released,
    Rerouted,
    RetryAt,
    Settlement,
    Unchanged,
    WasRedirect,
)

_SQL = statements(__package__, "settle.sql")

_DIGEST_BYTES = 16
_NOTHING = hashlib.sha256(b"").digest()
_UNNAMED = "unknown"

_OfUrl = Finished | Unchanged | ProcessingFailed | WasRedirect | Moved | RetryAt | Rerouted | Refused | Died

_EVENTS: dict[type[_OfUrl], Event] = {
    Finished: Event.FINISH,
    Unchanged: Event.FINISH,
    ProcessingFailed: Event.FAIL_PROCESSING,
    WasRedirect: Event.REDIRECT,
    Moved: Event.MOVE,
    RetryAt: Event.RETRY,
    Rerouted: Event.REROUTE,
    Refused: Event.REFUSE,
    Died: Event.DIE,
}


@dataclass(slots=True)
class _Fence:
    """One host's lease as it stands now."""

    token: int | None
    released: int | None
    held: dict[int, int]
    """The URLs it was given, settled ones too: class by number."""
    group: str | None = None
    """The pace group whose turn it has."""
    unspent: int = 0
    """How many URLs it still holds."""


class _Visit(NamedTuple):
    """A visit that is over."""

    settlement: Released
    group: str | None


class Settling:
    """One batch of settlements, inside a transaction of the caller, who also writes the book."""

    def __init__(self, connection: sqlite3.Connection, settings: FrontierSettings, book: Book, now: int) -> None:
        self._connection = connection
        self._settings = settings
        self._book = book
        self._now = now
        self._urls = Urls(connection)
        self._moves = Moves(connection)
        self._fences: dict[int, _Fence] = {}
        self._over: list[_Visit] = []
        self._segments: dict[str, int] = {}
        self._reach: dict[int, int] = {}
        self._used = Used()
        self.pages: dict[int, bool] = {}
        """Numbers of the URLs that are done with a page now, and whether another URL had its bytes first."""

    def run(self, settlements: Sequence[Settlement]) -> list[Answer]:
        """Apply them in order; one answer each. Raises `IllegalMove` when one was not the lease's to make."""
        self._read_ahead(settlements)
        answers = [self._one(settlement) for settlement in settlements]
        self._write_all()
        return answers

    def _read_ahead(self, settlements: Sequence[Settlement]) -> None:
        """Read together what the settlements will ask one by one."""
        self._read_fences({settlement.hid for settlement in settlements})
        places: list[Where] = []
        digests: list[bytes] = []
        for settlement in settlements:
            if isinstance(settlement, Released):
                continue
            fence, number = self._fence(settlement.hid), settlement.url.id
            if settlement.token == fence.token and number in fence.held:
                places.append((settlement.hid, fence.held[number], number))
                if isinstance(settlement, Finished) and settlement.evidence.digest is not None:
                    digests.append(settlement.evidence.digest[:_DIGEST_BYTES])
        self._moves.look_up(places, digests)

    def _write_all(self) -> None:
        """Write what the batch has collected."""
        self._write()
        self._connection.executemany(_SQL["reach"], [(reach, number) for number, reach in self._reach.items()])
        write_used(self._connection, self._used)

    def _write(self) -> None:
        """Write where URLs went, then which visits are over."""
        self._moves.write()
        over, self._over = self._over, []
        if over:
            self._end_visits(over)

    def _one(self, settlement: Settlement) -> Answer:
        fence = self._fence(settlement.hid)
        if isinstance(settlement, Released):
            return self._release(settlement, fence)
        if settlement.token != fence.token:
            return self._late(settlement)
        number = settlement.url.id
        front_class = fence.held.get(number)
        row = None
        if front_class is not None:
            row = self._moves.take(settlement.hid, front_class, number, settlement.token)
        if row is None:
            return self._not_held(settlement)
        fence.unspent -= 1
        self._count(settlement)
        self._apply(settlement, row)
        return Answer.SETTLED

    # -- the fence ------------------------------------------------------------------------------------------

    def _fence(self, hid: int) -> _Fence:
        if hid not in self._fences:
            self._read_fences({hid})
        return self._fences[hid]

    def _read_fences(self, hosts: set[int]) -> None:
        for hid in hosts:
            self._fences[hid] = _Fence(None, None, {})
        for chunk in chunks(sorted(hosts)):
            for row in self._connection.execute(listed(_SQL["fences"], len(chunk)), chunk):
                hid, token, released, group, unspent, urls = row
                held = {} if urls is None else held_urls(urls)
                self._fences[hid] = _Fence(token, released, held, group, unspent)

    def _late(self, settlement: _OfUrl) -> Answer:
        """The lease is over: was it this one that had settled the URL?"""
        self._write()
        number = settlement.url.id
        ended = self._urls.ended(number)
        if ended is not None:
            return Answer.ALREADY if ended.token == settlement.token else Answer.STALE
        place = self._urls.waiting(settlement.hid, number)
        return Answer.ALREADY if place is not None and place.row.settled == settlement.token else Answer.STALE

    def _not_held(self, settlement: _OfUrl) -> Answer:
        """The lease lives but does not hold the URL: it settled it before, or never had it."""
        answer = self._late(settlement)
        if answer is Answer.STALE:
            ended = self._urls.ended(settlement.url.id)
            advance(UrlState.QUEUED if ended is None else ended.state, _EVENTS[type(settlement)])
        return answer

    # -- the moves ------------------------------------------------------------------------------------------

    def _count(self, settlement: _OfUrl) -> None:
        delta = self._book.host(settlement.hid)
        delta.queued -= 1
        delta.leased -= 1
        if not isinstance(settlement, Refused) and settlement.evidence.asked:
            self._used.count(settlement)
            delta.fetched += 1
            self._book.add(FETCHES, 1)
            self._book.add(BYTES, settlement.evidence.size)

    def _apply(self, settlement: _OfUrl, row: Waiting) -> None:
        state = self._book.move(UrlState.LEASED, _EVENTS[type(settlement)])
        match settlement:
            case Finished():
                self._finish(settlement, row, state)
            case Unchanged():
                self._stay(settlement, row, state)
            case ProcessingFailed():
                self._end(row, self._named(settlement, state))
            case WasRedirect():
                end = self._ending(settlement.evidence, state, settlement.token)
                self._end(row, planned(end._replace(target=settlement.target), settlement.again, self._now))
            case Moved():
                self._reaches(settlement.evidence)
                moved = row._replace(url=settlement.target, hops=row.hops + 1, settled=settlement.token)
                self._moves.enqueue(moved)
                self._book.host(row.hid).join(row.front_class)
            case RetryAt():
                self._retry(settlement, row)
            case Rerouted():
                self._reroute(settlement, row)
            case Refused():
                self._refuse(settlement, row, state)
            case Died():
                self._end(row, planned(self._named(settlement, state), settlement.again, self._now))
                self._book.host(row.hid).dead += 1
            case _:  # pragma: no cover
                assert_never(settlement)

    def _finish(self, settlement: Finished, row: Waiting, state: UrlState) -> None:
        end = self._ending(settlement.evidence, state, settlement.token)
        if end.status is not None and 200 <= end.status < 300:
            self._book.add(PAGES, 1)
            first = self._first_with(end.digest, row.id)
            if first is not None:
                end = end._replace(copy_of=first)
                self._book.host(row.hid).duplicates += 1
            self.pages[row.id] = first is not None
        self._end(row, planned(end, settlement.again, self._now))
        self._book.host(row.hid).done += 1

    def _stay(self, settlement: Unchanged, row: Waiting, state: UrlState) -> None:
        """Done with the capture and the content of an earlier visit."""
        seen = self._ending(settlement.evidence, state, settlement.token)
        end = unchanged(seen, last_done(visits(self._connection, row.id)))
        if end.status is not None and 200 <= end.status < 300:
            self._book.add(PAGES, 1)
        if end.copy_of is not None:
            self._book.add(DUPLICATES, 1)
            self._book.host(row.hid).duplicates += 1
        self._end(row, planned(end, settlement.again, self._now))
        self._book.host(row.hid).done += 1

    def _first_with(self, digest: bytes | None, number: int) -> int | None:
        """The URL that had these bytes before this one; None when it is the first."""
        if digest is None or digest == _NOTHING:
            return None
        first = self._moves.first_with(digest[:_DIGEST_BYTES], number)
        if first == number:
            return None
        self._book.add(DUPLICATES, 1)
        return first

    def _retry(self, settlement: RetryAt, row: Waiting) -> None:
        seen = settlement.evidence
        tried = with_attempt(row, Attempt(seen.at, seen.error or _UNNAMED, seen.status))
        self._reaches(seen)
        self._moves.delay(tried._replace(settled=settlement.token), settlement.due)
        self._book.host(row.hid).delayed += 1

    def _reroute(self, settlement: Rerouted, row: Waiting) -> None:
        self._reaches(settlement.evidence)
        self._moves.delay(rerouted(row, settlement), settlement.due)
        self._book.host(row.hid).delayed += 1

    def _refuse(self, settlement: Refused, row: Waiting, state: UrlState) -> None:
        reason = settlement.reason.value
        detail = detail_column(settlement.detail)
        self._end(row, Ending(int(state), self._now, settlement.token, reason, detail))
        self._connection.execute(_SQL["refuse"], (row.hid, reason))

    def _end(self, row: Waiting, end: Ending) -> None:
        self._moves.end(row, end)

    def _named(self, settlement: ProcessingFailed | Died, state: UrlState) -> Ending:
        """A failure always has a class."""
        end = self._ending(settlement.evidence, state, settlement.token)
        return end if end.reason else end._replace(reason=_UNNAMED)

    def _ending(self, evidence: Evidence, state: UrlState, token: int) -> Ending:
        return ending(evidence, state, self._now, token, self._reaches(evidence))

    def _reaches(self, evidence: Evidence) -> int | None:
        """The number of the archive file, whose settled part now reaches beyond this capture."""
        pointer = evidence.pointer
        if pointer is None:
            return None
        number = self._segments.get(pointer.file)
        if number is None:
            known = self._connection.execute(_SQL["segment"], (pointer.file,)).fetchone()
            made = known or self._connection.execute(_SQL["add_segment"], (pointer.file,)).fetchall()[0]
            number = self._segments[pointer.file] = int(made[0])
        self._reach[number] = max(self._reach.get(number, 0), pointer.offset + pointer.length)
        return number

    # -- the end of a visit ---------------------------------------------------------------------------------

    def _release(self, settlement: Released, fence: _Fence) -> Answer:
        if settlement.token != fence.token:
            return Answer.ALREADY if settlement.token == fence.released else Answer.STALE
        self._book.move(UrlState.LEASED, Event.RETURN, fence.unspent)
        self._over.append(_Visit(settlement, fence.group))
        self._fences[settlement.hid] = _Fence(None, settlement.token, {})
        return Answer.SETTLED

    def _end_visits(self, over: list[_Visit]) -> None:
        """Let the hosts go. What their URLs did is written: the class of a host is that of the best one left."""
        self._book.write_hosts([visit.settlement.hid for visit in over])
        crowded = [visit.settlement.hid for visit in over if self._gives_back(visit)]
        self._connection.executemany(_SQL["drop_lease"], [(visit.settlement.token,) for visit in over])
        self._connection.executemany(_SQL["release"], [_clock(visit.settlement) for visit in over])
        for hid in crowded:
            crowds.park(self._connection, hid)
        for settlement, _ in over:
            if settlement.condemned is not None:
                condemn(self._connection, self._book, settlement.hid, settlement.condemned, self._now)

    def _gives_back(self, visit: _Visit) -> bool:
        """Give back the turn of the host's group; whether too many hosts have its address, which is counted."""
        hid, address = visit.settlement.hid, visit.settlement.address
        if visit.group is not None:
            groups.give_back(self._connection, hid, visit.settlement.group_next_at)
        return address is not None and crowds.is_one_too_many(self._connection, self._settings, hid, address)


def _clock(settlement: Released) -> tuple[object, ...]:
    clock = settlement.pace
    return (
        settlement.token,
        clock.next_at,
        clock.delay_ms,
        clock.crawl_delay_ms,
        clock.failures,
        clock.slowed,
        clock.latency_ms,
        settlement.address,
        settlement.hid,
    )
