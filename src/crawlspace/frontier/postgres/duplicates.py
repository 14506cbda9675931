"""Pages that say the same, as a shared store has them at one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from crawlspace.frontier.alike import Copy, Groups, copy_of, open_counts
from crawlspace.frontier.postgres.looks import Look, look
from crawlspace.frontier.postgres.place import Place
from crawlspace.frontier.postgres.sessions import queries

_SQL = queries("duplicates.sql")


@contextmanager
def open_groups(place: Place, workers: Sequence[str], form: Callable[[str], str]) -> Iterator[Groups]:
    """The store at a place as it is now, looked at by the directory of these workers; raises `StoreError`.

    `form` gives the canonical form of a URL.
    """
    with look(place, "crawlspace duplicates") as found, open_counts() as counts:
        yield Groups(_Pages(found, list(workers)), counts, form)


class _Pages:
    """One look at a store; see `frontier.alike.Pages`."""

    def __init__(self, found: Look, workers: list[str]) -> None:
        self._look = found
        self._workers = workers

    def members(self, group: int | None = None) -> Iterator[Copy]:
        return map(copy_of, self._look.stream(_SQL["members"], grp=group))

    def members_by_text(self) -> Iterator[Copy]:
        return map(copy_of, self._look.stream(_SQL["members_by_text"]))

    def pages(self) -> Iterator[Copy]:
        return map(copy_of, self._look.stream(_SQL["pages"]))

    def page(self, number: int) -> Copy:
        return copy_of(self._look.rows(_SQL["page"], id=number)[0])

    def groups_of(self, numbers: Sequence[int]) -> dict[int, tuple[int | None, bytes]]:
        rows = self._look.rows(_SQL["groups_of"], id=list(numbers))
        return {number: (group, text) for number, group, text in rows}

    def targets(self) -> Iterator[str]:
        return (target for (target,) in self._look.stream(_SQL["targets"]))

    def owner(self, file: str) -> str | None:
        return self._look.owner(file, self._workers)
