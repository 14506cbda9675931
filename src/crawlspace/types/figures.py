"""What can be asked of a frontier: totals, dead letters, the story of a URL, a host in numbers."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from crawlspace.states import UrlState
from crawlspace.types.leases import Attempt, Pace
from crawlspace.types.links import Relation
from crawlspace.types.settlements import Evidence


class Counts(Struct, frozen=True):
    """Totals, kept by transactional deltas: the states always add up to `known`."""

    states: Mapping[UrlState, int]
    pages: int = 0
    """URLs done whose answer was a success."""
    fetches: int = 0
    """Requests settled, of any outcome."""
    bytes: int = 0
    """Response bytes on the wire."""
    duplicates: int = 0
    """Pages whose bytes had been stored before under another URL."""
    hosts: int = 0
    """Hosts with at least one URL that was not refused at once."""
    refused_beyond_cap: int = 0
    """Refusals counted only, since their host had too many of that reason."""

    @property
    def known(self) -> int:
        return sum(self.states.values())


class DeadLetter(Struct, frozen=True):
    """A URL that ended badly."""

    id: int
    url: str
    host: str
    error: str
    status: int | None
    detail: str
    attempts: int
    depth: int
    parent: str | None
    """Fetch URL of the page that linked to it."""
    found_at: int
    died_at: int
    history: tuple[Attempt, ...] = ()


class Story(Struct, frozen=True):
    """All that a frontier knows of one URL."""

    id: int
    url: str
    host: str
    state: UrlState
    front_class: int | None
    depth: int
    hops: int
    attempts: int
    parent: str | None
    relation: Relation
    found_at: int
    settled_at: int | None = None
    due: int | None = None
    """Earliest next request, for queued URLs: the later of the URL's own time and its host's."""
    evidence: Evidence | None = None
    reason: str | None = None
    """Refusal reason, or class of the failure."""
    detail: str = ""
    target: str | None = None
    """Where it redirects to."""
    copy_of: str | None = None
    """Fetch URL that had the same bytes first."""
    label: str | None = None
    meta: str | None = None
    history: tuple[Attempt, ...] = ()
    generation: int = 0
    routes: tuple[str, ...] = ()
    """The routes it was sent on because it was blocked, in order."""
    next_visit: int | None = None
    """When it is due again; None: never, or it waits already."""
    interval_ms: int | None = None
    changed: bool | None = None
    """Whether its last visit found something new; None: there was nothing to compare with."""


class RouteFigures(Struct, frozen=True):
    """One route in numbers: requests that were settled, of any outcome."""

    name: str
    """Empty for plain HTTP, of which only what was blocked is counted here."""
    taken: int = 0
    """Requests that were granted out of its budget; 0 for a route without one."""
    requests: int = 0
    pages: int = 0
    """Requests that ended in a page."""
    blocked: int = 0
    """Requests that were blocked, here too."""
    bytes: int = 0
    """Response bytes on the wire."""


class HostFigures(Struct, frozen=True):
    """One host in numbers."""

    name: str
    queued: int
    leased: int
    fetched: int
    done: int
    dead: int
    pace: Pace
    parked: str | None = None
    """Why it is not visited although it has URLs: `host_budget`, `condemned`, `paused` or `blocked`, `group` while it
    waits for its pace group, `address_hosts` where too many hosts have its address."""
    discovered: int = 0
    duplicates: int = 0
    alarm: str | None = None
    address: str | None = None
    """Where its name leads to, as far as that is known."""
    group: str | None = None
    """The pace group whose turn it has or waits for, or had last."""
    group_next_at: int = 0
    """No request to that group starts before this time."""
    exact: int = 0
    """Pages whose text another page had first."""
    near: int = 0
    """Near-duplicates of other pages."""
    links: int = 0
    """URLs that its pages named, repeats too."""
    known: int = 0
    """Those of them that were known already."""
