"""Claims: which links are new, and what a repeated one can still change.

Whoever inserts a key into `seen` first, wins; the transaction around a batch is what makes two finders one after the
other. Inside a batch the first wins too. New rows are collected and written together, repeats looked at one by one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from crawlspace.frontier.counters import HOSTS, REFUSED_BEYOND_CAP
from crawlspace.frontier.rows import Ending, Waiting, bettered, is_no_better, waiting, way_of
from crawlspace.frontier.settings import CLASSES, FrontierSettings
from crawlspace.frontier.sql import chunks, listed, statements
from crawlspace.frontier.sqlite.book import Book
from crawlspace.frontier.sqlite.crowds import Crowds
from crawlspace.frontier.sqlite.revisit import bring_forward
from crawlspace.frontier.sqlite.urls import URLS, Place, Urls
from crawlspace.states import Event, UrlState
from crawlspace.types import PATH_DEPENDENT, Claim, Claimed, Reason, host_id

_SQL = statements(__package__, "claim.sql")


_Known = tuple[int, int | None]
"""The number of a known key, and the best way in which it was claimed (`seen.way`)."""


@dataclass(slots=True)
class _Host:
    """What a batch knows of one host."""

    seed: bool
    met: bool
    waiting: int
    """URLs queued or delayed, those of this batch included."""
    token: int | None
    blocked: bool
    crowded: bool = False
    """Too many hosts have its address."""
    front_class: int | None = None
    """That of the best URL in its queue; None while there is none."""


@dataclass(slots=True)
class _Refusals:
    """How many of one host and reason there are."""

    kept: int
    beyond: int


class _Refused(NamedTuple):
    row: Waiting
    reason: Reason


class Claiming:
    """One batch of claims, inside a transaction of the caller, who also writes the book."""

    def __init__(self, connection: sqlite3.Connection, settings: FrontierSettings, book: Book, now: int) -> None:
        self._connection = connection
        self._settings = settings
        self._book = book
        self._now = now
        self._urls = Urls(connection)
        self._last = 0
        self._hosts: dict[int, _Host] = {}
        self._refusals: dict[tuple[int, str], _Refusals] = {}
        self._held: dict[int, dict[int, int]] = {}
        self._waits: dict[int, int] = {}
        """Depth of the URLs that wait in their claim's class, by ten times the number and the class, as it was before
        the batch: rows that change in it only get better."""
        self._closer: set[bytes] = set()
        """Known keys of which some claim may change something."""
        self._ways: dict[bytes, int] = {}
        """The ways that known keys have from now on."""
        self._fresh: dict[bytes, Waiting] = {}
        self._refused: dict[bytes, _Refused] = {}
        self._crowds = Crowds(connection, settings)

    def run(self, claims: Sequence[Claim]) -> list[Claimed]:
        """Judge and write the batch; one answer each, in order."""
        if not claims:
            return []
        known = self._known({claim.address.key for claim in claims})
        self._read_ahead(claims, known)
        self._last = self._urls.last(URLS)
        answers = [self._one(claim, known.get(claim.address.key)) for claim in claims]
        self._write()
        return answers

    def turned_away(self) -> dict[bytes, Reason]:
        """Why new keys of the batch are refused, by the claim's word or by ours."""
        return {key: refused.reason for key, refused in self._refused.items()}

    def _known(self, keys: set[bytes]) -> dict[bytes, _Known]:
        found: dict[bytes, _Known] = {}
        for chunk in chunks(sorted(keys)):
            for key, number, way in self._connection.execute(listed(_SQL["known"], len(chunk)), chunk):
                found[key] = number, way
        return found

    def _read_ahead(self, claims: Sequence[Claim], known: Mapping[bytes, _Known]) -> None:
        """Read together what the claims will ask one by one: their hosts, and how the known ones wait."""
        hosts: set[int] = set()
        asked: list[int] = []
        for claim in claims:
            key = claim.address.key
            found = known.get(key)
            if found is None:
                hosts.add(host_id(key))
            elif claim.refusal is None and not self._changes_nothing(claim, found):
                self._closer.add(key)
                asked += (host_id(key), claim.front_class, found[0])
        self._read_hosts(hosts)
        for chunk in chunks(asked, 3):
            statement = listed(_SQL["waiting_so"], len(chunk) // 3)
            self._waits.update(self._connection.execute(statement, chunk))

    def _changes_nothing(self, claim: Claim, found: _Known) -> bool:
        news = claim.modified is not None and self._settings.revisits
        return not news and is_no_better(claim, found[1])

    def _read_hosts(self, hosts: set[int]) -> None:
        for chunk in chunks(sorted(hosts)):
            for hid, *row in self._connection.execute(listed(_SQL["hosts"], len(chunk)), chunk):
                seed, met, waits, token, blocked, crowded, front_class = row
                host = _Host(bool(seed), bool(met), waits, token, bool(blocked), bool(crowded), front_class)
                self._hosts[hid] = host

    def _one(self, claim: Claim, known: _Known | None) -> Claimed:
        if claim.seed_host and not (host := self._host(claim)).seed:
            host.seed = True
            self._book.host(host_id(claim.address.key)).seed = 1
        key = claim.address.key
        if known is not None:
            if key in self._closer and claim.refusal is None:
                self._repeat(claim, known[0])
            return Claimed.KNOWN
        if key in self._fresh:
            self._better_fresh(key, claim)
            return Claimed.KNOWN
        if key in self._refused:
            self._admit_refused(key, claim)
            return Claimed.KNOWN
        return self._new(claim)

    # -- new keys -------------------------------------------------------------------------------------------

    def _new(self, claim: Claim) -> Claimed:
        if self._turns_away(claim):
            return Claimed.OVER_BUDGET
        host = self._host(claim)
        hid = host_id(claim.address.key)
        reason = claim.refusal or self._objection(claim, host)
        if reason is not None and not self._keeps(hid, reason):
            return Claimed.OVER_BUDGET
        self._last += 1
        row = waiting(claim, hid, self._last, self._now)
        if reason is None:
            self._fresh[claim.address.key] = row
            self._joins(claim, host, row)
            self._book.arrive(UrlState.QUEUED)
        else:
            self._refused[claim.address.key] = _Refused(row, reason)
            self._book.arrive(UrlState.SKIPPED)
        return Claimed.NEW

    def _turns_away(self, claim: Claim) -> bool:
        """Whether it is to a host that nobody knows and for which its domain has no room: counted, and not kept."""
        name = claim.address.host
        if claim.refusal is not None or claim.seed_host or host_id(claim.address.key) in self._hosts:
            return False
        if self._crowds.has_room(name) or self._crowds.keeps(name):
            return False
        self._book.add(REFUSED_BEYOND_CAP, 1)
        return True

    def _objection(self, claim: Claim, host: _Host) -> Reason | None:
        """Why the store refuses a URL that nobody else does."""
        if host.blocked:
            return Reason.BLOCKED_HOST
        if host.crowded:
            return Reason.ADDRESS_HOSTS
        if not (host.met or host.seed or self._crowds.has_room(claim.address.host)):
            return Reason.DOMAIN_HOSTS
        return Reason.HOST_BUDGET if self._full(host) else None

    def _full(self, host: _Host) -> bool:
        limit = self._settings.queue_per_host
        return limit is not None and not host.seed and host.waiting >= limit

    def _keeps(self, hid: int, reason: Reason) -> bool:
        """Whether one more refusal is kept; one that is not, is counted."""
        refusals = self._refusals_of(hid, reason)
        if refusals.kept < self._settings.refusals_kept:
            refusals.kept += 1
            return True
        refusals.beyond += 1
        self._book.add(REFUSED_BEYOND_CAP, 1)
        return False

    def _joins(self, claim: Claim, host: _Host, row: Waiting) -> None:
        host.waiting += 1
        if host.met and host.front_class is not None and host.front_class <= row.front_class:
            self._book.grow(row.hid)
            return
        host.front_class = row.front_class
        delta = self._book.host(row.hid)
        delta.join(row.front_class)
        delta.discovered += 1
        if not host.met:
            host.met = True
            delta.met = 1
            self._book.add(HOSTS, 1)
            self._crowds.join(claim.address.host)

    # -- repeats --------------------------------------------------------------------------------------------

    def _better_fresh(self, key: bytes, claim: Claim) -> None:
        better = None if claim.refusal is not None else bettered(self._fresh[key], claim)
        if better is not None:
            self._fresh[key] = better
            delta = self._book.host(better.hid)
            delta.best_class = min(delta.best_class, better.front_class)

    def _admit_refused(self, key: bytes, claim: Claim) -> None:
        row, reason = self._refused[key]
        host = self._host(claim)
        if not self._readmits(host, claim, reason):
            return
        del self._refused[key]
        self._refusals_of(row.hid, reason).kept -= 1
        self._fresh[key] = waiting(claim, row.hid, row.id, self._now)
        self._joins(claim, host, self._fresh[key])
        self._book.move(UrlState.SKIPPED, Event.READMIT)

    def _repeat(self, claim: Claim, number: int) -> None:
        depth = self._waits.get(CLASSES * number + claim.front_class)
        if depth is not None and depth <= claim.depth:
            self._ways.setdefault(claim.address.key, CLASSES * depth + claim.front_class)
            return
        hid = host_id(claim.address.key)
        place = self._urls.waiting(hid, number)
        if place is None:
            self._readmit(claim, number)
            return
        better = bettered(place.row, claim)
        if better is None or self._is_leased(place, claim):
            return
        self._urls.replace(place, better)
        self._ways[claim.address.key] = way_of(better)
        if place.due_at is None:
            delta = self._book.host(hid)
            delta.best_class = min(delta.best_class, better.front_class)

    def _readmit(self, claim: Claim, number: int) -> None:
        ended = self._urls.ended(number)
        if ended is not None and claim.modified is not None and self._settings.revisits:
            bring_forward(self._connection, number, claim.modified, self._now)
        if ended is None or ended.state is not UrlState.SKIPPED or ended.reason is None:
            return
        host = self._host(claim)
        reason = Reason(ended.reason)
        if not self._readmits(host, claim, reason):
            return
        old = self._urls.reopen(number, UrlState.SKIPPED)
        assert old is not None, f"URL {number} has an outcome that is not there"
        row = waiting(claim, old.hid, number, old.found_at)
        row = row._replace(generation=old.generation, settled=old.settled)
        if claim.lifts is reason:
            row = old
        self._urls.enqueue(row)
        self._ways[claim.address.key] = way_of(row)
        self._joins(claim, host, row)
        self._refusals_of(old.hid, reason).kept -= 1
        self._book.move(UrlState.SKIPPED, Event.READMIT)

    def _readmits(self, host: _Host, claim: Claim, reason: Reason) -> bool:
        undone = reason in PATH_DEPENDENT or reason is claim.lifts
        return claim.refusal is None and undone and self._objection(claim, host) is None

    def _is_leased(self, place: Place, claim: Claim) -> bool:
        row = place.row
        token = None if place.due_at is not None else self._host(claim).token
        if token is None or token == row.settled:
            return False
        if token not in self._held:
            self._held[token] = self._urls.held(token)
        return row.id in self._held[token]

    # -- what the batch has read ----------------------------------------------------------------------------

    def _host(self, claim: Claim) -> _Host:
        """The claim's host, made when it is not there yet."""
        hid = host_id(claim.address.key)
        if hid not in self._hosts:
            self._read_hosts({hid})
        if hid not in self._hosts:
            self._connection.execute(_SQL["add_host"], (hid, claim.address.host))
            self._hosts[hid] = _Host(seed=False, met=False, waiting=0, token=None, blocked=False)
        return self._hosts[hid]

    def _refusals_of(self, hid: int, reason: Reason) -> _Refusals:
        key = (hid, reason.value)
        if key not in self._refusals:
            row = self._connection.execute(_SQL["refusals"], key).fetchone()
            self._refusals[key] = _Refusals(*(row or (0, 0)))
        return self._refusals[key]

    # -- writing --------------------------------------------------------------------------------------------

    def _write(self) -> None:
        if self._fresh or self._refused:
            self._urls.give(URLS, self._last)
            fresh = sorted((key, row.id, way_of(row)) for key, row in self._fresh.items())
            self._connection.executemany(_SQL["remember"], fresh)
            refused = sorted((key, row.id) for key, (row, _) in self._refused.items())
            self._connection.executemany(_SQL["remember_refused"], refused)
            self._urls.enqueue_new(sorted(self._fresh.values()))
            self._urls.end_all([(row, self._refusal(reason)) for row, reason in self._refused.values()])
        self._connection.executemany(_SQL["better_way"], [(way, key) for key, way in sorted(self._ways.items())])
        self._connection.executemany(
            _SQL["write_refusals"], [(*key, n.kept, n.beyond) for key, n in self._refusals.items()]
        )
        self._crowds.write()

    def _refusal(self, reason: Reason) -> Ending:
        return Ending(state=int(UrlState.SKIPPED), at=self._now, reason=reason.value)
