"""All URLs of a shared store at one moment, one by one, as `frontier.sqlite.export` gives those of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from crawlspace.errors import UsageError
from crawlspace.frontier.postgres.looks import Look, look
from crawlspace.frontier.postgres.place import Place
from crawlspace.frontier.postgres.sessions import Row, queries
from crawlspace.frontier.rows import Ending, Waiting
from crawlspace.frontier.tales import told
from crawlspace.states import TERMINAL, UrlState
from crawlspace.types import Story

_SQL = queries("export.sql")

_WAITING = len(Waiting._fields)
_ENDING = _WAITING + len(Ending._fields)


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
        of = {"hids": hids, "of_shards": hids and [self._look.shards.of(hid) for hid in hids], "all": self._look.all}
        if states - TERMINAL:
            for name in ("queued", "delayed"):
                waiting = map(_waiting, self._look.stream(_SQL[name], **of))
                yield from (story for story in waiting if story.state in states)
        ended = [int(state) for state in states & TERMINAL]
        if ended:
            yield from map(_ended, self._look.stream(_SQL["ended"], states=ended, **of))

    def reach(self) -> dict[str, int]:
        """How far settled captures reach into each file of these workers' archives."""
        return dict(self._look.rows(_SQL["reach"], names=self._workers))

    def others(self) -> list[str]:
        """The workers who have archive files and are none of these, in words."""
        return self._look.others(self._workers)

    def owner(self, file: str) -> str | None:
        """The worker who made an archive file, in words, if it is none of these."""
        return self._look.owner(file, self._workers)

    def _hids(self, host: str) -> list[int]:
        found = [hid for (hid,) in self._look.rows(_SQL["host"], name=host)]
        if not found:
            raise UsageError(f"no URL of the host {host!r} is known", hint="hosts are told by: crawlspace hosts DIR")
        return found


def _waiting(row: Row) -> Story:
    parent, host, leased = row[_WAITING:]
    state = UrlState.LEASED if leased else UrlState.QUEUED
    return told(Waiting._make(row[:_WAITING]), Ending(state, 0), (parent, host))


def _ended(row: Row) -> Story:
    parent, copy_of, file, host = row[_ENDING:]
    return told(Waiting._make(row[:_WAITING]), Ending._make(row[_WAITING:_ENDING]), (parent, host), copy_of, file)
