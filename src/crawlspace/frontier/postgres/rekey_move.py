"""Carrying out the plan of a re-keying, a batch at a time: the first of each group takes the new key, others merge.

Each batch is one transaction of the caller, in which nobody else writes, and leaves a store in which every number is
right: each URL in one place, totals and hosts as their rows say. What is merged keeps its whole row in `merged`, and
comes back from there when later rules part the two again. Statements are few, whatever the size of the batch.

Requests of a host were made to its name, so they count where its name goes. A URL that goes to another host than
its host's name takes its own tries along.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from crawlspace.frontier.counters import DUPLICATES, HOSTS, PAGES, STATE_NAMES
from crawlspace.frontier.postgres.columns import blobs, keys, numbers, texts
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.postgres.urls import Named, Urls
from crawlspace.frontier.postgres.urls import Place as WaitingPlace
from crawlspace.frontier.rekeying import Facts, Naming, Place, Planned, better_of, request_of
from crawlspace.frontier.rows import Waiting
from crawlspace.states import UrlState
from crawlspace.types import HOST_BYTES, host_id

_SQL = queries("rekey_move.sql")

_DIGEST_BYTES = 16


class _Gone(NamedTuple):
    """A URL that gives way."""

    row: Planned
    winner: int

    @property
    def hid(self) -> int:
        """Its host of now."""
        return host_id(self.row.key)


class _Merged(NamedTuple):
    """A URL that was merged before, as it was."""

    facts: Facts
    counted_at: int
    due_at: int | None
    winner: int
    digest: bytes | None


class Moving:
    """One batch, inside a transaction of the caller."""

    def __init__(self, transaction: Transaction, naming: Naming, rules: str) -> None:
        self._transaction = transaction
        self._naming = naming
        self._rules = rules
        self._book = transaction.book
        self._urls = Urls(transaction)
        self._shard = transaction.shards.of
        self.merged = 0
        self.restored = 0
        self._takers: list[Planned] = []
        self._gone: list[_Gone] = []
        self._names: dict[int, str] = {}
        self._met: dict[int, bool] = {}
        self._heirs: dict[int, int | None] = {}
        self._outcomes: dict[int, Facts] = {}
        self._merged: dict[int, _Merged] = {}
        self._waiting: dict[int, WaitingPlace] = {}
        self._placed: dict[int, tuple[Waiting, int | None]] = {}
        """Waiting URLs as they are to be written: row and due time."""
        self._refusals: Counter[tuple[int, str]] = Counter()
        self._touched: set[int] = set()

    async def run(self, rows: Sequence[Planned], last: tuple[bytes, int]) -> tuple[bytes, int]:
        """Carry out these rows; `last` is the key and the number of the group's first, which goes on over batches."""
        key, winner = last
        for row in rows:
            if row.key == key:
                self._gone.append(_Gone(row, winner))
                continue
            key, winner = row.key, row.id
            if not row.stays:
                self._takers.append(row)
        await self._look_up()
        await self._slow_hosts()
        await self._swap_keys()
        self._take()
        self._absorb()
        await self._write_waiting()
        await self._write_outcomes()
        await self._write_merged()
        await self._write_counts()
        return key, winner

    # -- what the batch reads -------------------------------------------------------------------------------

    async def _look_up(self) -> None:
        rows = [*self._takers, *(each.row for each in self._gone)]
        ended = [row for row in rows if row.place == Place.OUTCOME]
        found = await self._transaction.rows(_SQL["outcome_facts"], **self._lying(ended))
        self._outcomes = {number: Facts(*facts) for number, *facts in found}
        before = [row.id for row in rows if not row.is_live]
        for number, *facts, counted_at, due_at, winner, digest in await self._rows("merged_facts", before):
            told = Facts(*facts)._replace(delayed=due_at is not None)
            self._merged[number] = _Merged(told, counted_at, due_at, winner, digest)
        # Those that stay where they are, and may get better, are at the host of their key.
        wanted = {Named(row.hid, row.id) for row in rows if row.place in (Place.QUEUE, Place.DELAYED)}
        takers = {row.id for row in self._takers}
        wanted |= {Named(each.hid, each.winner) for each in self._gone if each.winner not in takers}
        self._waiting = await self._urls.waiting(wanted)
        await self._look_up_hosts(rows)

    async def _look_up_hosts(self, rows: Sequence[Planned]) -> None:
        hids = sorted({hid for row in rows for hid in (row.hid, host_id(row.key))})
        found = await self._transaction.rows(_SQL["hosts"], **hosts_in(self._transaction, hids))
        self._names = {hid: name for hid, name, _ in found}
        self._met = {hid: met for hid, _, met in found}
        unknown = {host_id(row.key): row for row in rows if host_id(row.key) not in self._names}
        if not unknown:
            return
        urls = await self._urls_of(unknown.values())
        named = {hid: self._naming.name(*urls[row.id]) for hid, row in sorted(unknown.items())}
        new = {hid: each for hid, each in named.items() if each is not None}
        assert len(new) == len(unknown), "a URL lost its key between plan and move"
        await self._transaction.run(
            _SQL["add_hosts"],
            name=texts(each.host for each in new.values()),
            seed=numbers(each.seed for each in new.values()),
            **hosts_in(self._transaction, new),
        )
        self._names |= {hid: each.host for hid, each in new.items()}
        self._met |= dict.fromkeys(new, False)

    async def _urls_of(self, rows: Iterable[Planned]) -> dict[int, tuple[str, Any]]:
        """Addresses and requests, by number."""
        ended = [row for row in rows if row.place == Place.OUTCOME]
        found = await self._transaction.rows(_SQL["outcome_urls"], **self._lying(ended))
        found += await self._rows("merged_urls", [row.id for row in rows if not row.is_live])
        waiting = [(each.row.id, each.row.url, each.row.request) for each in self._waiting.values()]
        return {number: (url, request_of(request)) for number, url, request in (*found, *waiting)}

    async def _rows(self, query: str, ids: Sequence[int]) -> list[tuple[Any, ...]]:
        return await self._transaction.rows(_SQL[query], id=numbers(ids)) if ids else []

    async def _slow_hosts(self) -> None:
        """Hosts are asked no faster than those whose URLs they get."""
        rows = [*self._takers, *(each.row for each in self._gone)]
        pairs = sorted({(row.hid, host_id(row.key)) for row in rows if row.hid != host_id(row.key)})
        if pairs:
            await slow_down(self._transaction, pairs)

    async def _swap_keys(self) -> None:
        live = [row for row in (*self._takers, *(each.row for each in self._gone)) if row.is_live]
        await self._keys("forget_keys", [(row.old_key, row.id) for row in live])
        await self._keys("take_keys", [(row.key, row.id) for row in self._takers])

    async def _keys(self, query: str, pairs: Sequence[tuple[bytes, int]]) -> None:
        if pairs:
            fps, ids = zip(*sorted(pairs), strict=True)
            shard = numbers(map(self._transaction.shards.of_key, fps))
            await self._transaction.run(_SQL[query], shard=shard, fp=keys(fps), id=numbers(ids))

    # -- who stays, who gives way ---------------------------------------------------------------------------

    def _take(self) -> None:
        for row in self._takers:
            hid = host_id(row.key)
            if not row.is_live:
                was = self._merged[row.id]
                self._count(hid, was.facts, 1)
                self._carry(was.counted_at, hid, was.facts.attempts)
                self._total(was.facts, 1)
                self.restored += 1
                continue
            place = self._waiting.get(row.id)
            facts = self._outcomes[row.id] if place is None else _facts_of(place)
            if place is not None:
                moved = place.row._replace(hid=hid, tail=row.key[HOST_BYTES:])
                self._placed[row.id] = moved, place.due_at
            if hid != row.hid:
                self._count(row.hid, facts, -1)
                self._count(hid, facts, 1)
                self._carry(row.hid, hid, facts.attempts)

    def _absorb(self) -> None:
        for row, _ in self._gone:
            hid = host_id(row.key)
            if not row.is_live:
                self._carry(row.hid, hid, self._merged[row.id].facts.attempts)
                continue
            place = self._waiting.get(row.id)
            facts = self._outcomes[row.id] if place is None else _facts_of(place)
            self._count(row.hid, facts, -1)
            self._carry(row.hid, hid, facts.attempts)
            self._total(facts, -1)
            self.merged += 1

    def _better(self, restored: dict[int, tuple[Waiting, int | None]]) -> None:
        """Waiting URLs get the better class and way of those that give way to them."""
        for row, winner in self._gone:
            goes = self._waiting.get(row.id)
            if goes is None or not row.is_live:
                continue
            stays = self._placed.get(winner) or restored.get(winner) or self._standing(winner)
            if stays is not None:
                self._placed[winner] = better_of(stays[0], goes.row), stays[1]
                self._touched.add(host_id(row.key))

    def _standing(self, winner: int) -> tuple[Waiting, int | None] | None:
        place = self._waiting.get(winner)
        return None if place is None else (place.row, place.due_at)

    # -- counting -------------------------------------------------------------------------------------------

    def _count(self, hid: int, facts: Facts, n: int) -> None:
        """`n` URLs of this kind more at a host."""
        delta = self._book.host(hid)
        if facts.state == UrlState.QUEUED and facts.delayed:
            delta.delayed += n
        elif facts.state == UrlState.QUEUED:
            delta.queued += n
            self._touched.add(hid)
        elif facts.state == UrlState.DONE:
            delta.done += n
        elif facts.state == UrlState.DEAD:
            delta.dead += n
        elif facts.state == UrlState.SKIPPED:
            self._refusals[hid, facts.reason or ""] += n
        if facts.state != UrlState.SKIPPED:
            delta.discovered += n
        if facts.is_copy:
            delta.duplicates += n
        if n > 0 and facts.was_met and not self._met[hid]:
            self._met[hid] = True
            delta.met = 1
            self._book.add(HOSTS, 1)

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

    def _heir(self, hid: int) -> int | None:
        if hid not in self._heirs:
            self._heirs[hid] = host_id(self._naming.heir(self._names[hid]).key)
        return self._heirs[hid]

    # -- what the batch writes ------------------------------------------------------------------------------

    async def _write_waiting(self) -> None:
        restored = await self._restored()
        self._better(restored)
        rewritten = {**restored, **self._placed}
        gone = [each for each in self._gone if each.row.is_live and each.row.id in self._waiting]
        if gone:
            await self._transaction.run(_SQL["bury_waiting"], **self._buried(gone))
        leave = {each.row.id for each in gone} | (rewritten.keys() & self._waiting.keys())
        await self._urls.remove([self._waiting[number] for number in sorted(leave)])
        await self._urls.enqueue([row for row, due_at in rewritten.values() if due_at is None])
        await self._urls.delay([(row, due_at) for row, due_at in rewritten.values() if due_at is not None])

    async def _restored(self) -> dict[int, tuple[Waiting, int | None]]:
        """Waiting URLs that stand for themselves again, by number."""
        back = {row.id: row for row in self._takers if not row.is_live and self._is_waiting(row.id)}
        found = map(Waiting._make, await self._rows("restore_waiting", sorted(back)))
        restored = {}
        for each in found:
            key = back[each.id].key
            row = each._replace(hid=host_id(key), tail=key[HOST_BYTES:])
            restored[each.id] = row, self._merged[each.id].due_at
        return restored

    def _is_waiting(self, number: int) -> bool:
        return self._merged[number].facts.state == UrlState.QUEUED

    def _buried(self, gone: Sequence[_Gone]) -> dict[str, str]:
        places = [self._waiting[each.row.id] for each in gone]
        rows = [place.row for place in places]
        columns = {name: [getattr(row, name) for row in rows] for name in Waiting._fields}
        text = ("url", "relation", "label", "meta", "history", "route")
        number = ("id", "depth", "hops", "attempts", "parent", "found_at", "generation", "suspect")
        return {
            **{name: texts(columns[name]) for name in text},
            **{name: numbers(columns[name]) for name in number},
            "request": blobs(columns["request"]),
            "class": numbers(columns["front_class"]),
            "rules": texts(self._rules for _ in gone),
            "winner": numbers(each.winner for each in gone),
            "hid": numbers(each.hid for each in gone),
            "due_at": numbers(place.due_at for place in places),
        }

    async def _write_outcomes(self) -> None:
        gone = [each for each in self._gone if each.row.place == Place.OUTCOME]
        if gone:
            lying = self._lying([each.row for each in gone])
            into = {"winner": numbers(each.winner for each in gone), "hid": numbers(each.hid for each in gone)}
            await self._transaction.run(_SQL["bury_outcomes"], rules=self._rules, **lying, **into)
            await self._transaction.run(_SQL["forget_outcomes"], **lying)
        live = [each.row for each in self._gone if each.row.is_live]
        if live:
            await self._transaction.run(_SQL["forget_visits"], **self._lying(live))
        moved = [row for row in self._takers if row.place == Place.OUTCOME]
        if moved:
            await self._transaction.run(
                _SQL["move_outcomes"], **self._lying(moved), **self._key_columns(moved, "new_")
            )
        shifted = [
            row for row in self._takers if row.is_live and self._shard(row.hid) != self._shard(host_id(row.key))
        ]
        if shifted:
            new_shard = numbers(self._shard(host_id(row.key)) for row in shifted)
            for query in ("move_visits", "move_declared", "move_pages"):
                await self._transaction.run(_SQL[query], new_shard=new_shard, **self._lying(shifted))

    async def _write_merged(self) -> None:
        after = [each for each in self._gone if not each.row.is_live]
        if after:
            await self._transaction.run(
                _SQL["redirect_merged"],
                id=numbers(each.row.id for each in after),
                winner=numbers(each.winner for each in after),
                hid=numbers(each.hid for each in after),
            )
        back = [row for row in self._takers if not row.is_live]
        if not back:
            return
        ended = [row for row in back if not self._is_waiting(row.id)]
        columns = {"id": numbers(row.id for row in ended), **self._key_columns(ended, "")}
        await self._transaction.run(_SQL["restore_outcomes"], **columns)
        await self._regain([(row.id, self._merged[row.id]) for row in ended])
        await self._transaction.run(_SQL["forget_merged"], id=numbers(row.id for row in back))

    async def _regain(self, back: Sequence[tuple[int, _Merged]]) -> None:
        known = [(number, was.winner, was.digest[:_DIGEST_BYTES]) for number, was in back if was.digest is not None]
        if known:
            ids, winners, digests = zip(*known, strict=True)
            await self._transaction.run(
                _SQL["regain_content"],
                shard=numbers(map(self._transaction.shards.of_key, digests)),
                digest=keys(digests),
                id=numbers(ids),
                winner=numbers(winners),
                all=numbers(range(self._transaction.shards.number)),
            )

    async def _write_counts(self) -> None:
        for query, sign in (("more_refusals", 1), ("fewer_refusals", -1)):
            moved = {where: n * sign for where, n in self._refusals.items() if n * sign > 0}
            if moved:
                reason, n = texts(why for _, why in moved), numbers(moved.values())
                hosts = hosts_in(self._transaction, [hid for hid, _ in moved])
                await self._transaction.run(_SQL[query], reason=reason, n=n, **hosts)
        await self._transaction.write_hosts()
        if self._touched:
            await self._transaction.run(_SQL["reclass"], **hosts_in(self._transaction, sorted(self._touched)))

    # -- parameters -----------------------------------------------------------------------------------------

    def _lying(self, rows: Sequence[Planned]) -> dict[str, str]:
        """Where rows lie."""
        return {"shard": numbers(self._shard(row.hid) for row in rows), "id": numbers(row.id for row in rows)}

    def _key_columns(self, rows: Sequence[Planned], prefix: str) -> dict[str, str]:
        """Where they go."""
        hids = [host_id(row.key) for row in rows]
        return {
            f"{prefix}shard": numbers(map(self._shard, hids)),
            f"{prefix}hid": numbers(hids),
            "tail": blobs(row.key[HOST_BYTES:] for row in rows),
        }


def hosts_in(transaction: Transaction, hids: Iterable[int]) -> dict[str, str]:
    """Hosts as columns."""
    known = list(hids)
    return {"shard": numbers(map(transaction.shards.of, known)), "hid": numbers(known)}


async def slow_down(transaction: Transaction, pairs: Sequence[tuple[int, int]]) -> None:
    """The second host of each pair gets URLs of the first: it is asked no faster, and held where that one is."""
    shard = transaction.shards.of
    olds, news = zip(*pairs, strict=True)
    into = {"new_shard": numbers(map(shard, news)), "new": numbers(news)}
    await transaction.run(_SQL["slow_hosts"], old_shard=numbers(map(shard, olds)), old=numbers(olds), **into)
    await transaction.run(_SQL["hold_hosts"], **into)


def _facts_of(place: WaitingPlace) -> Facts:
    return Facts(int(UrlState.QUEUED), attempts=place.row.attempts, delayed=place.due_at is not None)
