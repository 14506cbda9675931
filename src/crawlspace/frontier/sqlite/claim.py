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
from crawlspace.frontier.rows import (
    Ending,
    LinkRow,
    Waiting,
    bettered,
    is_no_better,
    is_plain,
    link,
    unlinked,
    waiting,
    way_of,
)
from crawlspace.frontier.settings import CLASSES, FrontierSettings
from crawlspace.frontier.sql import blob, chunks, listed, parts, runs, statements
from crawlspace.frontier.sqlite.book import Book
from crawlspace.frontier.sqlite.crowds import Crowds
from crawlspace.frontier.sqlite.revisit import bring_forward
from crawlspace.frontier.sqlite.urls import URLS, Place, Urls
from crawlspace.states import Event, UrlState
from crawlspace.types import HOST_BYTES, PATH_DEPENDENT, Claim, Claimed, Reason, host_id

_SQL = statements(__package__, "claim.sql")


_Found = tuple[int | None, int | None]
"""The number of a key, None for a new one, and the best way in which it was claimed (`seen.way`)."""
_NO_BETTER: _Found = (0, 0)
"""Of keys that need no look: their numbers do not matter, and no claim is better than this way."""
_ALL = (-1, -1)
"""Better than all classes and depths."""


@dataclass(slots=True)
class _Host:
    """What a batch knows of one host."""

    seed: bool = False
    met: bool = False
    waiting: int = 0
    """URLs queued or delayed, those of this batch included."""
    token: int | None = None
    blocked: bool = False
    crowded: bool = False
    """Too many hosts have its address."""
    front_class: int | None = None
    """That of the best URL in its queue; None while there is none."""
    grown: int = 0
    """URLs of this batch that joined others of as good a class."""


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
        self._asked_for: set[int] = set()
        """Hosts that were looked for: those of them that are not in `_hosts` are not there."""
        self._added: list[tuple[int, str]] = []
        """Hosts that are named for the first time."""
        self._refusals: dict[tuple[int, str], _Refusals] = {}
        self._held: dict[int, dict[int, int]] = {}
        self._waits: dict[int, int] = {}
        """Depth of the URLs that wait in their claim's class, by ten times the number and the class, as it was before
        the batch: rows that change in it only get better."""
        self._closer: set[bytes] = set()
        """Known keys of which some claim may change something."""
        self._ways: dict[bytes, int] = {}
        """The ways that known keys have from now on."""
        self._arrived = 0
        """New URLs that are queued."""
        self._links: dict[bytes, LinkRow] = {}
        """New URLs about which there is nothing more to say: nearly all."""
        self._fresh: dict[bytes, Waiting] = {}
        """The other new URLs."""
        self._refused: dict[bytes, _Refused] = {}
        self._crowds = Crowds(connection, settings)

    def run(self, claims: Sequence[Claim]) -> list[Claimed]:
        """Judge and write the batch; one answer each, in order."""
        if not claims:
            return []
        found = self._found({claim.address.key for claim in claims}, self._least(claims))
        answers = [Claimed.KNOWN] * len(claims)
        changing = self._read_ahead(claims, found)
        self._last = self._urls.last(URLS)
        for place in changing:
            claim = claims[place]
            answers[place] = self._one(claim, found.get(claim.address.key, _NO_BETTER)[0])
        self._write()
        return answers

    def turned_away(self) -> dict[bytes, Reason]:
        """Why new keys of the batch are refused, by the claim's word or by ours."""
        return {key: refused.reason for key, refused in self._refused.items()}

    def _least(self, claims: Sequence[Claim]) -> tuple[int, int]:
        """The best class and depth of the batch: keys that were claimed in a way as good are done with."""
        revisits = self._settings.revisits
        if any(claim.lifts is not None or (revisits and claim.modified is not None) for claim in claims):
            return _ALL
        return min(claim.front_class for claim in claims), min(claim.depth for claim in claims)

    def _found(self, keys: set[bytes], least: tuple[int, int]) -> dict[bytes, _Found]:
        """The keys that must be looked at. All others are known, and were claimed in a way as good."""
        found: dict[bytes, _Found] = {}
        names: dict[str, object] = {"class": least[0], "depth": least[1]}
        for length, run in runs(sorted(keys)):
            names |= {"keys": b"".join(run), "n": len(run)}
            rows = self._connection.execute(listed(_SQL["known"], length), names)
            found.update({run[place]: (number, way) for place, number, way in rows})
        return found

    def _read_ahead(self, claims: Sequence[Claim], known: Mapping[bytes, _Found]) -> list[int]:
        """Read together what the claims will ask one by one: their hosts, and how the known ones wait.

        Returns the places of the claims that may change something: most are repeats, and done with here.
        """
        hosts: set[bytes] = set()
        seeds: set[bytes] = set()
        asked: list[int] = []
        changing: list[int] = []
        revisits = self._settings.revisits
        for place, claim in enumerate(claims):
            key = claim.address.key
            number, way = known.get(key, _NO_BETTER)
            if number is None:
                hosts.add(key[:HOST_BYTES])
                changing.append(place)
            elif claim.refusal is None and not (
                is_no_better(claim, way) and (claim.modified is None or not revisits)
            ):
                self._closer.add(key)
                asked += (host_id(key), claim.front_class, number)
                changing.append(place)
            elif claim.seed_host and key[:HOST_BYTES] not in seeds:
                hosts.add(key[:HOST_BYTES])
                changing.append(place)
            if claim.seed_host:
                seeds.add(key[:HOST_BYTES])
        self._read_hosts(set(map(host_id, hosts)))
        for chunk in chunks(asked, 3):
            statement = listed(_SQL["waiting_so"], len(chunk) // 3)
            self._waits.update(self._connection.execute(statement, chunk))
        return changing

    def _read_hosts(self, hosts: set[int]) -> None:
        self._asked_for |= hosts
        for chunk in chunks(sorted(hosts)):
            for row in self._connection.execute(listed(_SQL["hosts"], len(chunk)), chunk):
                hid, seed, met, waits, token, blocked, crowded, front_class = row
                self._hosts[hid] = _Host(seed, met, waits, token, blocked, crowded, front_class)

    def _one(self, claim: Claim, number: int | None) -> Claimed:
        key = claim.address.key
        if claim.seed_host and not (host := self._host(claim)).seed:
            host.seed = True
            self._book.host(host_id(key)).seed = 1
        if number is not None:
            if key in self._closer and claim.refusal is None:
                self._repeat(claim, number)
            return Claimed.KNOWN
        if key in self._links or key in self._fresh:
            self._better_fresh(key, claim)
            return Claimed.KNOWN
        if key in self._refused:
            self._admit_refused(key, claim)
            return Claimed.KNOWN
        return self._new(claim)

    # -- new keys -------------------------------------------------------------------------------------------

    def _new(self, claim: Claim) -> Claimed:
        key = claim.address.key
        hid = host_id(key)
        host = self._hosts.get(hid)
        if host is None:
            if self._turns_away(claim):
                return Claimed.OVER_BUDGET
            host = self._host(claim)
        reason = claim.refusal or self._objection(claim, host)
        if reason is not None and not self._keeps(hid, reason):
            return Claimed.OVER_BUDGET
        self._last += 1
        if reason is None:
            self._arrived += 1
            self._joins(claim, host, hid, claim.front_class)
            if is_plain(claim):
                self._links[key] = link(claim, hid, self._last, self._now)
            else:
                self._fresh[key] = waiting(claim, hid, self._last, self._now)
        else:
            self._refused[key] = _Refused(waiting(claim, hid, self._last, self._now), reason)
            self._book.arrive(UrlState.SKIPPED)
        return Claimed.NEW

    def _turns_away(self, claim: Claim) -> bool:
        """Whether it is to a host for which its domain has no room, and that nobody knows: counted, and not kept."""
        name = claim.address.host
        if claim.refusal is not None or claim.seed_host:
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

    def _joins(self, claim: Claim, host: _Host, hid: int, front_class: int) -> None:
        """Count the claim's URL, which is queued in this class."""
        host.waiting += 1
        if host.met and host.front_class is not None and host.front_class <= front_class:
            host.grown += 1
            return
        host.front_class = front_class
        delta = self._book.host(hid)
        delta.join(front_class)
        delta.discovered += 1
        if not host.met:
            host.met = True
            delta.met = 1
            self._book.add(HOSTS, 1)
            self._crowds.join(claim.address.host)

    # -- repeats --------------------------------------------------------------------------------------------

    def _better_fresh(self, key: bytes, claim: Claim) -> None:
        if claim.refusal is not None:
            return
        row = self._links.get(key)
        better = bettered(self._fresh[key] if row is None else unlinked(row, claim.address.host), claim)
        if better is not None:
            self._links.pop(key, None)
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
        self._joins(claim, host, row.hid, claim.front_class)
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
        self._joins(claim, host, row.hid, row.front_class)
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
        host = self._hosts.get(hid)
        if host is None and hid not in self._asked_for:
            self._read_hosts({hid})
            host = self._hosts.get(hid)
        if host is None:
            self._added.append((hid, claim.address.host))
            host = self._hosts[hid] = _Host()
        return host

    def _refusals_of(self, hid: int, reason: Reason) -> _Refusals:
        key = (hid, reason.value)
        if key not in self._refusals:
            row = self._connection.execute(_SQL["refusals"], key).fetchone()
            self._refusals[key] = _Refusals(*(row or (0, 0)))
        return self._refusals[key]

    # -- writing --------------------------------------------------------------------------------------------

    def _write(self) -> None:
        self._connection.executemany(_SQL["add_host"], sorted(self._added))
        if self._links or self._fresh or self._refused:
            self._urls.give(URLS, self._last)
            self._remember()
            self._urls.enqueue_links(sorted(self._links.values()))
            self._urls.enqueue_all(sorted(self._fresh.values()))
            self._urls.end_all([(row, self._refusal(reason)) for row, reason in self._refused.values()])
        ways = [(way, blob(key)) for key, way in sorted(self._ways.items())]
        self._connection.executemany(_SQL["better_way"], ways)
        self._connection.executemany(
            _SQL["write_refusals"], [(*key, n.kept, n.beyond) for key, n in self._refusals.items()]
        )
        self._crowds.write()
        self._count()

    def _remember(self) -> None:
        """Write the new keys, in the order of their table."""
        fresh = {key: (blob(key), row[2], CLASSES * row[5] + row[1]) for key, row in self._links.items()}
        fresh |= {key: (blob(key), row.id, way_of(row)) for key, row in self._fresh.items()}
        for length, values in parts([fresh[key] for key in sorted(fresh)]):
            self._connection.execute(listed(_SQL["remember"], length), values)
        refused = [(blob(key), row.id) for key, (row, _) in sorted(self._refused.items())]
        self._connection.executemany(_SQL["remember_refused"], refused)

    def _count(self) -> None:
        if self._arrived:
            self._book.arrive(UrlState.QUEUED, self._arrived)
        for hid, host in self._hosts.items():
            if host.grown:
                self._book.grow(hid, host.grown)

    def _refusal(self, reason: Reason) -> Ending:
        return Ending(state=int(UrlState.SKIPPED), at=self._now, reason=reason.value)
