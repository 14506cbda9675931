"""URLs' rows: where they are, and the moves between queue, delayed and outcome, a batch at a time.

The caller holds the hosts of all URLs it moves; counters are its caller's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from crawlspace.frontier.bounds import NO_TOKEN
from crawlspace.frontier.postgres.columns import blobs, numbers, texts
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.rows import Ending, Waiting, outcome
from crawlspace.states import UrlState

_SQL = queries("urls.sql")

_WAITING = ("hid", "class", *Waiting._fields[2:])
_OUTCOME = (
    *("id", "hid", "class", "tail", "url", "depth", "hops", "attempts", "parent", "relation", "found_at"),
    *("label", "meta", "request", "history", "generation", "route"),
    *Ending._fields,
)
"""In the order of `rows.outcome`."""

_BLOBS = frozenset({"tail", "request", "digest", "content"})
_TEXTS = frozenset(
    (
        "url",
        "relation",
        "label",
        "meta",
        "history",
        "reason",
        "detail",
        "mime",
        "etag",
        "last_modified",
        "target",
        "route",
    )
)


_COUNTS = frozenset({"attempts", "suspect", "generation"})
"""What the statements read as 0 where there is nothing."""
NOTHING = "{}"
"""A column that is empty in all rows: lists that are shorter than others are filled up with NULL."""


class Named(NamedTuple):
    """A URL by its host and its number."""

    hid: int
    number: int


class Place(NamedTuple):
    """Where a waiting URL lies; `due_at` is None in the queue."""

    row: Waiting
    due_at: int | None
    leased: bool
    """Held by a live lease that has not settled it."""


class Ended(NamedTuple):
    """The end of a URL, in short."""

    state: UrlState
    reason: str | None
    token: int | None
    row: Waiting
    """As it would queue again."""


class Taking(NamedTuple):
    """A queued URL that a lease wants to settle."""

    hid: int
    front_class: int
    number: int
    token: int


class Urls:
    """Batches of rows."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._shards = transaction.shards

    async def waiting(self, urls: Collection[Named]) -> dict[int, Place]:
        """Those of the URLs that wait, by number."""
        if not urls:
            return {}
        rows = await self._transaction.rows(_SQL["waiting"], **self._named(urls))
        return {row[2]: Place(Waiting._make(row[:-2]), row[-2], row[-1]) for row in rows}

    async def ended(self, urls: Collection[Named]) -> dict[int, Ended]:
        """Those of the URLs that have an outcome, by number."""
        if not urls:
            return {}
        rows = await self._transaction.rows(_SQL["ended"], **self._named(urls))
        return {row[5]: Ended(UrlState(row[0]), row[1], row[2], Waiting._make(row[3:])) for row in rows}

    async def enqueue(self, rows: Sequence[Waiting]) -> None:
        if rows:
            ordered = sorted(rows, key=lambda row: row[:3])
            await self._transaction.run(_SQL["enqueue"], **self._columns(_WAITING, ordered))

    async def delay(self, rows: Sequence[tuple[Waiting, int]]) -> None:
        """Each row with the time it waits for."""
        if rows:
            columns = self._columns(_WAITING, [row for row, _ in rows])
            await self._transaction.run(_SQL["delay"], due_at=numbers(due_at for _, due_at in rows), **columns)

    async def end(self, ended: Sequence[tuple[Waiting, Ending]]) -> None:
        if ended:
            rows = [outcome(row, ending) for row, ending in sorted(ended, key=lambda one: one[0].id)]
            await self._transaction.run(_SQL["end"], **self._columns(_OUTCOME, rows))

    async def take(self, wanted: Collection[Taking]) -> dict[int, Waiting]:
        """Take URLs out of the queue, by number; those that are not there any more are missing."""
        if not wanted:
            return {}
        hids, classes, ids, tokens = zip(*sorted(wanted), strict=True)
        rows = await self._transaction.rows(
            _SQL["take"],
            shard=numbers(self._shards.each(hids)),
            hid=numbers(hids),
            token=numbers(tokens),
            id=numbers(ids),
            **{"class": numbers(classes)},
        )
        return {row[2]: Waiting._make(row) for row in rows}

    async def remove(self, places: Collection[Place]) -> None:
        """Take waiting URLs away from where they lie."""
        queued = [place.row for place in places if place.due_at is None]
        await self.take([Taking(row.hid, row.front_class, row.id, NO_TOKEN) for row in queued])
        delayed = [Named(place.row.hid, place.row.id) for place in places if place.due_at is not None]
        if delayed:
            await self._transaction.run(_SQL["undelay"], **self._named(delayed))

    async def better(self, changed: Collection[tuple[Place, Waiting]]) -> None:
        """Write waiting URLs anew where they lie."""
        queued = [(place.row, row) for place, row in changed if place.due_at is None]
        delayed = [(place.row, row) for place, row in changed if place.due_at is not None]
        for name, pairs in (("better_queued", queued), ("better_delayed", delayed)):
            if pairs:
                await self._transaction.run(_SQL[name], **self._bettered(pairs))

    async def reopen(self, urls: Collection[Named], state: UrlState) -> dict[int, Waiting]:
        """Undo outcomes in this state: the rows to queue again, with no tries used, by number."""
        if not urls:
            return {}
        rows = await self._transaction.rows(_SQL["reopen"], state=int(state), **self._named(urls))
        return {row[2]: Waiting._make(row) for row in rows}

    async def tokens(self, n: int) -> list[int]:
        """The next tokens of leases, each above all that were given to the same host."""
        return [token for (token,) in await self._transaction.rows(_SQL["tokens"], n=n)]

    # -- parameters -----------------------------------------------------------------------------------------

    def _named(self, urls: Collection[Named]) -> dict[str, Any]:
        hids, ids = zip(*sorted(urls), strict=True)
        return {"shard": numbers(self._shards.each(hids)), "hid": numbers(hids), "id": numbers(ids)}

    def _columns(self, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        return {
            "shard": numbers(self._shards.each(columns["hid"])),
            **{name: column(name, values) for name, values in columns.items()},
        }

    def _bettered(self, pairs: Sequence[tuple[Waiting, Waiting]]) -> dict[str, Any]:
        columns = self._columns(_WAITING, [new for _, new in pairs])
        columns["new_class"] = columns["class"]
        columns["class"] = numbers(old.front_class for old, _ in pairs)
        return columns


def column(name: str, values: Sequence[Any]) -> str:
    """A column of waiting or ended URLs, by its name."""
    if values.count(0 if name in _COUNTS else None) == len(values):
        return NOTHING
    if name in _TEXTS:
        return texts(values)
    return blobs(values) if name in _BLOBS else numbers(values)
