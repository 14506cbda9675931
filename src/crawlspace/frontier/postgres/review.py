"""Known URLs looked at again: read shelf by shelf, and moved as rulings say.

A ruling is applied to what the URL is when it comes, not to what it was when it was read: one that was leased,
settled or moved meanwhile is left alone. The hosts are held, the rulings decided one by one and written together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crawlspace.frontier.counters import HOSTS
from crawlspace.frontier.postgres.columns import numbers, texts
from crawlspace.frontier.postgres.crowds import Domains, hold_domains
from crawlspace.frontier.postgres.hosts import HeldHost, hold
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.postgres.urls import Ended, Named, Place, Urls
from crawlspace.frontier.rows import Ending, Waiting, relation
from crawlspace.policy.review import WAITING, Browsed, Cursor, Known, Ruling, Shelf
from crawlspace.states import Event, UrlState
from crawlspace.types import HOST_BYTES, Reason

_SQL = queries("review.sql")

_PLACES = {
    Shelf.QUEUED: ("hid", "class", "id"),
    Shelf.DELAYED: ("hid", "id"),
    Shelf.REFUSED: ("hid", "reason", "id"),
    Shelf.DEAD: ("id",),
}
"""What a place on each shelf is made of."""
_BEGINNING = {"hid": 0, "class": -1, "reason": "", "id": 0}


async def browse(transaction: Transaction, shelf: Shelf, after: Cursor, limit: int) -> Browsed:
    """The next URLs of a shelf; an empty cursor begins it."""
    place: dict[str, Any] = _BEGINNING | dict(zip(_PLACES[shelf], after, strict=False))
    shard = transaction.shards.of(place["hid"])
    rows = await transaction.rows(_SQL[shelf.value], limit=limit, shard=shard, **place)
    known = tuple(_known(shelf, row) for row in rows)
    return Browsed(known, _place_of(known[-1]) if known else None)


def _known(shelf: Shelf, row: tuple[Any, ...]) -> Known:
    hid, front_class, number, tail, url, depth, hops, found, reason, status, at, host = row
    key = hid.to_bytes(HOST_BYTES, "big") + tail
    return Known(
        shelf, number, key, url, host, front_class, depth, hops, relation(found), reason=reason, status=status, at=at
    )


def _place_of(last: Known) -> Cursor:
    parts: dict[str, int | str] = {
        "hid": last.hid,
        "class": last.front_class,
        "reason": last.reason or "",
        "id": last.id,
    }
    return tuple(parts[name] for name in _PLACES[last.shelf])


@dataclass(slots=True)
class _Host:
    """What a batch knows of one host."""

    seed: bool
    met: bool
    waiting: int
    closed: bool
    """A person wants nothing of it, or too many hosts have its address."""


async def rule(transaction: Transaction, rulings: Sequence[Ruling]) -> list[bool]:
    """Apply rulings in order; whether each changed something."""
    hids = {ruling.known.hid for ruling in rulings}
    held = await hold(transaction, hids)
    urls = Urls(transaction)
    named = [Named(ruling.known.hid, ruling.known.id) for ruling in rulings if ruling.known.hid in held]
    places = await urls.waiting(set(named))
    ended = await urls.ended({url for url in named if url.number not in places})
    domains = await hold_domains(transaction, [host.name for host in held.values() if not host.met])
    reviewing = _Reviewing(transaction, held, places, ended, domains)
    done = [ruling.known.hid in held and reviewing.one(ruling) for ruling in rulings]
    await reviewing.write(urls)
    ordered = sorted(held)
    shards = numbers(map(transaction.shards.of, ordered))
    await transaction.run(_SQL["reclass"], shard=shards, hid=numbers(ordered))
    return done


class _Reviewing:
    """One batch of rulings, its hosts held."""

    def __init__(
        self,
        transaction: Transaction,
        held: Mapping[int, HeldHost],
        places: dict[int, Place],
        ended: dict[int, Ended],
        domains: Domains,
    ) -> None:
        self._transaction = transaction
        self._book = transaction.book
        self._places = places
        self._domains = domains
        self._ended = ended
        self._hosts = {
            hid: _Host(host.seed, host.met, host.n_queued + host.n_delayed, host.blocked or host.crowded)
            for hid, host in held.items()
        }
        self._removed: list[Place] = []
        self._reclassed: dict[int, Waiting] = {}
        self._queued: dict[UrlState, list[Waiting]] = {UrlState.SKIPPED: [], UrlState.DEAD: []}
        self._dropped: dict[Named, str] = {}
        self._ends: list[tuple[Waiting, Ending]] = []
        self._refused: Counter[tuple[int, str]] = Counter()

    def one(self, ruling: Ruling) -> bool:
        """Whether this ruling changes something."""
        known = ruling.known
        if known.shelf in WAITING:
            place = self._places.get(known.id)
            if place is None or place.leased:
                return False
            return self._refuse(place, ruling.refusal) if ruling.refusal else self._reclass(place, ruling.front_class)
        if ruling.refusal is not None:
            return known.shelf is Shelf.DEAD and self._drop(known, ruling.refusal)
        return self._queue(known, ruling.front_class)

    # -- what waits -----------------------------------------------------------------------------------------

    def _refuse(self, place: Place, reason: Reason) -> bool:
        number, hid = place.row.id, place.row.hid
        del self._places[number]
        row = self._reclassed.pop(number, place.row)
        self._removed.append(place)
        self._hosts[hid].waiting -= 1
        delta = self._book.host(hid)
        if place.due_at is None:
            delta.queued -= 1
        else:
            delta.delayed -= 1
        state = self._book.move(UrlState.QUEUED, Event.REFUSE)
        self._ends.append((row, Ending(int(state), self._transaction.now, reason=reason.value)))
        self._refused[hid, reason.value] += 1
        return True

    def _reclass(self, place: Place, front_class: int) -> bool:
        row = self._reclassed.get(place.row.id, place.row)
        if row.front_class == front_class:
            return False
        self._reclassed[row.id] = row._replace(front_class=front_class)
        return True

    # -- what has ended -------------------------------------------------------------------------------------

    def _queue(self, known: Known, front_class: int) -> bool:
        dead = known.shelf is Shelf.DEAD
        wanted = UrlState.DEAD if dead else UrlState.SKIPPED
        host = self._hosts[known.hid]
        before = self._ended.get(known.id)
        if host.closed or before is None or before.state is not wanted:
            return False
        if not dead and (self._full(host) or not self._has_room(known, host)):
            return False
        del self._ended[known.id]
        self._queued[wanted].append(before.row._replace(front_class=front_class))
        host.waiting += 1
        delta = self._book.host(known.hid)
        delta.join(front_class)
        if dead:
            delta.dead -= 1
            self._book.move(UrlState.DEAD, Event.REVIVE)
            return True
        self._meet(known, host)
        self._book.move(UrlState.SKIPPED, Event.READMIT)
        self._refused[known.hid, before.reason or ""] -= 1
        return True

    def _has_room(self, known: Known, host: _Host) -> bool:
        return host.met or host.seed or self._domains.has_room(known.host)

    def _meet(self, known: Known, host: _Host) -> None:
        delta = self._book.host(known.hid)
        delta.discovered += 1
        if not host.met:
            host.met = True
            delta.met = 1
            self._book.add(HOSTS, 1)
            self._domains.join(known.host)

    def _full(self, host: _Host) -> bool:
        limit = self._transaction.settings.queue_per_host
        return limit is not None and not host.seed and host.waiting >= limit

    def _drop(self, known: Known, reason: Reason) -> bool:
        before = self._ended.get(known.id)
        if before is None or before.state is not UrlState.DEAD:
            return False
        self._ended[known.id] = before._replace(state=UrlState.SKIPPED, reason=reason.value)
        self._dropped[Named(known.hid, known.id)] = reason.value
        self._book.host(known.hid).dead -= 1
        self._book.move(UrlState.DEAD, Event.DROP)
        self._refused[known.hid, reason.value] += 1
        return True

    # -- writing --------------------------------------------------------------------------------------------

    async def write(self, urls: Urls) -> None:
        """Write all that was decided."""
        await urls.remove(self._removed)
        await urls.end(self._ends)
        await urls.better([(self._places[number], row) for number, row in self._reclassed.items()])
        await self._write_dropped()
        for state, rows in self._queued.items():
            await urls.reopen([Named(row.hid, row.id) for row in rows], state)
            await urls.enqueue(rows)
        await self._domains.write()
        await self._write_refused()
        await self._transaction.write_hosts()

    async def _write_dropped(self) -> None:
        if self._dropped:
            ordered = sorted(self._dropped)
            await self._transaction.run(
                _SQL["drop"],
                now=self._transaction.now,
                shard=numbers(self._transaction.shards.of(url.hid) for url in ordered),
                id=numbers(url.number for url in ordered),
                reason=texts(self._dropped[url] for url in ordered),
            )

    async def _write_refused(self) -> None:
        changed = sorted(key for key, n in self._refused.items() if n)
        if changed:
            hids, reasons = zip(*changed, strict=True)
            await self._transaction.run(
                _SQL["refused_more"],
                shard=numbers(map(self._transaction.shards.of, hids)),
                hid=numbers(hids),
                reason=texts(reasons),
                n=numbers(self._refused[key] for key in changed),
            )
