"""What a batch of claims does to hosts that are held: decided claim by claim, written together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from crawlspace.frontier.counters import HOSTS, REFUSED_BEYOND_CAP
from crawlspace.frontier.postgres.columns import keys, numbers, texts
from crawlspace.frontier.postgres.crowds import Domains
from crawlspace.frontier.postgres.revisit import bring_forward
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.postgres.urls import NOTHING, Ended, Named, Place, Urls, column
from crawlspace.frontier.rows import Waiting, bettered, waiting
from crawlspace.states import Event, UrlState
from crawlspace.types import PATH_DEPENDENT, Claim, Claimed, Reason

_SQL = queries("claim.sql")

_NO_NUMBER = 0
"""That of a URL which has none yet."""
_ARRIVING = ("hid", "url", "depth", "hops", "parent", "relation", "label", "meta", "request")


@dataclass(slots=True)
class Host:
    """What a batch knows of one host."""

    seed: bool
    met: bool
    waiting: int
    """URLs queued or delayed, those of this batch included."""
    blocked: bool
    crowded: bool
    name: str
    is_stranger: bool
    """Nobody knew it before this batch, and its domain has little room."""


@dataclass(slots=True)
class Refusals:
    """How many of one host and reason there are."""

    kept: int = 0
    beyond: int = 0


class _Refused(NamedTuple):
    row: Waiting
    reason: Reason


class Found(NamedTuple):
    """What a batch finds when its hosts are held."""

    hosts: dict[int, Host]
    places: dict[int, Place]
    """Repeated URLs that wait, by number."""
    ended: dict[int, Ended]
    """Those that do not."""


class Limits(NamedTuple):
    """What bounds the claims of a batch."""

    refusals: dict[tuple[int, str], Refusals]
    domains: Domains


class Judging:
    """What a batch does to hosts that are held: decided claim by claim, written together."""

    def __init__(self, transaction: Transaction, found: Found, limits: Limits) -> None:
        self._transaction = transaction
        self._settings = transaction.settings
        self._book = transaction.book
        self._hosts, self._places, self._ended = found
        self._refusals, self._domains = limits
        self._touched: set[tuple[int, str]] = set()
        self._arrived: list[bytes] = []
        self._fresh: dict[bytes, Waiting] = {}
        self._refused: dict[bytes, _Refused] = {}
        self._bettered: dict[int, Waiting] = {}
        self._readmitted: dict[int, Waiting] = {}
        self._changed: dict[Named, int] = {}
        """When pages that have ended were changed, as somebody says."""

    def turned_away(self) -> dict[bytes, Reason]:
        """Why new keys are refused."""
        return {key: refused.reason for key, refused in self._refused.items()}

    def see_seed(self, hid: int) -> None:
        """The host is a seed's own."""
        host = self._hosts.get(hid)
        if host is not None and not host.seed:
            host.seed = True
            self._book.host(hid).seed = 1

    # -- new keys -------------------------------------------------------------------------------------------

    def first(self, claim: Claim, hid: int) -> Claimed:
        """A key that is not in the store."""
        key = claim.address.key
        if key in self._fresh:
            self._better_fresh(key, claim)
            return Claimed.KNOWN
        if key in self._refused:
            self._admit_refused(key, claim, hid)
            return Claimed.KNOWN
        return self._new(claim, hid)

    def _new(self, claim: Claim, hid: int) -> Claimed:
        host = self._hosts[hid]
        reason = claim.refusal or self._objection(host)
        if reason is Reason.DOMAIN_HOSTS and host.is_stranger:
            host.is_stranger = False
            self._domains.refuse(host.name)
        if reason is not None and not self._keeps(hid, reason):
            return Claimed.OVER_BUDGET
        key = claim.address.key
        row = waiting(claim, hid, _NO_NUMBER, self._transaction.now)
        self._arrived.append(key)
        if reason is None:
            self._fresh[key] = row
            self._joins(host, row)
            self._book.arrive(UrlState.QUEUED)
        else:
            self._refused[key] = _Refused(row, reason)
            self._book.arrive(UrlState.SKIPPED)
        return Claimed.NEW

    def _objection(self, host: Host) -> Reason | None:
        """Why the store refuses a URL that nobody else does."""
        if host.blocked:
            return Reason.BLOCKED_HOST
        if host.crowded:
            return Reason.ADDRESS_HOSTS
        if not (host.met or host.seed or self._domains.has_room(host.name)):
            return Reason.DOMAIN_HOSTS
        return Reason.HOST_BUDGET if self._full(host) else None

    def _full(self, host: Host) -> bool:
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

    def _joins(self, host: Host, row: Waiting) -> None:
        host.waiting += 1
        delta = self._book.host(row.hid)
        delta.join(row.front_class)
        delta.discovered += 1
        if not host.met:
            host.met = True
            delta.met = 1
            self._book.add(HOSTS, 1)
            self._domains.join(host.name)

    def _better_fresh(self, key: bytes, claim: Claim) -> None:
        better = None if claim.refusal is not None else bettered(self._fresh[key], claim)
        if better is not None:
            self._fresh[key] = better
            self._leads(better)

    def _admit_refused(self, key: bytes, claim: Claim, hid: int) -> None:
        reason = self._refused[key].reason
        host = self._hosts[hid]
        if not self._readmits(host, claim, reason):
            return
        del self._refused[key]
        self._refusals_of(hid, reason).kept -= 1
        self._fresh[key] = waiting(claim, hid, _NO_NUMBER, self._transaction.now)
        self._joins(host, self._fresh[key])
        self._book.move(UrlState.SKIPPED, Event.READMIT)

    # -- repeats --------------------------------------------------------------------------------------------

    def repeat(self, claim: Claim, hid: int, number: int) -> None:
        """A key that is in the store, claimed without a refusal."""
        if number in self._readmitted:
            better = bettered(self._readmitted[number], claim)
            if better is not None:
                self._readmitted[number] = better
                self._leads(better)
            return
        place = self._places.get(number)
        if place is None:
            self._readmit(claim, hid, number)
            return
        better = bettered(self._bettered.get(number, place.row), claim)
        if better is None or place.leased:
            return
        self._bettered[number] = better
        if place.due_at is None:
            self._leads(better)

    def _leads(self, row: Waiting) -> None:
        """A row of the queue may be its host's best now."""
        delta = self._book.host(row.hid)
        delta.best_class = min(delta.best_class, row.front_class)

    def _readmit(self, claim: Claim, hid: int, number: int) -> None:
        ended = self._ended.get(number)
        if ended is not None and claim.modified is not None and self._settings.revisits:
            self._changed[Named(hid, number)] = claim.modified
        if ended is None or ended.state is not UrlState.SKIPPED or ended.reason is None:
            return
        host = self._hosts[hid]
        reason = Reason(ended.reason)
        if not self._readmits(host, claim, reason):
            return
        row = ended.row
        if claim.lifts is not reason:
            again = waiting(claim, hid, number, row.found_at)
            row = again._replace(generation=row.generation, settled=row.settled)
        self._readmitted[number] = row
        self._joins(host, row)
        self._refusals_of(hid, reason).kept -= 1
        self._book.move(UrlState.SKIPPED, Event.READMIT)

    def _readmits(self, host: Host, claim: Claim, reason: Reason) -> bool:
        undone = reason in PATH_DEPENDENT or reason is claim.lifts
        return claim.refusal is None and undone and self._objection(host) is None

    def _refusals_of(self, hid: int, reason: Reason) -> Refusals:
        """Those of a host and reason, about to be changed."""
        key = (hid, reason.value)
        self._touched.add(key)
        return self._refusals.setdefault(key, Refusals())

    # -- writing --------------------------------------------------------------------------------------------

    async def write(self) -> None:
        """Write all that was decided."""
        urls = Urls(self._transaction)
        readmitted = self._readmitted.values()
        await urls.reopen([Named(row.hid, row.id) for row in readmitted], UrlState.SKIPPED)
        if self._arrived:
            await self._arrive()
        await bring_forward(self._transaction, self._changed)
        await urls.enqueue(list(readmitted))
        await urls.better([(self._places[number], row) for number, row in self._bettered.items()])
        await self._domains.write()
        await self._write_refusals()

    async def _arrive(self) -> None:
        """Write the new URLs, which get their numbers there, in order."""
        rows = [self._fresh.get(key) or self._refused[key].row for key in self._arrived]
        reasons = [None if key in self._fresh else self._refused[key].reason for key in self._arrived]
        columns = dict(zip(Waiting._fields, zip(*rows, strict=True), strict=True))
        await self._transaction.run(
            _SQL["arrive"],
            now=self._transaction.now,
            shard=numbers(self._transaction.shards.of_keys(self._arrived)),
            fp=keys(self._arrived),
            reason=texts(reasons) if self._refused else NOTHING,
            **{"class": numbers(columns["front_class"])},
            **{name: column(name, columns[name]) for name in _ARRIVING},
        )

    async def _write_refusals(self) -> None:
        if not self._touched:
            return
        hids, reasons = zip(*sorted(self._touched), strict=True)
        counted = [self._refusals[key] for key in sorted(self._touched)]
        await self._transaction.run(
            _SQL["write_refusals"],
            shard=numbers(self._transaction.shards.each(hids)),
            hid=numbers(hids),
            reason=texts(reasons),
            kept=numbers(refusals.kept for refusals in counted),
            beyond=numbers(refusals.beyond for refusals in counted),
        )
