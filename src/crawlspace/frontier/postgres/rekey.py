"""Re-keying a shared store: its URLs under other URL rules, in transactions, in bounded memory, killed when you like.

The store says in one of its facts how far it is; whoever finds that fact there must go on or leave the store alone.
Every step reads it, works on one batch, and writes it again in the same transaction, so that a killed re-keying goes
on where it was and ends like one that was not. One process re-keys at a time. Workers that came before it began
write nothing any more (`fence`), and it begins only when no host is leased.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec
import psycopg

from crawlspace.clock import Clock
from crawlspace.errors import CrawlDirInUse, OthersAtWork, StoreError
from crawlspace.frontier.postgres import fence
from crawlspace.frontier.postgres.book import Book
from crawlspace.frontier.postgres.columns import blobs, keys, numbers, texts
from crawlspace.frontier.postgres.condemned import empty_some
from crawlspace.frontier.postgres.loss import reclaim
from crawlspace.frontier.postgres.place import Place as Where
from crawlspace.frontier.postgres.place import Shards
from crawlspace.frontier.postgres.rekey_look import FIRST
from crawlspace.frontier.postgres.rekey_move import Moving
from crawlspace.frontier.postgres.rekey_rest import BEFORE_HOSTS, Rest, named
from crawlspace.frontier.postgres.schema import require, steps
from crawlspace.frontier.postgres.sessions import Connection, Row, Sessions, queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.rekeying import (
    DONE,
    LINKS,
    READY,
    UNFINISHED,
    WALKED,
    Cursor,
    Naming,
    Planned,
    Progress,
    Walked,
    decoded,
    encoded,
    planned,
)
from crawlspace.frontier.settings import FrontierSettings

T = TypeVar("T")

_SQL = queries("rekey.sql")
_FENCE = queries("fence.sql")

PATIENCE_SECONDS = 180.0
"""The others have so long to end their visits: longer than the leases of one that was killed live."""
LOOK_AGAIN_SECONDS = 0.5
REST_MS = 10_000
"""For so long workers lease nothing when they were asked once: who asks may die."""

_PLANNING = {f"plan {place.name.lower()}": place for place in FIRST}
_MOVING = "move"
_NO_KEY = "0" * 32
_STAGES: list[tuple[str, Cursor]] = [
    *((stage, FIRST[place]) for stage, place in _PLANNING.items()),
    (_MOVING, ("", -1, -1, 0)),
    ("point outcome", (-1, -1)),
    ("point queue", (-1, -1, -1, -1)),
    ("point delayed", (-1, -1, -1)),
    ("point visit", (-1, -1, -1)),
    ("point content", (-1, _NO_KEY)),
    ("hosts", BEFORE_HOSTS),
    ("crowds", BEFORE_HOSTS),
    # After the hosts: what merged pages counted for is with their heirs then.
    ("point page", (-1,)),
    ("point said", (-(1 << 63),)),
    (READY, ()),
]


@asynccontextmanager
async def open_rekeying(
    where: Where, settings: FrontierSettings, clock: Clock, naming: Naming, batch: int
) -> AsyncIterator[Rekeying]:
    """A store for the one who re-keys it; raises `CrawlDirInUse` while somebody else does."""
    sessions = Sessions(where, settings, clock)
    await sessions.open()
    try:
        async with sessions.plain() as connection:
            shards = await require(connection, where, steps())
        async with _first(where):
            yield Rekeying(sessions, (settings, shards, clock), naming, batch)
    finally:
        await sessions.close()


@asynccontextmanager
async def _first(where: Where) -> AsyncIterator[None]:
    """Hold the place of the one who re-keys for as long as the line holds; that two never undo each other's work is
    seen to by the steps themselves."""
    try:
        connection: Connection = await psycopg.AsyncConnection.connect(where.address, autocommit=True)
    except psycopg.Error as error:
        raise StoreError(f"{where.shown} cannot be reached: {error}", hint="is the server up?") from error
    async with connection:
        found = await (await connection.execute(_FENCE["first"], {"schema": where.schema})).fetchone()
        if found is None or not found[0]:
            raise OthersAtWork("another process re-keys this crawl", hint="wait for it, or end it and go on here")
        yield


class Rekeying:
    """Takes one store to new rules. Made by `open_rekeying`."""

    def __init__(
        self, sessions: Sessions, store: tuple[FrontierSettings, Shards, Clock], naming: Naming, batch: int
    ) -> None:
        self._sessions = sessions
        self._settings, self._shards, self._clock = store
        self._naming = naming
        self._batch = batch

    async def begin(self, rules: str, facts: Mapping[str, str], *, parts: bool) -> Progress:
        """Bury what was given up, and write down that a re-keying to these rules has begun, with facts about it.

        All workers are asked to rest, and waited for. Raises `OthersAtWork` when they do not. When it returns, nobody
        writes who came before.
        """
        await self._wait_for_rest()
        while await self._alone(_bury_some):
            pass

        async def begin(transaction: Transaction) -> Progress:
            leased = await transaction.rows(_SQL["leases"])
            if leased:
                raise _others_at_work(leased)
            [(urls,)] = await transaction.rows(_SQL["count_urls"])
            await transaction.run(_SQL["drop_plan"])
            begun = (await fence.look(transaction.connection)).rekeyings + 1
            stage, after = _STAGES[0]
            progress = Progress(rules=rules, parts=parts, urls=urls, stage=stage, after=after)
            await _write(transaction, {**facts, UNFINISHED: encoded(progress), **fence.fact_of(begun)})
            return progress

        return await self._alone(begin)

    async def _wait_for_rest(self) -> None:
        """Until no host is leased; those who would lease more are asked not to."""
        deadline = self._clock.monotonic() + PATIENCE_SECONDS
        while True:
            leased = await self._alone(_rests)
            if not leased:
                return
            if self._clock.monotonic() >= deadline:
                await self._alone(lambda it: _ask_for_rest(it, 0))
                raise _others_at_work(leased)
            await self._clock.sleep(LOOK_AGAIN_SECONDS)

    async def run(self, progress: Progress) -> AsyncIterator[Progress]:
        """Go on until the store is ready, one transaction a step; gives where it stands after each."""
        rules = progress.rules
        while progress.stage in dict(_STAGES) and progress.stage != READY:
            progress = await self._alone(lambda it: self._step(it, rules))
            yield progress

    async def finish(self, progress: Progress, facts: Mapping[str, str]) -> Progress:
        """Put the ready store under the new rules, which these facts tell; where it stands then."""
        left = msgspec.structs.replace(progress, stage=LINKS if progress.parts else DONE, after=(0,))

        async def finish(transaction: Transaction) -> Progress:
            found = await _progress(transaction)
            if found is None or found.stage != READY:
                return found or left  # the answer to a first try was lost
            await transaction.run(_SQL["drop_plan"])
            await _write(transaction, {**facts, UNFINISHED: encoded(left) if progress.parts else ""})
            return left

        return await self._alone(finish)

    async def _alone(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """One transaction in which nobody else writes."""

        async def whole(connection: Connection) -> T:
            await fence.keep_out(connection)
            now = (await fence.look(connection)).now
            transaction = Transaction(connection, self._settings, self._shards, 0, now, Book(os.getpid()))
            result = await work(transaction)
            await transaction.finish()
            return result

        return await self._sessions.write(whole)

    async def _step(self, transaction: Transaction, rules: str) -> Progress:
        progress = await _progress(transaction)
        if progress is None or progress.rules != rules:
            raise CrawlDirInUse(
                "another process has gone on with this re-keying", hint="look how the crawl stands: crawlspace rekey"
            )
        if progress.stage == READY or progress.stage not in dict(_STAGES):
            return progress
        if progress.stage in _PLANNING:
            progress = await self._plan(transaction, progress)
        elif progress.stage == _MOVING:
            progress = await self._move(transaction, progress)
        else:
            rest = Rest(transaction, self._naming)
            walks = {
                "point outcome": rest.outcomes,
                "point queue": rest.queue,
                "point delayed": rest.delayed,
                "point visit": rest.visits,
                "point content": rest.content,
                "hosts": rest.hosts,
                "crowds": rest.crowds,
                "point page": rest.pages,
                "point said": rest.said,
            }
            reached = await walks[progress.stage](progress.after, self._batch)
            progress = progress.onwards(_STAGES, reached)
        await _write(transaction, {UNFINISHED: encoded(progress)})
        return progress

    async def _plan(self, transaction: Transaction, progress: Progress) -> Progress:
        place = _PLANNING[progress.stage]
        query = _SQL[f"walk_{place.name.lower()}"]
        rows = await transaction.rows(query, limit=self._batch, **named("a", progress.after))
        if not rows:
            return progress.onwards(_STAGES, None)
        found = [planned(self._naming, place, Walked._make(row[:WALKED])) for row in rows]
        await transaction.run(
            _SQL["plan"],
            fp=keys(each.key for each in found),
            rank=numbers(each.rank for each in found),
            id=numbers(each.id for each in found),
            place=numbers(each.place for each in found),
            hid=numbers(each.hid for each in found),
            tail=blobs(each.tail for each in found),
        )
        changed = sum(each.is_live and each.key != each.old_key for each in found)
        told = msgspec.structs.replace(
            progress, planned=progress.planned + len(rows), changed=progress.changed + changed
        )
        return told.onwards(_STAGES, tuple(rows[-1][WALKED:]))

    async def _move(self, transaction: Transaction, progress: Progress) -> Progress:
        key, rank, number, winner = progress.after
        after = named("a", (str(key) or _NO_KEY, rank, number))
        found = await transaction.rows(_SQL["planned"], limit=self._batch, **after)
        rows = [Planned(fp.bytes, *rest) for fp, *rest in found]
        if not rows:
            return progress.onwards(_STAGES, None)
        moving = Moving(transaction, self._naming, progress.rules)
        _, winner = await moving.run(rows, (bytes.fromhex(str(key)), int(winner)))
        told = msgspec.structs.replace(
            progress,
            moved=progress.moved + len(rows),
            merged=progress.merged + moving.merged,
            restored=progress.restored + moving.restored,
        )
        last = rows[-1]
        return told.onwards(_STAGES, (last.key.hex(), last.rank, last.id, winner))


async def _progress(transaction: Transaction) -> Progress | None:
    """How far it is."""
    found = await transaction.rows(_SQL["progress"])
    return decoded(found[0][0] if found else None)


async def _write(transaction: Transaction, facts: Mapping[str, str]) -> None:
    await transaction.run(_SQL["write_facts"], key=texts(facts), value=texts(facts.values()))


async def _bury_some(transaction: Transaction) -> bool:
    """Bury some of what was given up; whether there was any."""
    [(any_left,)] = await transaction.rows(_SQL["condemned"])
    if any_left:
        await empty_some(transaction)
    return bool(any_left)


async def _rests(transaction: Transaction) -> list[Row]:
    """Ask workers to rest for a while; who leases hosts still."""
    while await reclaim(transaction):
        pass
    await _ask_for_rest(transaction, transaction.now + REST_MS)
    return await transaction.rows(_SQL["leases"])


def _others_at_work(leased: list[Row]) -> OthersAtWork:
    n = sum(count for _, count, _ in leased)
    workers = ", ".join(sorted({place or f"worker {name}" for name, _, place in leased}))
    return OthersAtWork(
        f"{n} hosts of this crawl are being visited, by {workers}",
        hint="let its workers end first; the leases of one that was killed end after two minutes",
    )


async def _ask_for_rest(transaction: Transaction, until: int) -> None:
    """Let workers lease nothing until this time."""
    await _write(transaction, fence.fact_of((await fence.look(transaction.connection)).rekeyings, until))
