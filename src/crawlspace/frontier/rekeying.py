"""What re-keying is for every store: who a URL is under the new rules, who stays of each group, and how far it is.

Who stays, best first: done, stored, redirected, delayed, queued, dead, skipped; of two alike the one that came first.
A delayed URL goes before a queued one, since its tries and its wait are those of the page; both go before dead and
skipped ones, since a page that may still answer is not given up for a spelling that did not. URLs that were merged
before come behind all others: one of them comes back only when nobody else has its key. Last of all is a redirect
that leads to its own group: where it leads to is the page, and a URL that had given way to it is called back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum, unique
from typing import Any, NamedTuple, Protocol

import msgspec

from crawlspace.errors import StoreDamaged
from crawlspace.frontier.rows import Waiting
from crawlspace.states import UrlState
from crawlspace.types import HOST_BYTES, Pointer, QueuedUrl, RequestSpec

UNFINISHED = "rekey"
"""The fact of a store whose re-keying is not over; empty or not there when there is none."""

BATCH = 2_000
"""URLs in one transaction: about a twentieth of a second."""

READY = "ready"
"""The stage in which all URLs are under the new rules, and the store does not say so yet."""
LINKS = "links"
MERGED_LINKS = "links of merged"
DONE = "done"
"""The stages in which archived pages are read again; their work is done by whoever has the archive."""

EXAMPLES = 10

Cursor = tuple[int | str, ...]
"""Where a walk stands, in the order of what it walks over; bytes as hexadecimal digits."""

_decode_request = msgspec.msgpack.Decoder(RequestSpec).decode


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a re-keying is."""

    rules: str
    """Identifier of the new rules."""
    parts: bool
    """Pages may come apart: archived pages are read again in the end."""
    urls: int
    """URLs known when it began."""
    stage: str
    after: Cursor
    planned: int = 0
    moved: int = 0
    """URLs looked at in the stage `move`."""
    changed: int = 0
    """URLs whose key is another now."""
    merged: int = 0
    """URLs that became one with another."""
    restored: int = 0
    """URLs that were merged before and stand for themselves again."""
    pages: int = 0
    """Archived pages read again."""
    unreadable: int = 0
    """Archived pages that could not be read."""
    found: int = 0
    """URLs that those pages made known."""

    def onwards(self, stages: Sequence[tuple[str, Cursor]], reached: Cursor | None) -> Progress:
        """The same stage from there, or the beginning of the next one; `stages` are all, with where each begins."""
        if reached is not None:
            return msgspec.structs.replace(self, after=reached)
        names = [name for name, _ in stages]
        stage, after = stages[names.index(self.stage) + 1]
        return msgspec.structs.replace(self, stage=stage, after=after)


def encoded(progress: Progress) -> str:
    """The fact of a store that stands here."""
    return msgspec.json.encode(progress).decode()


def decoded(fact: str | None) -> Progress | None:
    """How far a store is; None when no re-keying is under way. Raises `StoreDamaged`."""
    if not fact:
        return None
    try:
        return msgspec.json.decode(fact, type=Progress)
    except msgspec.DecodeError as error:
        raise StoreDamaged(f"how far the re-keying is cannot be read: {error}") from error


# -- the plan -----------------------------------------------------------------------------------------------


@unique
class Place(IntEnum):
    """Where a URL's row lies."""

    OUTCOME = 0
    DELAYED = 1
    QUEUE = 2
    MERGED = 3


class Named(NamedTuple):
    """Who a URL is under the new rules."""

    key: bytes
    host: str
    seed: bool
    """The host is a seed's own."""


class Naming(Protocol):
    """The new rules, as a store needs them."""

    def name(self, url: str, request: RequestSpec | None) -> Named | None:
        """Who a stored URL is; None when it is no URL any more, which keeps its key then."""
        ...

    def heir(self, host: str) -> Named:
        """The host that has this host's name under the new rules; of the key only the host bits mean something."""
        ...


class Planned(NamedTuple):
    """A row of the plan."""

    key: bytes
    rank: int
    id: int
    place: int
    hid: int
    """Its host of before."""
    tail: bytes

    @property
    def old_key(self) -> bytes:
        return self.hid.to_bytes(HOST_BYTES, "big") + self.tail

    @property
    def is_live(self) -> bool:
        return self.place != Place.MERGED

    @property
    def stays(self) -> bool:
        """Whether nothing needs to be done where it is first in its group."""
        return self.is_live and self.key == self.old_key


class Walked(NamedTuple):
    """What a walk reads of a URL, before the columns of its cursor."""

    id: int
    hid: int
    tail: bytes
    url: str
    request: bytes | None
    state: int
    target: str | None


WALKED = len(Walked._fields)

_RANKS = {UrlState.DONE: 0, UrlState.STORED: 1, UrlState.REDIRECTED: 2, UrlState.DEAD: 5, UrlState.SKIPPED: 6}
_DELAYED = 3
_QUEUED = 4
_LEADS_HOME = 27
_BEHIND = 10
"""Added to the rank of what was merged before. The units tell the state, whatever is added."""

_STATES = {rank: state for state, rank in ((UrlState.DONE, 0), (UrlState.STORED, 1), (UrlState.REDIRECTED, 2))}
_STATES |= {3: UrlState.QUEUED, 4: UrlState.QUEUED, 5: UrlState.DEAD, 6: UrlState.SKIPPED, 7: UrlState.REDIRECTED}


