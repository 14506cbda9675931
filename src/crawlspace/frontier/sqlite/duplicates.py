"""Pages that say the same, as the embedded store has them at one moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from crawlspace.frontier.alike import Copy, Groups, copy_of, open_counts
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.connection import connect_reading, reading, translated
from crawlspace.frontier.sqlite.schema import require, steps

_SQL = statements(__package__, "duplicates.sql")


@contextmanager
def open_groups(path: Path, settings: FrontierSettings, form: Callable[[str], str]) -> Iterator[Groups]:
    """A store as it is now, until the end of the context; `form` gives the canonical form of a URL."""
    with translated(str(path)), closing(connect_reading(str(path), settings)) as store:
        require(store, str(path), len(steps()))
        with open_counts() as counts, reading(store):
            yield Groups(_Pages(store), counts, form)


class _Pages:
    """One look at a store; see `frontier.alike.Pages`."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store

    def members(self, group: int | None = None) -> Iterator[Copy]:
        return self._copies("members", {"grp": group})

    def members_by_text(self) -> Iterator[Copy]:
        return self._copies("members_by_text", {})

    def pages(self) -> Iterator[Copy]:
        return self._copies("pages", {})

    def page(self, number: int) -> Copy:
        return next(self._copies("page", {"id": number}))

    def groups_of(self, numbers: Sequence[int]) -> dict[int, tuple[int | None, bytes]]:
        rows = self._store.execute(_SQL["groups_of"], (msgspec.json.encode(numbers).decode(),))
        return {number: (group, text) for number, group, text in rows}

    def targets(self) -> Iterator[str]:
        return (target for (target,) in self._store.execute(_SQL["targets"]))

    def owner(self, file: str) -> str | None:  # noqa: ARG002 -- there is no other directory
        return None

    def _copies(self, name: str, parameters: dict[str, Any]) -> Iterator[Copy]:
        return map(copy_of, self._store.execute(_SQL[name], parameters))
