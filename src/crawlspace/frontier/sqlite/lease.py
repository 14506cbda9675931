"""Leases: which hosts leave the front queues, with which of their URLs, to whom.

A host is due when it is ready, free, and its time has come. Two passes choose: the first gives each front class its
quota, so that no class starves; the second fills up in class order. Within a host the order is class, then arrival.
Hosts that get no turn of their pace group make room for others, which a further round chooses.
"""

from __future__ import annotations

import sqlite3
from itertools import compress, takewhile
from typing import NamedTuple

from msgspec.structs import replace

from crawlspace.frontier.budget import within_budget, within_part
from crawlspace.frontier.crowds import Place
from crawlspace.frontier.quotas import DUE_AT_ONCE, ROUNDS, Quotas
from crawlspace.frontier.rows import Waiting, pace, queued_url
from crawlspace.frontier.settings import CLASSES, FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite import crowds, groups, revisit
from crawlspace.frontier.sqlite.book import Book
from crawlspace.frontier.sqlite.groups import Groups
from crawlspace.frontier.sqlite.urls import TOKENS, Urls, held_column
from crawlspace.policy.groups import PaceGroup
from crawlspace.policy.sharing import left_alone
from crawlspace.states import Event, UrlState
from crawlspace.types import Lease, LeasedHost, Pace, QueuedUrl, Wish

_SQL = statements(__package__, "lease.sql")


class _Due(NamedTuple):
    """A host that may be visited now."""

    hid: int
    name: str
    seed: int
    fetched: int
    next_at: int
    delay_ms: int | None
    crawl_delay_ms: int | None
    failures: int
    slowed: int
    latency_ms: int
    address: str | None


class _Admitted(NamedTuple):
    """A host that gets a lease, of so many URLs at most."""

    host: _Due
    group: PaceGroup | None
    most: int


class _ClassQueue:
    """The due hosts of one class, read when first asked for."""

    def __init__(self, connection: sqlite3.Connection, front_class: int, now: int, limit: int) -> None:
        self._connection = connection
        self._bounds = (front_class, now, limit)
        self._due: list[_Due] | None = None
        self._taken = 0

    def take(self, hosts: int) -> int:
        """Take the next ones; how many there were."""
        if hosts <= 0:
            return 0
        if self._due is None:
            self._due = list(map(_Due._make, self._connection.execute(_SQL["due"], self._bounds)))
        got = min(hosts, len(self._due) - self._taken)
        self._taken += got
        return got

    @property
    def taken(self) -> list[_Due]:
        return (self._due or [])[: self._taken]


