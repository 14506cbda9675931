"""Claims: which links are new, and what a repeated one can still change.

First a look, without holding anything: most links lead to known URLs, and most of those change nothing. The hosts of
the others are held, which makes two finders of one URL one after the other, and looked at again. Whoever comes first
wins, inside a batch too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from crawlspace.frontier.counters import HOSTS, REFUSED_BEYOND_CAP
from crawlspace.frontier.postgres.columns import keys, numbers, texts
from crawlspace.frontier.postgres.content import Contents
from crawlspace.frontier.postgres.crowds import Domains, Strangers, count_only, hold_domains, strangers
from crawlspace.frontier.postgres.hosts import HeldHost, hold
from crawlspace.frontier.postgres.revisit import bring_forward
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.postgres.urls import Ended, Named, Place, Urls
from crawlspace.frontier.rows import Ending, Waiting, bettered, waiting
from crawlspace.states import Event, UrlState
from crawlspace.types import PATH_DEPENDENT, Claim, Claimed, Reason, host_id

_SQL = queries("claim.sql")

_UNDONE = texts(sorted(PATH_DEPENDENT))
_NO_NUMBER = 0


@dataclass(slots=True)
class _Host:
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
class _Refusals:
    """How many of one host and reason there are."""

    kept: int = 0
    beyond: int = 0


class _Refused(NamedTuple):
    row: Waiting
    reason: Reason


class _Limits(NamedTuple):
    """What bounds the claims of a batch."""

    refusals: dict[tuple[int, str], _Refusals]
    domains: Domains


class Claiming:
    """One batch of claims. `look` says which hosts it needs; `run` judges and writes when they are held."""

    def __init__(self, transaction: Transaction, claims: Sequence[Claim]) -> None:
        self._transaction = transaction
        self._settings = transaction.settings
        self._book = transaction.book
        self._urls = Urls(transaction)
        self._claims = claims
        self._hids = [host_id(claim.address.key) for claim in claims]
        self._known: dict[bytes, int] = {}
        self._new: dict[bytes, int] = {}
        """Keys nobody had claimed when we looked: where in the batch they stand first."""
        self._open: set[int] = set()
        """Places in the batch of repeats that may change something."""
        self._refused: dict[bytes, Reason] = {}
        self.hosts: set[int] = set()
        """Hosts that must be held."""
        self.names: dict[int, str] = {}
        """Names of those that may have to be made."""
        self._strangers = Strangers(set(), set())

    def turned_away(self) -> dict[bytes, Reason]:
        """Why new keys of the batch are refused, by the claim's word or by ours; once it has run."""
        return self._refused

    async def look(self) -> None:
        """Find out what there is to do."""
        if not self._claims:
            return
        of = self._transaction.shards.of
        looked = await self._transaction.ask(
            _SQL["look"],
            undone=_UNDONE,
            shard=numbers(map(of, self._hids)),
            fp=keys(claim.address.key for claim in self._claims),
            hid=numbers(self._hids),
            depth=numbers(claim.depth for claim in self._claims),
            **{"class": numbers(claim.front_class for claim in self._claims)},
        )
        seeds = sorted({hid for claim, hid in zip(self._claims, self._hids, strict=True) if claim.seed_host})
        if seeds:
            no_seeds = await self._transaction.rows(
                _SQL["no_seeds"], shard=numbers(map(of, seeds)), hid=numbers(seeds)
            )
            self.hosts.update(hid for (hid,) in no_seeds)
        for place, number, changes_nothing in await looked.fetchall():
            claim = self._claims[place - 1]
            self._known[claim.address.key] = number
            if claim.refusal is None and not (changes_nothing and claim.lifts is None and claim.modified is None):
                self._open.add(place - 1)
                self.hosts.add(self._hids[place - 1])
        self._find_new()
        await self._turn_away()

    def _find_new(self) -> None:
        for place, (claim, hid) in enumerate(zip(self._claims, self._hids, strict=True)):
            if claim.address.key not in self._known:
                self._new.setdefault(claim.address.key, place)
                self.hosts.add(hid)
                self.names.setdefault(hid, claim.address.host)

    async def _turn_away(self) -> None:
        """Leave out the URLs of hosts that are not to be known."""
        if self._settings.hosts_per_domain is None:
            return
        wanted = dict(self.names)
        for claim, hid in zip(self._claims, self._hids, strict=True):
            if claim.seed_host or claim.refusal is not None:
                wanted.pop(hid, None)
        self._strangers = await strangers(self._transaction, wanted)
        away = self._strangers.away
        self.hosts -= away
        for hid in away:
            del self.names[hid]
        self._new = {key: place for key, place in self._new.items() if self._hids[place] not in away}

    async def run(self, held: Mapping[int, HeldHost]) -> list[Claimed]:
        """Judge and write the batch; one answer each, in order."""
        away = self._strangers.away
        if away:
            beyond = sum(hid in away for hid in self._hids)
            self._book.add(REFUSED_BEYOND_CAP, beyond)
            await count_only(self._transaction, beyond)
        if not self.hosts:
            return [Claimed.OVER_BUDGET if hid in away else Claimed.KNOWN for hid in self._hids]
        await self._look_again()
        judging = await self._judging(held)
        answers = [self._one(judging, place) for place in range(len(self._claims))]
        self._refused = judging.turned_away()
        await judging.write()
        return answers

    async def _look_again(self) -> None:
        """Others may have claimed between our look and our hold: what they claimed, we repeat."""
        if not self._new:
            return
        new = sorted(self._new)
        rows = await self._transaction.rows(
            _SQL["known"], shard=numbers(map(self._transaction.shards.of_key, new)), fp=keys(new)
        )
        taken = {new[place - 1]: number for place, number in rows}
        self._known |= taken
        if taken:
            self._open.update(
                place
                for place, claim in enumerate(self._claims)
                if claim.address.key in taken and claim.refusal is None
            )

    async def _judging(self, held: Mapping[int, HeldHost]) -> _Judging:
        repeated = {Named(self._hids[place], self._known[self._claims[place].address.key]) for place in self._open}
        places = await self._urls.waiting(repeated)
        ended = await self._urls.ended([url for url in repeated if url.number not in places])
        refusals = await self._refusals(held)
        hosts = {
            hid: _Host(
                seed=host.seed,
                met=host.met,
                waiting=host.n_queued + host.n_delayed,
                blocked=host.blocked,
                crowded=host.crowded,
                name=host.name,
                is_stranger=hid in self._strangers.welcome,
            )
            for hid, host in held.items()
            if hid in self.hosts
        }
        domains = await hold_domains(self._transaction, [host.name for host in hosts.values() if not host.met])
        return _Judging(self._transaction, hosts, places, ended, _Limits(refusals, domains))

    async def _refusals(self, held: Collection[int]) -> dict[tuple[int, str], _Refusals]:
        hids = sorted(self.hosts.intersection(held))
        of = self._transaction.shards.of
        rows = await self._transaction.rows(_SQL["refusals"], shard=numbers(map(of, hids)), hid=numbers(hids))
        return {(hid, reason): _Refusals(kept, beyond) for hid, reason, kept, beyond in rows}

    def _one(self, judging: _Judging, place: int) -> Claimed:
        claim, hid = self._claims[place], self._hids[place]
        if hid in self._strangers.away:
            return Claimed.OVER_BUDGET
        if claim.seed_host:
            judging.see_seed(hid)
        number = self._known.get(claim.address.key)
        if number is None:
            return judging.first(claim, hid)
        if place in self._open:
            judging.repeat(claim, hid, number)
        return Claimed.KNOWN


