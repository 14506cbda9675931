"""Visits beyond the first: what is known of a page that is asked for again, and when it is to be asked for next."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from crawlspace.states import UrlState
from crawlspace.types.pointers import Pointer


class Again(Struct, frozen=True):
    """That a URL is to be visited again, and whether the visit that ended found something new."""

    interval_ms: int | None
    """From the end of this visit to the next; None: there is none."""
    changed: bool | None = None
    """None: there was nothing to compare with, or it could not be seen."""
    content: bytes | None = None
    """By what the next visit tells whether the page has changed; None: by its bytes alone."""


class Before(Struct, frozen=True):
    """What the last visits of a URL found, for the one that comes next."""

    url: str
    """What was requested when it was last seen well."""
    at: int
    """When that was."""
    status: int | None = None
    digest: bytes | None = None
    content: bytes | None = None
    etag: str | None = None
    last_modified: str | None = None
    target: str | None = None
    """Where it redirected to."""
    interval_ms: int | None = None
    """How long it was left alone."""
    misses: tuple[str, ...] = ()
    """Classes of the visits that failed since, the oldest first."""


class Round(Struct, frozen=True):
    """How one visit of a URL ended, a later one having followed."""

    generation: int
    state: UrlState
    at: int
    url: str
    status: int | None = None
    reason: str | None = None
    changed: bool | None = None
    pointer: Pointer | None = None
    interval_ms: int | None = None


class Plan(NamedTuple):
    """How URLs that ended without a plan are given their next visit, in milliseconds."""

    first: int
    """The interval of those that have none."""
    shortest: int
    longest: int


class GenerationFigures(Struct, frozen=True):
    """One generation in numbers: `begun` is `waiting` and all of `ended` together."""

    generation: int
    begun: int
    """URLs that came to it."""
    waiting: int
    """Those whose visit has not ended."""
    ended: dict[UrlState, int]
    """How the visits ended, also of URLs that have gone on to the next generation."""
    changed: int = 0
    unchanged: int = 0
