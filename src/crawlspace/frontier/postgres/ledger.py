"""What a frontier answers when it is asked: totals, facts, robots files, stories, hosts, dead letters.

Everything is found by key or read in the order of an index; nothing here walks a table. The caller holds one view of
the store, so that an answer of several reads is of one moment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from crawlspace.errors import UsageError
from crawlspace.exchange import RobotsFile, RobotsVerdict
from crawlspace.frontier.counters import BYTES, DUPLICATES, FETCHES, HOSTS, PAGES, REFUSED_BEYOND_CAP, STATE_NAMES
from crawlspace.frontier.postgres.book import TOTALS
from crawlspace.frontier.postgres.columns import keys, numbers, text, texts
from crawlspace.frontier.postgres.schema import OWN_FACTS
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.postgres.urls import Named, Place, Urls
from crawlspace.frontier.rows import Ending, Waiting, dead_letter, host_figures
from crawlspace.frontier.tales import told
from crawlspace.policy.commands import News
from crawlspace.states import UrlState
from crawlspace.types import Counts, DeadLetter, HostFigures, Reason, Story, host_id

_SQL = queries("ledger.sql")
_CLAIM_SQL = queries("claim.sql")

_WAITING = len(Waiting._fields)
_ENDING = _WAITING + len(Ending._fields)


async def new_edition(transaction: Transaction) -> None:
    """Something changes that all who work on the crawl must hear of."""
    await transaction.run(_SQL["new_edition"])


class _HostNow(NamedTuple):
    name: str
    next_at: int


class Ledger:
    """Reads, and writes what is no URL."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._all = numbers(range(transaction.shards.number))

    async def counts(self) -> Counts:
        [row] = await self._transaction.rows(_SQL["tally"])
        n = dict(zip(TOTALS, row, strict=True))
        return Counts(
            states={state: n[name] for state, name in STATE_NAMES.items()},
            pages=n[PAGES],
            fetches=n[FETCHES],
            bytes=n[BYTES],
            duplicates=n[DUPLICATES],
            hosts=n[HOSTS],
            refused_beyond_cap=n[REFUSED_BEYOND_CAP],
        )

    async def notes(self) -> Mapping[str, str]:
        return dict(await self._transaction.rows(_SQL["facts"]))

    async def note(self, facts: Mapping[str, str]) -> None:
        for name in OWN_FACTS.intersection(facts):
            raise UsageError(f"the fact {name!r} is the store's own")
        ordered = sorted(facts)
        await self._transaction.run(
            _SQL["write_facts"], key=texts(ordered), value=texts(facts[name] for name in ordered)
        )
        await new_edition(self._transaction)

    async def revise(self, name: str, old: str | None, new: str) -> bool:
        if name in OWN_FACTS:
            raise UsageError(f"the fact {name!r} is the store's own")
        if old is None:
            rows = await self._transaction.rows(_SQL["first_fact"], key=name, new=text(new))
        else:
            rows = await self._transaction.rows(_SQL["revise_fact"], key=name, new=text(new), old=text(old))
        if rows:
            await new_edition(self._transaction)
        return bool(rows)

    async def news(self, edition: int) -> News | None:
        [(now,)] = await self._transaction.rows(_SQL["edition"])
        if now <= edition:
            return None
        held = frozenset(name for (name,) in await self._transaction.rows(_SQL["held"]))
        return News(now, await self.notes(), held)

    async def robots(self, origins: Sequence[str]) -> list[RobotsFile | None]:
        rows = await self._transaction.rows(_SQL["robots"], origin=texts(origins))
        found = {row[0]: RobotsFile(row[0], row[1], row[2], RobotsVerdict(row[3]), row[4], row[5]) for row in rows}
        return [found.get(text(origin)) for origin in origins]

    async def keep_robots(self, robots: Sequence[RobotsFile]) -> None:
        latest = {file.origin: file for file in robots}
        files = [latest[origin] for origin in sorted(latest)]
        await self._transaction.run(
            _SQL["write_robots"],
            origin=texts(file.origin for file in files),
            fetched_at=numbers(file.fetched_at for file in files),
            expires_at=numbers(file.expires_at for file in files),
            verdict=texts(file.verdict.value for file in files),
            text=texts(file.text for file in files),
            detail=texts(file.detail for file in files),
        )

    async def segments(self) -> dict[str, int]:
        return dict(await self._transaction.rows(_SQL["segments"], worker=self._transaction.worker))

    async def enlist(self, name: str) -> int:
        """The number of a worker."""
        [(number,)] = await self._transaction.rows(_SQL["enlist"], name=text(name))
        return int(number)

    async def dead(self, after: int, limit: int) -> list[DeadLetter]:
        rows = await self._transaction.rows(_SQL["dead_letters"], after=after, limit=limit, all=self._all)
        return [dead_letter(row) for row in rows]

    async def hosts(self, after: str, limit: int) -> list[HostFigures]:
        rows = await self._transaction.rows(_SQL["hosts"], after=text(after), limit=limit)
        return [host_figures(row, self._transaction.settings.delay_ms) for row in rows]

    async def unprocessed(self, after: int, limit: int) -> list[Story]:
        rows = await self._transaction.rows(_SQL["stored"], after=after, limit=limit)
        return await self._in_order([Named(hid, number) for hid, number in rows])

    async def refused(self, hid: int, reason: Reason, after: int, limit: int) -> list[Story]:
        rows = await self._transaction.rows(_SQL["refused"], hid=hid, reason=reason.value, after=after, limit=limit)
        return await self._in_order([Named(hid, number) for (number,) in rows])

    async def find(self, wanted: Sequence[bytes]) -> list[Story | None]:
        of_key = self._transaction.shards.of_key
        rows = await self._transaction.rows(_CLAIM_SQL["known"], shard=numbers(map(of_key, wanted)), fp=keys(wanted))
        urls = {place - 1: Named(host_id(wanted[place - 1]), number) for place, number in rows}
        waits = await self._waits(set(urls.values()))
        ended = await self._ended([url for url in urls.values() if url.number not in waits])
        stories = {**ended, **waits}
        return [stories.get(urls[place].number) if place in urls else None for place in range(len(wanted))]

    # -- stories --------------------------------------------------------------------------------------------

    async def _waits(self, urls: Collection[Named]) -> dict[int, Story]:
        places = await Urls(self._transaction).waiting(urls)
        hosts = await self._hosts({place.row.hid for place in places.values()})
        parents = {place.row.parent for place in places.values() if place.row.parent is not None}
        names: dict[int | None, str] = dict(
            await self._transaction.rows(_SQL["urls_of"], id=numbers(parents), all=self._all)
        )
        return {
            number: _waiting_story(place, hosts[place.row.hid], names.get(place.row.parent))
            for number, place in places.items()
        }

    async def _ended(self, urls: Collection[Named]) -> dict[int, Story]:
        if not urls:
            return {}
        shards = numbers(self._transaction.shards.of(url.hid) for url in urls)
        rows = await self._transaction.rows(
            _SQL["outcomes"], shard=shards, id=numbers(url.number for url in urls), all=self._all
        )
        hosts = await self._hosts({url.hid for url in urls})
        stories: dict[int, Story] = {}
        for row in rows:
            waited, end = Waiting._make(row[:_WAITING]), Ending._make(row[_WAITING:_ENDING])
            parent, copy_of, file = row[_ENDING:]
            stories[waited.id] = told(waited, end, (parent, hosts[waited.hid].name), copy_of, file)
        return stories

    async def _in_order(self, urls: Sequence[Named]) -> list[Story]:
        ended = await self._ended(urls)
        return [ended[url.number] for url in urls if url.number in ended]

    async def _hosts(self, hids: Collection[int]) -> dict[int, _HostNow]:
        if not hids:
            return {}
        shards = numbers(map(self._transaction.shards.of, hids))
        rows = await self._transaction.rows(_SQL["hosts_of"], shard=shards, hid=numbers(hids))
        return {hid: _HostNow(name, next_at) for hid, name, next_at in rows}


def _waiting_story(place: Place, host: _HostNow, parent: str | None) -> Story:
    end = Ending(UrlState.LEASED if place.leased else UrlState.QUEUED, 0)
    story = told(place.row, end, (parent, host.name))
    return replace(story, due=None if place.leased else max(host.next_at, place.due_at or 0))