class Leasing:
    """One call of lease, inside a transaction of the caller, who also writes the book."""

    def __init__(self, connection: sqlite3.Connection, settings: FrontierSettings, book: Book, now: int) -> None:
        self._connection = connection
        self._settings = settings
        self._book = book
        self._now = now
        self._urls = Urls(connection)
        self._grouping = settings.grouping()
        self._groups = Groups(connection, self._grouping, now)

    def wake(self, worker: int) -> None:
        """Bring back the delayed URLs whose time has come and the hosts that need not rest longer, some at a time."""
        due = (self._now, DUE_AT_ONCE)
        arrived = self._connection.execute(_SQL["came_due"], due).fetchall()
        if arrived:
            self._connection.execute(_SQL["move_due"], due)
            self._connection.execute(_SQL["forget_due"], due)
        for hid, n, best_class in arrived:
            delta = self._book.host(hid)
            delta.queued += n
            delta.delayed -= n
            delta.best_class = min(delta.best_class, best_class)
            self._book.write_host(hid)
        for hid in raised(self._connection, self._settings, DUE_AT_ONCE):
            self._connection.execute(_SQL["unpark"], (hid,))
        self._groups.call(worker)
        revisit.wake(self._connection, self._settings, self._book, self._now)

    def free_crowded(self, after: Place) -> Place | None:
        """Hosts rest no longer where an address may have more of them now; where to go on, None at the end."""
        found, reached = crowds.freed(self._connection, self._settings, after)
        for hid in found:
            self._connection.execute(_SQL["unpark"], (hid,))
        return reached

    def run(self, wish: Wish, quotas: Quotas) -> list[Lease]:
        """Lease due hosts to the worker, within the page budget of the crawl."""
        if wish.pages is not None:
            wish = within_budget(wish, *self._connection.execute(_SQL["spent"]).fetchone())
        wish = within_part(wish, self._grouping)
        leases: list[Lease] = []
        for _ in range(ROUNDS if wish.hosts else 0):
            wanted = wish.hosts - len(leases)
            chosen = self._choose(wanted, quotas)
            mine = self._without_those_of_others(chosen, wish, leases)
            admitted = self._admit(mine, wish)
            leases += self._lease(admitted, wish)
            if not len(admitted) < len(mine) == len(chosen) == wanted:
                break
        self._groups.write()
        return leases

    def _choose(self, hosts: int, quotas: Quotas) -> list[_Due]:
        queues = [_ClassQueue(self._connection, front_class, self._now, hosts) for front_class in range(CLASSES)]
        left = hosts
        for front_class, share in quotas.turn(hosts):
            wanted = min(share, left)
            got = queues[front_class].take(wanted)
            left -= got
            quotas.took(front_class, got)
            if got < wanted:
                quotas.is_empty(front_class)
        for queue in queues:
            left -= queue.take(left)
        return [host for queue in queues for host in queue.taken]

    def _without_those_of_others(self, chosen: list[_Due], wish: Wish, leases: list[Lease]) -> list[_Due]:
        """Without what is beyond the worker's part, which is for others."""
        if wish.lone is None:
            return chosen
        grouped = [self._grouping.group(host.name, host.address) is not None for host in chosen]
        has = sum(lease.host.group is None for lease in leases)
        return list(compress(chosen, left_alone(grouped, wish.lone - has)))

    def _admit(self, chosen: list[_Due], wish: Wish) -> list[_Admitted]:
        """Those with a page left and a turn of their group; in a group the longest waiting, whatever its class."""
        admitted: dict[int, _Admitted] = {}
        for host in sorted(chosen, key=lambda due: due.next_at):
            group = self._grouping.group(host.name, host.address)
            most = self._most(host, group, wish)
            if most <= 0:
                self._connection.execute(_SQL["park"], (host.hid,))
            elif group is None or self._groups.admit(host.hid, group, wish.worker):
                admitted[host.hid] = _Admitted(host, group, most)
        return [admitted[host.hid] for host in chosen if host.hid in admitted]

    def _most(self, host: _Due, group: PaceGroup | None, wish: Wish) -> int:
        """How many URLs fit into the visit and the budget."""
        budget = self._settings.pages(bool(host.seed))
        left = wish.urls_per_host if budget is None else min(wish.urls_per_host, budget - host.fetched)
        clock = self._pace(host)
        delay = max(clock.delay_ms, clock.crawl_delay_ms or 0)
        if group is not None:
            delay = max(delay, group.delay_ms * group.concurrency)
        return left if delay == 0 else min(left, max(1, wish.visit_ms // delay))

    def _lease(self, admitted: list[_Admitted], wish: Wish) -> list[Lease]:
        if not admitted:
            return []
        token = self._urls.last(TOKENS)
        leases = [self._grant(one, token + n, wish) for n, one in enumerate(admitted, 1)]
        self._urls.give(TOKENS, token + len(leases))
        self._connection.executemany(_SQL["hold"], map(_held, leases))
        self._connection.executemany(_SQL["occupy"], [_occupied(lease, wish.worker) for lease in leases])
        return leases

    def _urls_for(self, hid: int, most: int) -> list[Waiting]:
        """The best that waits; a suspect goes alone."""
        rows = list(map(Waiting._make, self._connection.execute(_SQL["best"], (hid, most))))
        if rows[0].suspect:
            return rows[:1]
        return list(takewhile(lambda row: not row.suspect, rows))

    def _grant(self, admitted: _Admitted, token: int, wish: Wish) -> Lease:
        host, until = admitted.host, self._now + wish.ttl_ms
        group = None if admitted.group is None else admitted.group.name
        urls = self._urls_for(host.hid, admitted.most)
        self._book.move(UrlState.QUEUED, Event.LEASE, len(urls))
        leased = LeasedHost(host.hid, host.name, self._pace(host), host.fetched, group, host.address)
        return Lease(token, leased, tuple(map(self._given, urls)), until)

    def _given(self, row: Waiting) -> QueuedUrl:
        url = queued_url(row)
        return replace(url, before=revisit.known(self._connection, row.id)) if row.generation else url

    def _pace(self, host: _Due) -> Pace:
        stored = (host.next_at, host.delay_ms, host.crawl_delay_ms, host.failures, host.slowed, host.latency_ms)
        return pace(stored, self._settings.delay_ms)


def _held(lease: Lease) -> tuple[int, int, str]:
    return lease.token, lease.host.hid, held_column(lease.urls)


def _occupied(lease: Lease, worker: int) -> tuple[int, int, int, int, str | None, int]:
    return lease.token, lease.until, worker, len(lease.urls), lease.host.group, lease.host.hid


def raised(connection: sqlite3.Connection, settings: FrontierSettings, limit: int) -> list[int]:
    """Some of the parked hosts that are within their budget, since it was raised."""
    found: list[int] = []
    for seed in (False, True):
        found += (hid for (hid,) in connection.execute(_SQL["within_budget"], (seed, settings.pages(seed), limit)))
    return found


def renew(connection: sqlite3.Connection, token: int, until: int) -> bool:
    """Extend a lease; False when it is lost."""
    return connection.execute(_SQL["renew"], (until, token, token)).rowcount == 1


def next_due(connection: sqlite3.Connection, settings: FrontierSettings, worker: int, now: int) -> int | None:
    """The earliest time at which there is something to lease or to reclaim; `now` when rows wait to be moved."""
    if any(connection.execute(_SQL[name]).fetchone() for name in ("next_condemned", "next_blocked")):
        return now
    if raised(connection, settings, 1):
        return now
    times = [connection.execute(_SQL["next_free"], (front_class,)).fetchone()[0] for front_class in range(CLASSES)]
    times += [connection.execute(_SQL[name]).fetchone()[0] for name in ("next_delayed", "next_expiry")]
    times.append(groups.next_due(connection, worker))
    if settings.revisits:
        visit = revisit.next_visit(connection)
        # One that was brought forward since the last lease counts for a crawl that does not wait, too.
        times.append(visit if settings.waits_for_visits or (visit is not None and visit <= now) else None)
    return min((time for time in times if time is not None), default=None)
