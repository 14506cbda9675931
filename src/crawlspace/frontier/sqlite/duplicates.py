"""Groups of pages that say the same, as one store had them at one moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.connection import connect_reading, reading, translated
from crawlspace.frontier.sqlite.schema import require, steps
from crawlspace.types import Pointer, Relation

_SQL = statements(__package__, "duplicates.sql")
_ALL_BITS = (1 << 64) - 1
"""The store's numbers have a sign, numbers of kin have none."""


class Copy(NamedTuple):
    """A page with a text."""

    group: int | None
    """The first page of its group; None when it has none."""
    id: int
    url: str
    host: str
    text: bytes
    """Equal for pages that say the same."""
    kin: int | None
    found_at: int
    in_sitemap: bool
    """It was found in a sitemap first."""
    declared: str | None
    """What it declares as its own address; empty when that is its own."""
    pointer: Pointer | None


class Groups:
    """One look at a store. Made by `open_groups`."""

    def __init__(self, store: sqlite3.Connection, beside: sqlite3.Connection, form: Callable[[str], str]) -> None:
        self._store = store
        self._beside = beside
        self._form = form
        self._counted = self._counted_links = False

    def members(self, group: int | None = None) -> Iterator[Copy]:
        """Members of groups, each group's in order of age; of one group or of all."""
        return map(_copy, self._store.execute(_SQL["members"], {"grp": group}))

    def members_by_text(self) -> Iterator[Copy]:
        """Members of all groups, those of each group that say the same together."""
        return map(_copy, self._store.execute(_SQL["members_by_text"]))

    def pages(self, host: str | None = None) -> Iterator[Copy]:
        """All pages with a text, in order of age; of one host or of all."""
        return map(_copy, self._store.execute(_SQL["pages"], {"host": host}))

    def page(self, number: int) -> Copy:
        """One of these pages."""
        return _copy(self._store.execute(_SQL["page"], (number,)).fetchone())

    def group_of(self, number: int) -> tuple[int | None, bytes] | None:
        """The group and the text of a page; None when it has no text."""
        row = self._store.execute(_SQL["group_of"], (number,)).fetchone()
        return None if row is None else (row[0], row[1])

    def redirects(self, canonical: str) -> int:
        """How many URLs redirect to the page with this canonical URL. The first question reads all redirects."""
        if not self._counted:
            self._count()
        row = self._beside.execute(_SQL["redirects"], (canonical,)).fetchone()
        return 0 if row is None else int(row[0])

    def count_links(self, canonicals: Iterable[str]) -> None:
        """Count links to the pages with these canonical URLs."""
        if not self._counted_links:
            self._beside.execute(_SQL["make_links"])
            self._counted_links = True
        self._beside.executemany(_SQL["count_link"], ((_key(each),) for each in canonicals))

    def links(self, canonical: str) -> int:
        """How many links to a page were counted."""
        row = self._beside.execute(_SQL["links"], (_key(canonical),)).fetchone() if self._counted_links else None
        return 0 if row is None else int(row[0])

    def _count(self) -> None:
        self._beside.execute(_SQL["make_redirects"])
        targets = self._store.execute(_SQL["targets"])
        self._beside.executemany(_SQL["count_redirect"], ((self._form(target),) for (target,) in targets))
        self._counted = True


def _key(canonical: str) -> bytes:
    return blake2b(canonical.encode(), digest_size=12).digest()


def _copy(row: tuple[Any, ...]) -> Copy:
    group, number, url, host, text, kin, found_at, relation, declared, file, offset, length = row
    pointer = None if file is None else Pointer(file, offset, length)
    in_sitemap = relation == Relation.SITEMAP
    unsigned = None if kin is None else kin & _ALL_BITS
    return Copy(group, number, url, host, text, unsigned, found_at, in_sitemap, declared, pointer)


@contextmanager
def open_groups(path: Path, settings: FrontierSettings, form: Callable[[str], str]) -> Iterator[Groups]:
    """A store as it is now, until the end of the context; `form` gives the canonical form of a URL."""
    with translated(str(path)), closing(connect_reading(str(path), settings)) as store:
        require(store, str(path), len(steps()))
        with closing(sqlite3.connect("", isolation_level=None)) as beside, reading(store):
            yield Groups(store, beside, form)
