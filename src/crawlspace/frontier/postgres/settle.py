"""Settlements: the named ways in which a leased URL ends, each fenced by its lease's token.

The hosts are held and their tokens compared before anything is written. A settlement that comes a second time from
the lease that had made it is told so; from any other lease it is stale, and changes nothing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from crawlspace.frontier.content_rows import Found
from crawlspace.frontier.counters import BYTES, DUPLICATES, FETCHES, PAGES
from crawlspace.frontier.postgres import crowds, groups
from crawlspace.frontier.postgres.claim import Claiming
from crawlspace.frontier.postgres.columns import keys, numbers, texts
from crawlspace.frontier.postgres.condemned import condemn
from crawlspace.frontier.postgres.content import Contents
from crawlspace.frontier.postgres.hosts import HeldHost, drop_leases, given, hold
from crawlspace.frontier.postgres.revisit import visits
from crawlspace.frontier.postgres.routes import write_used
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.postgres.urls import Ended, Named, Place, Taking, Urls
from crawlspace.frontier.rounds import Visited, last_done, planned, unchanged
from crawlspace.frontier.routes import Used
from crawlspace.frontier.rows import Ending, Waiting, detail_column, ending, rerouted, with_attempt
from crawlspace.states import Event, UrlState, advance
from crawlspace.types import (
    Answer,
    Attempt,
    Claim,
    Died,
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

_SQL = queries("settle.sql")

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


async def settle(
    transaction: Transaction, settlements: Sequence[Settlement], claims: Sequence[Claim]
) -> list[Answer]:
    """Claim the links, then apply the settlements in order; one answer each.

    Raises `IllegalMove` when one was not the lease's to make.
    """
    contents = Contents(transaction)
    claims = await contents.trodden(claims)
    claiming = Claiming(transaction, claims)
    await claiming.look()
    hids = claiming.hosts | {settlement.hid for settlement in settlements}
    held = await hold(transaction, hids, claiming.names, claiming.ask)
    claimed = await claiming.run(held)
    settling = _Settling(transaction, settlements, held)
    answers = await settling.run()
    await contents.keep(settlements, settling.pages, Found.of(claims, claimed, claiming.turned_away()))
    return answers


@dataclass(slots=True)
class _Fence:
    """One host's lease as the batch finds it, and as it goes on."""

    token: int | None = None
    released: int | None = None
    leased: int = 0
    """URLs that the lease holds and has not settled."""
    held: Mapping[int, int] = field(default_factory=dict)
    """The URLs it was given, settled ones too: class by number."""


@dataclass(slots=True)
class _Writes:
    """What the batch writes, collected."""

    queued: list[Waiting] = field(default_factory=list)
    delayed: list[tuple[Waiting, int]] = field(default_factory=list)
    ended: list[tuple[Waiting, Ending]] = field(default_factory=list)
    refused: Counter[tuple[int, str]] = field(default_factory=Counter)
    released: list[Released] = field(default_factory=list)


