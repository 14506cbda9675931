"""What a frontier knows of the content of pages: verdicts, groups, shapes of addresses, and what pages brought."""

from __future__ import annotations

from enum import IntEnum, unique
from typing import NamedTuple

from msgspec import Struct

from crawlspace.types.settlements import Fingerprints


@unique
class Verdict(IntEnum):
    """What a page is to those that were done before it."""

    FIRST = 0
    EXACT = 1
    """It has the text of another, in the same language."""
    NEAR = 2
    """Its text differs from another's in few words, and in nothing significant."""
    SHORT = 3
    """It says too little to be called a copy of anything."""


class Copied(NamedTuple):
    """A page that was read and not settled yet: need its links be followed?"""

    id: int
    hid: int
    depth: int
    fingerprints: Fingerprints


class PageContent(Struct, frozen=True):
    """What a page that is done is known by, and what it is to others."""

    id: int
    text: bytes
    """The first half of the SHA-256 of its text."""
    length: int
    """Characters of its text."""
    simhash: int | None
    kin: int | None
    language: str
    verdict: Verdict
    copy_of: int | None = None
    """The page that it is a copy of: the first with its text, or the nearest of those before it."""
    group: int | None = None
    """The first page of its group; None when it has none."""
    stopped_by: int | None = None
    """The page on whose account its links were not followed."""
    sign: str | None = None
    """What it says of itself: `not_found`, `empty_result` or `error`."""


class ShapeFigures(Struct, frozen=True):
    """The pages of one host whose addresses have one shape."""

    host: str
    shape: str
    pages: int
    new: int
    """Pages that said more than their own address, and what none of the shape had said lately."""
    exact: int
    near: int
    run: int
    """Pages in a row that said nothing new and led only to more of the shape."""
    latest: int | None
    """The last page of that run."""


class Yield(Struct, frozen=True):
    """What the pages of an hour brought."""

    hour: int
    """When it began, ms since 1970 UTC."""
    pages: int
    copies: int
    """Pages whose bytes another URL had first."""
    exact: int
    """Pages whose text another URL had first, those with the same bytes among them."""
    near: int
    links: int = 0
    """URLs that these pages named, repeats too; of a page that is visited again, those of its first visit alone."""
    known: int = 0
    """Those of them that were known already."""

    @property
    def new(self) -> int:
        """Pages that said something new."""
        return max(0, self.pages - max(self.copies, self.exact) - self.near)


class Probe(Struct, frozen=True):
    """A host's answer to a path that nobody ever linked to, as pages are compared with it."""

    at: int
    status: int
    digest: bytes
    """SHA-256 of its text, its own address left out; empty when it is no page that could be taken for one."""
    simhash: int
    length: int
    """Shingles in its text."""