class _Judging:
    """What a batch does to hosts that are held: decided claim by claim, written together."""

    def __init__(
        self,
        transaction: Transaction,
        hosts: dict[int, _Host],
        places: dict[int, Place],
        ended: dict[int, Ended],
        limits: _Limits,
    ) -> None:
        self._transaction = transaction
        self._settings = transaction.settings
        self._book = transaction.book
        self._hosts = hosts
        self._places = places
        self._ended = ended
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

    def _objection(self, host: _Host) -> Reason | None:
        """Why the store refuses a URL that nobody else does."""
        if host.blocked:
            return Reason.BLOCKED_HOST
        if host.crowded:
            return Reason.ADDRESS_HOSTS
        if not (host.met or host.seed or self._domains.has_room(host.name)):
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

    def _joins(self, host: _Host, row: Waiting) -> None:
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

    def _readmits(self, host: _Host, claim: Claim, reason: Reason) -> bool:
        undone = reason in PATH_DEPENDENT or reason is claim.lifts
        return claim.refusal is None and undone and self._objection(host) is None

    def _refusals_of(self, hid: int, reason: Reason) -> _Refusals:
        """Those of a host and reason, about to be changed."""
        key = (hid, reason.value)
        self._touched.add(key)
        return self._refusals.setdefault(key, _Refusals())

    # -- writing --------------------------------------------------------------------------------------------

    async def write(self) -> None:
        """Write all that was decided."""
        urls = Urls(self._transaction)
        readmitted = self._readmitted.values()
        await urls.reopen([Named(row.hid, row.id) for row in readmitted], UrlState.SKIPPED)
        queued = list(readmitted)
        if self._arrived:
            given_out = dict(zip(self._arrived, await urls.numbers(len(self._arrived)), strict=True))
            await self._remember(given_out)
            queued += [row._replace(id=given_out[key]) for key, row in self._fresh.items()]
            await urls.end(
                [(row._replace(id=given_out[key]), self._ending(why)) for key, (row, why) in self._refused.items()]
            )
        await bring_forward(self._transaction, self._changed)
        await urls.enqueue(queued)
        await urls.better([(self._places[number], row) for number, row in self._bettered.items()])
        await self._domains.write()
        await self._write_refusals()

    async def _remember(self, given_out: Mapping[bytes, int]) -> None:
        ordered = sorted(given_out)
        await self._transaction.run(
            _SQL["remember"],
            shard=numbers(map(self._transaction.shards.of_key, ordered)),
            fp=keys(ordered),
            id=numbers(given_out[key] for key in ordered),
        )

    async def _write_refusals(self) -> None:
        if not self._touched:
            return
        hids, reasons = zip(*sorted(self._touched), strict=True)
        counted = [self._refusals[key] for key in sorted(self._touched)]
        await self._transaction.run(
            _SQL["write_refusals"],
            shard=numbers(map(self._transaction.shards.of, hids)),
            hid=numbers(hids),
            reason=texts(reasons),
            kept=numbers(refusals.kept for refusals in counted),
            beyond=numbers(refusals.beyond for refusals in counted),
        )

    def _ending(self, reason: Reason) -> Ending:
        return Ending(state=int(UrlState.SKIPPED), at=self._transaction.now, reason=reason.value)


async def claim(transaction: Transaction, claims: Sequence[Claim]) -> list[Claimed]:
    """Claim a batch that comes alone."""
    claims = await Contents(transaction).trodden(claims)
    claiming = Claiming(transaction, claims)
    await claiming.look()
    return await claiming.run(await hold(transaction, claiming.hosts, claiming.names))