class _Settling:
    """One batch, its hosts held."""

    def __init__(
        self, transaction: Transaction, settlements: Sequence[Settlement], held: Mapping[int, HeldHost]
    ) -> None:
        self._transaction = transaction
        self._book = transaction.book
        self._urls = Urls(transaction)
        self._settlements = settlements
        self._fences = {hid: _Fence(host.token, host.released, host.n_leased) for hid, host in held.items()}
        self._taken: dict[int, Waiting] = {}
        self._places: dict[int, Place] = {}
        self._ended: dict[int, Ended] = {}
        self._segments: dict[str, int] = {}
        self._earlier: dict[int, list[Visited]] = {}
        """Earlier visits of the URLs that are as they were."""
        self._owners: dict[bytes, int] = {}
        self._made: dict[int, tuple[UrlState, int]] = {}
        """What this batch has made of URLs: state, and the token that did it."""
        self._writes = _Writes()
        self._used = Used()
        self.pages: dict[int, bool] = {}
        """Numbers of the URLs that are done with a page now, and whether another URL had its bytes first."""

    async def run(self) -> list[Answer]:
        await self._see_leases()
        self._taken = await self._urls.take(self._wanted())
        await self._see_others()
        spent = [one for one in self._live() if one.url.id in self._taken]
        await self._read_for(spent)
        answers = [self._one(settlement) for settlement in self._settlements]
        await self._write()
        return answers

    # -- what is read ---------------------------------------------------------------------------------------

    async def _read_for(self, spent: Sequence[_OfUrl]) -> None:
        """Read what these settlements need to be applied."""
        self._owners = await self._own(spent)
        self._segments = await self._reach(spent)
        self._earlier = await visits(
            self._transaction, [Named(one.hid, one.url.id) for one in spent if isinstance(one, Unchanged)]
        )

    async def _see_leases(self) -> None:
        asking = {settlement.hid for settlement in self._settlements}
        leases = {
            fence.token: hid for hid, fence in self._fences.items() if fence.token is not None and hid in asking
        }
        for token, held in (await given(self._transaction, leases)).items():
            self._fences[leases[token]].held = held

    def _live(self) -> Iterator[_OfUrl]:
        """The first settlement of each URL by the lease that holds its host, as long as it does."""
        over: set[int] = set()
        told: set[int] = set()
        for settlement in self._settlements:
            fence = self._fences.get(settlement.hid)
            if fence is None or settlement.token != fence.token or settlement.hid in over:
                continue
            if isinstance(settlement, Released):
                over.add(settlement.hid)
            elif settlement.url.id in fence.held and settlement.url.id not in told:
                told.add(settlement.url.id)
                yield settlement

    def _wanted(self) -> list[Taking]:
        return [
            Taking(one.hid, self._fences[one.hid].held[one.url.id], one.url.id, one.token) for one in self._live()
        ]

    async def _see_others(self) -> None:
        """Where the URLs are that cannot be settled: late, repeated or foreign ones."""
        others = {
            Named(one.hid, one.url.id)
            for one in self._settlements
            if not isinstance(one, Released) and one.url.id not in self._taken
        }
        self._places = await self._urls.waiting(others)
        self._ended = await self._urls.ended([url for url in others if url.number not in self._places])

    async def _own(self, spent: Sequence[_OfUrl]) -> dict[bytes, int]:
        """Whose bytes are whose: the first URL done with them, by digest."""
        first: dict[bytes, int] = {}
        for settlement in spent:
            digest = _digest(settlement)
            if digest is not None:
                first.setdefault(digest, settlement.url.id)
        if not first:
            return {}
        digests = sorted(first)
        ours = await self._transaction.rows(
            _SQL["first_with"], id=numbers([first[digest] for digest in digests]), **self._of_digests(digests)
        )
        numbered = {number for (number,) in ours}
        others = [digest for digest in digests if first[digest] not in numbered]
        if others:
            for place, number in await self._transaction.rows(_SQL["who_had"], **self._of_digests(others)):
                first[others[place - 1]] = number
        return first

    def _of_digests(self, digests: Sequence[bytes]) -> dict[str, str]:
        return {"shard": numbers(self._transaction.shards.of_keys(digests)), "digest": keys(digests)}

    async def _reach(self, spent: Sequence[_OfUrl]) -> dict[str, int]:
        """Numbers of the archive files, whose settled parts now reach beyond these captures."""
        reach: dict[str, int] = {}
        for settlement in spent:
            pointer = None if isinstance(settlement, Refused) else settlement.evidence.pointer
            if pointer is not None:
                reach[pointer.file] = max(reach.get(pointer.file, 0), pointer.offset + pointer.length)
        if not reach:
            return {}
        names = sorted(reach)
        rows = await self._transaction.rows(
            _SQL["reach"],
            worker=self._transaction.worker,
            name=texts(names),
            length=numbers(reach[name] for name in names),
        )
        return dict(rows)

    # -- one settlement -------------------------------------------------------------------------------------

    def _one(self, settlement: Settlement) -> Answer:
        fence = self._fences.get(settlement.hid) or _Fence()
        if isinstance(settlement, Released):
            return self._release(settlement, fence)
        if settlement.token != fence.token:
            return self._late(settlement)
        row = self._taken.pop(settlement.url.id, None) if settlement.url.id in fence.held else None
        if row is None:
            return self._not_held(settlement)
        fence.leased -= 1
        self._count(settlement)
        self._apply(settlement, row)
        return Answer.SETTLED

    def _late(self, settlement: _OfUrl) -> Answer:
        """The lease is over: was it this one that had settled the URL?"""
        return Answer.ALREADY if self._settled_by(settlement.url.id) == settlement.token else Answer.STALE

    def _settled_by(self, number: int) -> int | None:
        if number in self._made:
            return self._made[number][1]
        if number in self._ended:
            return self._ended[number].token
        waits = self._places[number].row if number in self._places else self._taken.get(number)
        return None if waits is None else waits.settled

    def _not_held(self, settlement: _OfUrl) -> Answer:
        """The lease lives but does not hold the URL: it settled it before, or never had it."""
        answer = self._late(settlement)
        if answer is Answer.STALE:
            advance(self._state(settlement.url.id), _EVENTS[type(settlement)])
        return answer

    def _state(self, number: int) -> UrlState:
        if number in self._made:
            return self._made[number][0]
        return self._ended[number].state if number in self._ended else UrlState.QUEUED

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
        self._made[row.id] = (state, settlement.token)
        match settlement:
            case Finished():
                self._finish(settlement, row, state)
            case Unchanged():
                self._stay(settlement, row, state)
            case ProcessingFailed():
                self._end(row, self._named(settlement, state))
            case WasRedirect():
                end = self._ending(settlement, state)._replace(target=settlement.target)
                self._end(row, planned(end, settlement.again, self._transaction.now))
            case Moved():
                moved = row._replace(url=settlement.target, hops=row.hops + 1, settled=settlement.token)
                self._writes.queued.append(moved)
                self._book.host(row.hid).join(row.front_class)
            case RetryAt():
                self._retry(settlement, row)
            case Rerouted():
                self._reroute(settlement, row)
            case Refused():
                self._refuse(settlement, row, state)
            case Died():
                self._end(row, planned(self._named(settlement, state), settlement.again, self._transaction.now))
                self._book.host(row.hid).dead += 1
            case _:  # pragma: no cover
                assert_never(settlement)

    def _finish(self, settlement: Finished, row: Waiting, state: UrlState) -> None:
        end = self._ending(settlement, state)
        if _is_page(settlement):
            self._book.add(PAGES, 1)
            digest = _digest(settlement)
            first = row.id if digest is None else self._owners[digest]
            if first != row.id:
                self._book.add(DUPLICATES, 1)
                self._book.host(row.hid).duplicates += 1
                end = end._replace(copy_of=first)
            self.pages[row.id] = first != row.id
        self._end(row, planned(end, settlement.again, self._transaction.now))
        self._book.host(row.hid).done += 1

    def _stay(self, settlement: Unchanged, row: Waiting, state: UrlState) -> None:
        """Done with the capture and the content of an earlier visit."""
        end = unchanged(self._ending(settlement, state), last_done(self._earlier.get(row.id, ())))
        if end.status is not None and 200 <= end.status < 300:
            self._book.add(PAGES, 1)
        if end.copy_of is not None:
            self._book.add(DUPLICATES, 1)
            self._book.host(row.hid).duplicates += 1
        self._end(row, planned(end, settlement.again, self._transaction.now))
        self._book.host(row.hid).done += 1

    def _retry(self, settlement: RetryAt, row: Waiting) -> None:
        seen = settlement.evidence
        tried = with_attempt(row, Attempt(seen.at, seen.error or _UNNAMED, seen.status))
        self._writes.delayed.append((tried._replace(settled=settlement.token), settlement.due))
        self._book.host(row.hid).delayed += 1

    def _reroute(self, settlement: Rerouted, row: Waiting) -> None:
        self._writes.delayed.append((rerouted(row, settlement), settlement.due))
        self._book.host(row.hid).delayed += 1

    def _refuse(self, settlement: Refused, row: Waiting, state: UrlState) -> None:
        reason = settlement.reason.value
        detail = detail_column(settlement.detail)
        self._end(row, Ending(int(state), self._transaction.now, settlement.token, reason, detail))
        self._writes.refused[row.hid, reason] += 1

    def _end(self, row: Waiting, end: Ending) -> None:
        self._writes.ended.append((row, end))

    def _named(self, settlement: ProcessingFailed | Died, state: UrlState) -> Ending:
        """A failure always has a class."""
        end = self._ending(settlement, state)
        return end if end.reason else end._replace(reason=_UNNAMED)

    def _ending(
        self, settlement: Finished | Unchanged | ProcessingFailed | WasRedirect | Died, state: UrlState
    ) -> Ending:
        evidence = settlement.evidence
        segment = None if evidence.pointer is None else self._segments[evidence.pointer.file]
        return ending(evidence, state, self._transaction.now, settlement.token, segment)

    def _release(self, settlement: Released, fence: _Fence) -> Answer:
        if settlement.token != fence.token:
            return Answer.ALREADY if settlement.token == fence.released else Answer.STALE
        self._book.host(settlement.hid)
        self._book.move(UrlState.LEASED, Event.RETURN, fence.leased)
        self._writes.released.append(settlement)
        self._fences[settlement.hid] = _Fence(None, settlement.token)
        return Answer.SETTLED

    # -- writing --------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        writes = self._writes
        await self._urls.enqueue(writes.queued)
        await self._urls.delay(writes.delayed)
        await self._urls.end(writes.ended)
        await self._write_refused(writes.refused)
        await write_used(self._transaction, self._used)
        await self._transaction.write_hosts()
        await self._write_released(writes.released)
        for settlement in writes.released:
            if settlement.condemned is not None:
                await condemn(self._transaction, settlement.hid, settlement.condemned)

    async def _write_refused(self, refused: Counter[tuple[int, str]]) -> None:
        if not refused:
            return
        hids, reasons = zip(*sorted(refused), strict=True)
        await self._transaction.run(
            _SQL["refuse"],
            shard=numbers(map(self._transaction.shards.of, hids)),
            hid=numbers(hids),
            reason=texts(reasons),
            n=numbers(refused[key] for key in sorted(refused)),
        )

    async def _write_released(self, released: Sequence[Released]) -> None:
        if not released:
            return
        clocks = [settlement.pace for settlement in released]
        addresses = {settlement.hid: settlement.address for settlement in released if settlement.address is not None}
        crowded = await crowds.too_many(self._transaction, addresses)
        turns = {settlement.hid: settlement.group_next_at for settlement in released}
        await groups.give_back(self._transaction, turns)
        await drop_leases(self._transaction, {settlement.token: settlement.hid for settlement in released})
        await self._transaction.run(
            _SQL["release"],
            shard=numbers(self._transaction.shards.each(settlement.hid for settlement in released)),
            hid=numbers(settlement.hid for settlement in released),
            token=numbers(settlement.token for settlement in released),
            next_at=numbers(clock.next_at for clock in clocks),
            delay_ms=numbers(clock.delay_ms for clock in clocks),
            crawl_delay_ms=numbers(clock.crawl_delay_ms for clock in clocks),
            failures=numbers(clock.failures for clock in clocks),
            slowed=numbers(clock.slowed for clock in clocks),
            latency_ms=numbers(clock.latency_ms for clock in clocks),
            address=texts(settlement.address for settlement in released),
        )
        await crowds.park(self._transaction, crowded)


def _is_page(settlement: _OfUrl) -> bool:
    if not isinstance(settlement, Finished):
        return False
    status = settlement.evidence.status
    return status is not None and 200 <= status < 300


def _digest(settlement: _OfUrl) -> bytes | None:
    """What a page's bytes are known by; None when there are none."""
    if not _is_page(settlement) or isinstance(settlement, Refused):
        return None
    digest = settlement.evidence.digest
    return None if digest is None or digest == _NOTHING else digest[:_DIGEST_BYTES]
