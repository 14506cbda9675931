"""Groups of pages that say the same, as one store had them at one moment: what is the same for all stores."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

from crawlspace.frontier.sql import statements
from crawlspace.types import Pointer, Relation

_SQL = statements(__package__, "alike.sql")
_ALL_BITS = (1 << 64) - 1
"""The stores' numbers have a sign, numbers of kin have none."""


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


class Pages(Protocol):
    """Pages with a text, of a store at one moment."""

    def members(self, group: int | None = None) -> Iterator[Copy]:
        """Members of groups, each group's in order of age; of one group or of all."""
        ...

    def members_by_text(self) -> Iterator[Copy]:
        """Members of all groups, those of each group that say the same together."""
        ...

    def pages(self) -> Iterator[Copy]:
        """All of them, in order of age."""
        ...

    def page(self, number: int) -> Copy:
        """One of them."""
        ...

    def groups_of(self, numbers: Sequence[int]) -> dict[int, tuple[int | None, bytes]]:
        """Group and text of those of these that have a text."""
        ...

    def targets(self) -> Iterator[str]:
        """Where redirects lead to."""
        ...

    def owner(self, file: str) -> str | None:
        """The other worker who made an archive file, in words; None for one of the asking directory."""
        ...


class Groups:
    """One look at a store, with what is counted beside it."""

    def __init__(self, pages: Pages, counts: sqlite3.Connection, form: Callable[[str], str]) -> None:
        self.pages = pages
        self._counts = counts
        self._form = form
        self._counted = self._counted_links = False

    def redirects(self, canonical: str) -> int:
        """How many URLs redirect to the page with this canonical URL. The first question reads all redirects."""
        if not self._counted:
            self._count()
        row = self._counts.execute(_SQL["redirects"], (canonical,)).fetchone()
        return 0 if row is None else int(row[0])

    def count_links(self, canonicals: Iterable[str]) -> None:
        """Count links to the pages with these canonical URLs."""
        if not self._counted_links:
            self._counts.execute(_SQL["make_links"])
            self._counted_links = True
        self._counts.executemany(_SQL["count_link"], ((_key(each),) for each in canonicals))

    def links(self, canonical: str) -> int:
        """How many links to a page were counted."""
        row = self._counts.execute(_SQL["links"], (_key(canonical),)).fetchone() if self._counted_links else None
        return 0 if row is None else int(row[0])

    def _count(self) -> None:
        self._counts.execute(_SQL["make_redirects"])
        self._counts.executemany(_SQL["count_redirect"], ((self._form(target),) for target in self.pages.targets()))
        self._counted = True


@contextmanager
def open_counts() -> Iterator[sqlite3.Connection]:
    """A nameless database for counts, which lies on disk when it is large."""
    with closing(sqlite3.connect("", isolation_level=None)) as counts:
        yield counts


def copy_of(row: tuple[Any, ...]) -> Copy:
    """A page made of its row."""
    group, number, url, host, text, kin, found_at, relation, declared, file, offset, length = row
    pointer = None if file is None else Pointer(file, offset, length)
    in_sitemap = relation == Relation.SITEMAP
    unsigned = None if kin is None else kin & _ALL_BITS
    return Copy(group, number, url, host, text, unsigned, found_at, in_sitemap, declared, pointer)


def _key(canonical: str) -> bytes:
    return blake2b(canonical.encode(), digest_size=12).digest()
