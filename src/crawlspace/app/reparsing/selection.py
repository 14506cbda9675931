"""Which captures a parser has yet to read: two sorted streams, merged in bounded memory.

One is the crawl's captures as its store has them, the other what the parser has read already, earlier visits and URLs
that have become one with others included. A capture is chosen when the parser has not read it, or an older version of
the parser has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from msgspec import Struct

from crawlspace.parsers import Parser
from crawlspace.parsers.definition import rank_of
from crawlspace.states import UrlState
from crawlspace.types import Captured, Pointer, Story
from crawlspace.urls import origin_of

CAPTURED = frozenset({UrlState.DONE, UrlState.STORED})
"""States whose captures are parsed."""


class Chosen(Struct, frozen=True):
    """What a person chose of the captures."""

    host: str | None = None
    types: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()
    since: int | None = None
    """Fetched at this time, ms since 1970 UTC, or later."""
    until: int | None = None
    """Fetched before this time."""
    condition: str | None = None
    """SQL on the table of captures."""
    again: bool = False
    """Also what this version of the parser has read."""
    failed: bool = False
    """Also what this version of the parser has failed on."""

    @property
    def is_plain(self) -> bool:
        """Whether captures that the store does not point to any more can be judged by it."""
        return not (self.types or self.statuses or self.condition)


class Task(NamedTuple):
    """A capture to parse, and how its page was found."""

    captured: Captured
    label: str | None = None
    meta: str | None = None
    depth: int = 0


class Read(NamedTuple):
    """What the parser has read, as the records have it."""

    id: int
    generation: int
    version: str
    url: str
    file: str
    offset: int
    length: int
    at: int
    error: str | None
    again: bool
    """Whether it is an earlier capture, which a visit of this generation found to hold still."""


class Tally(NamedTuple):
    """What was seen of the captures while choosing."""

    task: Task | None
    why: str = ""
    """Why it is left alone: `current`, `newer` or `not meant`."""


class Choosing(Struct, frozen=True):
    """One choice."""

    parser: Parser
    chosen: Chosen
    wanted: Iterable[int] | None = None
    """Numbers of the URLs that the SQL condition is true of, in order; None without a condition."""
    visits: Iterable[Captured] = ()
    """The captures of URLs that were visited more than once, in order."""

    def run(self, stories: Iterable[Story], read: Iterable[tuple[Any, ...]]) -> Iterator[Tally]:
        """Each capture with its task, or why it has none; both streams are in order of the URLs' numbers."""
        wanted = None if self.wanted is None else _Ahead(self.wanted)
        visits = _Visits(self.visits)
        known = _Groups(Read(*row) for row in read)
        for story in stories:
            for earlier in known.before(story.id):
                yield from self._of_gone(earlier)
            yield from self._of(story, visits.first(story), known.of(story.id), wanted)
        for earlier in known.rest():
            yield from self._of_gone(earlier)

    def _of_gone(self, read: Read) -> Iterator[Tally]:
        if not read.again:
            yield self._earlier(read)

    def _of(self, story: Story, first: Captured | None, read: list[Read], wanted: _Ahead | None) -> Iterator[Tally]:
        """What is to be done about one URL: a capture is read once, however often it was found to hold still."""
        generation = story.generation if first is None else first.generation
        now = next((each for each in read if each.generation == generation), None)
        for each in read:
            if each is not now and not each.again:
                yield self._earlier(each)
        is_wanted = wanted is None or wanted.has(story.id)
        if now is None or not now.again:
            yield self._now(story, first, now, is_wanted)

    def _now(self, story: Story, first: Captured | None, read: Read | None, wanted: bool) -> Tally:
        found = story.evidence
        if found is None or found.pointer is None or not wanted or not self._is_meant(story):
            return Tally(None, "not meant")
        if read is None and not self.parser.match.may_fit(story.url, _host(story.url), found.mime, story.label):
            return Tally(None, "not meant")
        why = self._why_left(read)
        if why:
            return Tally(None, why)
        captured = first or Captured(story.id, story.generation, story.url, found.pointer, found.at)
        return Tally(Task(captured, story.label, story.meta, story.depth))

    def _earlier(self, read: Read) -> Tally:
        """A capture that the store does not point to: of an earlier visit, or of a URL that is another's by now."""
        chosen = self.chosen
        is_meant = chosen.is_plain and self._in_time(read.at) and chosen.host in (None, _host(read.url))
        why = self._why_left(read) if is_meant else "not meant"
        if why:
            return Tally(None, why)
        pointer = Pointer(read.file, read.offset, read.length)
        return Tally(Task(Captured(read.id, read.generation, read.url, pointer, read.at)))

    def _why_left(self, read: Read | None) -> str:
        if read is None or self.chosen.again or (self.chosen.failed and read.error is not None):
            return ""
        if rank_of(read.version) < self.parser.rank:
            return ""
        return "current" if rank_of(read.version) == self.parser.rank else "newer"

    def _is_meant(self, story: Story) -> bool:
        chosen, found = self.chosen, story.evidence
        assert found is not None, "asked of captures only"
        return (
            self._in_time(found.at)
            and (not chosen.types or any(_is_type(found.mime or "", each) for each in chosen.types))
            and (not chosen.statuses or found.status in chosen.statuses)
        )

    def _in_time(self, at: int) -> bool:
        since, until = self.chosen.since, self.chosen.until
        return (since is None or at >= since) and (until is None or at < until)


class _Ahead:
    """A sorted stream of numbers that is asked in order."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = iter(numbers)
        self._next = next(self._numbers, None)

    def has(self, number: int) -> bool:
        while self._next is not None and self._next < number:
            self._next = next(self._numbers, None)
        return self._next == number


class _Visits:
    """Captures of URLs that were visited more than once, asked in order."""

    def __init__(self, visits: Iterable[Captured]) -> None:
        self._groups = groupby(visits, key=itemgetter(0))
        self._next = next(self._groups, None)

    def first(self, story: Story) -> Captured | None:
        """The visit that made the capture which a URL has now, if that is not its last visit."""
        pointer = story.evidence.pointer if story.evidence is not None else None
        while self._next is not None and self._next[0] < story.id:
            self._next = next(self._groups, None)
        if self._next is None or self._next[0] != story.id:
            return None
        return next((each for each in self._next[1] if each.pointer == pointer), None)


class _Groups:
    """What was read, URL by URL."""

    def __init__(self, read: Iterable[Read]) -> None:
        self._groups = ((number, list(group)) for number, group in groupby(read, key=itemgetter(0)))
        self._next = next(self._groups, None)

    def before(self, number: int) -> Iterator[Read]:
        while self._next is not None and self._next[0] < number:
            yield from self._next[1]
            self._next = next(self._groups, None)

    def of(self, number: int) -> list[Read]:
        if self._next is None or self._next[0] != number:
            return []
        found = self._next[1]
        self._next = next(self._groups, None)
        return found

    def rest(self) -> Iterator[Read]:
        while self._next is not None:
            yield from self._next[1]
            self._next = next(self._groups, None)


def _host(url: str) -> str:
    return origin_of(url).partition("://")[2]


def _is_type(mime: str, name: str) -> bool:
    return mime.startswith(name[:-1]) if name.endswith("/*") else mime == name
