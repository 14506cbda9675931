"""All URLs of a shared store at one moment, one by one, as `frontier.sqlite.export` gives those of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import merge
from itertools import chain, islice
from operator import itemgetter
from typing import Any, NamedTuple

from crawlspace.errors import UsageError
from crawlspace.frontier.postgres.looks import AT_ONCE, Look, look
from crawlspace.frontier.postgres.place import Place
from crawlspace.frontier.postgres.sessions import Row, queries
from crawlspace.frontier.rounds import captures_of
from crawlspace.frontier.rows import Ending, Waiting
from crawlspace.frontier.tales import told
from crawlspace.states import TERMINAL, UrlState
from crawlspace.types import Captured, Story

_SQL = queries("export.sql")

_WAITING = len(Waiting._fields)
_ENDING = _WAITING + len(Ending._fields)
_NUMBER, _PARENT = Waiting._fields.index("id"), Waiting._fields.index("parent")
_SEGMENT, _COPY_OF = (_WAITING + Ending._fields.index(name) for name in ("segment", "copy_of"))

LEAST_AT_ONCE = 50
"""Rows of one shard that are fetched together, where there are many shards."""


class _Names(NamedTuple):
    """What stands behind numbers."""

    urls: Mapping[int | None, str]
    files: Mapping[int | None, str]


@contextmanager
def open_snapshot(place: Place, workers: Sequence[str]) -> Iterator[Snapshot]:
    """The store at a place as it is now, looked at by the directory of these workers; raises `StoreError`."""
    with look(place, "crawlspace export") as found:
        yield Snapshot(found, list(workers))


class Snapshot:
    """A store at one moment. Made by `open_snapshot`."""

    def __init__(self, found: Look, workers: list[str]) -> None:
        self._look = found
        self._workers = workers

    def stories(self, states: frozenset[UrlState], host: str | None = None) -> Iterator[Story]:
        """The URLs in these states: first those that wait, host by host, then the others by number.

        With `host` those of one host only, by its name; raises `UsageError` when no URL of it is known. `due` is told
        of none.
        """
        hids = None if host is None else self._hids(host)
        shards = self._look.all if hids is None else sorted({self._look.shards.of(hid) for hid in hids})
        if states - TERMINAL:
            for name in ("queued", "delayed"):
                rows = chain.from_iterable(self._streams(name, shards, hids))
                yield from (story for story in self._told(rows, _waiting) if story.state in states)
        ended = [int(state) for state in states & TERMINAL]
        if ended:
            # Shard by shard the server has them in order: it sorts nothing, and the first come at once.
            in_order = merge(*self._streams("ended", shards, hids, states=ended), key=itemgetter(_NUMBER))
            yield from self._told(in_order, _ended)

    def visited_again(self) -> Iterator[Captured]:
        """The captures of URLs that were visited more than once, visit by visit, by number and generation.

        A visit that found the page as it was has no capture of its own: it comes with that of the visit before.
        """
        at_once = max(AT_ONCE // len(self._look.all), LEAST_AT_ONCE)
        streams = [self._look.stream(_SQL["visited_again"], at_once, shard=shard) for shard in self._look.all]
        return captures_of(merge(*streams, key=itemgetter(0, 1)))

    def reach(self) -> dict[str, int]:
        """How far settled captures reach into each file of these workers' archives."""
        return dict(self._look.rows(_SQL["reach"], names=self._workers))

    def others(self) -> list[str]:
        """The workers who have archive files and are none of these, in words."""
        return self._look.others(self._workers)

    def owner(self, file: str) -> str | None:
        """The worker who made an archive file, in words, if it is none of these."""
        return self._look.owner(file, self._workers)

    def _streams(self, name: str, shards: Sequence[int], hids: list[int] | None, **of: Any) -> list[Iterator[Row]]:
        """The rows of each shard; together they wait for no more memory than one would."""
        at_once = max(AT_ONCE // len(shards), LEAST_AT_ONCE)
        return [self._look.stream(_SQL[name], at_once, shard=shard, hids=hids, **of) for shard in shards]

    def _told(self, rows: Iterable[Row], tell: Callable[[Row, _Names], Story]) -> Iterator[Story]:
        """The stories of rows, with the names behind their numbers, which are looked up for many rows together."""
        waiting = iter(rows)
        while some := list(islice(waiting, AT_ONCE)):
            names = self._names(some)
            for row in some:
                yield tell(row, names)

    def _names(self, rows: Sequence[Row]) -> _Names:
        numbers = {row[place] for row in rows for place in (_PARENT, _COPY_OF) if place < len(row)} - {None}
        segments = {row[_SEGMENT] for row in rows if len(row) > _SEGMENT} - {None}
        urls = self._look.rows(_SQL["urls"], id=list(numbers), all=self._look.all) if numbers else ()
        files = self._look.rows(_SQL["files"], id=list(segments)) if segments else ()
        return _Names(dict(urls), dict(files))

    def _hids(self, host: str) -> list[int]:
        found = [hid for (hid,) in self._look.rows(_SQL["host"], name=host)]
        if not found:
            raise UsageError(f"no URL of the host {host!r} is known", hint="hosts are told by: crawlspace hosts DIR")
        return found


def _waiting(row: Row, names: _Names) -> Story:
    waiting = Waiting._make(row[:_WAITING])
    host, leased = row[_WAITING:]
    state = UrlState.LEASED if leased else UrlState.QUEUED
    return told(waiting, Ending(state, 0), (names.urls.get(waiting.parent), host))


def _ended(row: Row, names: _Names) -> Story:
    waiting, end = Waiting._make(row[:_WAITING]), Ending._make(row[_WAITING:_ENDING])
    copy_of, file = names.urls.get(end.copy_of), names.files.get(end.segment)
    return told(waiting, end, (names.urls.get(waiting.parent), row[_ENDING]), copy_of, file)