def planned(naming: Naming, place: Place, row: Walked) -> Planned:
    """A URL under its new key, and how good it is to stay."""
    named = naming.name(row.url, request_of(row.request))
    key = row.hid.to_bytes(HOST_BYTES, "big") + row.tail if named is None else named.key
    return Planned(key, _rank(naming, place, row, key), row.id, int(place), row.hid, row.tail)


def _rank(naming: Naming, place: Place, row: Walked, key: bytes) -> int:
    """Who stays of one group: the lowest."""
    if place is Place.DELAYED:
        return _DELAYED
    if place is Place.QUEUE:
        return _QUEUED
    state = UrlState(row.state)
    own = _RANKS.get(state, _QUEUED)
    if state is UrlState.REDIRECTED and row.target is not None:
        target = naming.name(row.target, None)
        own = _LEADS_HOME if target is not None and target.key == key else own
    return own if place is Place.OUTCOME else own + _BEHIND


def state_of(row: Planned) -> UrlState:
    """The state of a URL of the plan."""
    return _STATES[row.rank % 10]


def request_of(column: object) -> RequestSpec | None:
    """How a stored URL is asked for; None for a plain GET."""
    return _decode_request(column) if isinstance(column, bytes) else None


# -- moving -------------------------------------------------------------------------------------------------


class Facts(NamedTuple):
    """What the counters must know of a URL."""

    state: int
    reason: str | None = None
    token: int | None = None
    attempts: int = 0
    status: int | None = None
    is_copy: bool | int = 0
    delayed: bool = False

    @property
    def was_met(self) -> bool:
        """Whether it was ever queued, as a URL that was refused at once was not."""
        return self.state != UrlState.SKIPPED or self.token is not None

    @property
    def is_page(self) -> bool:
        return self.state == UrlState.DONE and self.status is not None and 200 <= self.status < 300


def better_of(stays: Waiting, goes: Waiting) -> Waiting:
    """The row that stays, with the better class and way of both, and the caution that either of them asks for."""
    better = stays._replace(
        front_class=min(stays.front_class, goes.front_class), suspect=max(stays.suspect, goes.suspect)
    )
    if goes.depth < stays.depth:
        better = better._replace(depth=goes.depth, hops=goes.hops, parent=goes.parent, relation=goes.relation)
    return better


# -- what is told -------------------------------------------------------------------------------------------


class Merge(NamedTuple):
    """Two URLs that become one."""

    goes: str
    state: UrlState
    stays: str
    stays_state: UrlState


@dataclass(slots=True)
class Forecast:
    """What would change."""

    urls: int = 0
    changed: int = 0
    merged: int = 0
    restored: int = 0
    merges: list[Merge] = field(default_factory=list)
    """Some of them."""
    changes: list[str] = field(default_factory=list)
    """Addresses of some URLs whose key changes without a merge."""


class Source(NamedTuple):
    """A URL whose answer led to others."""

    cursor: int
    url: QueuedUrl
    state: UrlState
    target: str | None
    """Where it redirects to."""
    pointer: Pointer | None


class Merged(NamedTuple):
    """A URL that was merged into another, as it was then."""

    id: int
    url: str
    state: UrlState
    reason: str | None
    at: int | None
    status: int | None
    pointer: Pointer | None
    rules: str
    """Identifier of the rules under which the two became one."""


def source(cursor: int, number: int, key: bytes, rest: Sequence[Any]) -> Source:
    """A source from its columns: address, class, depth, hops, label, meta, state, target, file, offset, length."""
    url, front_class, depth, hops, label, meta, state, target, file, offset, length = rest
    queued = QueuedUrl(number, key, url, front_class, depth, hops, label=label, meta=meta)
    return Source(cursor, queued, UrlState(state), target, _pointer(file, offset, length))


def merged(row: Sequence[Any]) -> Merged:
    """From its columns: number, address, state, reason, time, status, file, offset, length, rules."""
    number, url, state, reason, at, status, file, offset, length, rules = row
    return Merged(number, url, UrlState(state), reason, at, status, _pointer(file, offset, length), rules)


def _pointer(file: str | None, offset: int | None, length: int | None) -> Pointer | None:
    return None if file is None else Pointer(file, offset or 0, length or 0)


class Reading(Protocol):
    """A store at one moment, as a dry run and the reading of archived pages look at it."""

    def walk(self, place: Place, after: Cursor | None, limit: int) -> list[tuple[Any, ...]]:
        """The next rows of a table: the columns of `Walked`, then those of the cursor. None: from the beginning."""
        ...

    def url(self, row: Planned) -> str:
        """The address of a URL of the plan."""
        ...

    def has_merged(self) -> bool:
        """Whether the store was ever re-keyed."""
        ...

    def has_followed(self) -> bool:
        """Whether the crawl ever followed a link; one of a list alone never does."""
        ...

    def sources(self, after: int, limit: int) -> list[Source]:
        """The next URLs whose answer led to others."""
        ...

    def merged_sources(self, after: int, limit: int) -> list[Source]:
        """The same of URLs that were merged, in the name and without the key of the URL that stayed."""
        ...
