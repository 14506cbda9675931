"""What a worker gets: a host, its clock, and a few of its URLs."""

from __future__ import annotations

from msgspec import Struct

from crawlspace.types.identity import RequestSpec
from crawlspace.types.links import Relation
from crawlspace.types.revisits import Before


class Attempt(Struct, frozen=True):
    """One request for a URL that did not settle it."""

    at: int
    error: str
    """Class of what happened, such as `http_503` or `connect_timeout`."""
    status: int | None = None


class QueuedUrl(Struct, frozen=True):
    """A URL as a worker gets it."""

    id: int
    """Its number in this crawl, in order of arrival; stays with it for ever."""
    key: bytes
    url: str
    """The fetch URL."""
    front_class: int
    depth: int
    hops: int = 0
    attempts: int = 0
    parent: int | None = None
    relation: Relation = Relation.HYPERLINK
    found_at: int = 0
    label: str | None = None
    meta: str | None = None
    request: RequestSpec | None = None
    history: tuple[Attempt, ...] = ()
    suspect: int = 0
    """How often a lease that held this URL was lost."""
    generation: int = 0
    before: Before | None = None
    """What earlier visits found; None at the first."""
    routes: tuple[str, ...] = ()
    """The routes it was sent on because it was blocked, in order; it goes by the last. Empty: by plain HTTP."""

    @property
    def route(self) -> str:
        """The route it goes by; empty for plain HTTP."""
        return self.routes[-1] if self.routes else ""


class Pace(Struct, frozen=True):
    """One host's clock, as it is stored. `policy.pace` alone computes a new one."""

    next_at: int = 0
    """No request starts before this time."""
    delay_ms: int = 1000
    """From start to start, as it stands now."""
    crawl_delay_ms: int | None = None
    """What robots.txt asks for, already capped."""
    failures: int = 0
    """Requests in a row that never got an answer."""
    slowed: int = 0
    """Answers in a row that asked us to slow down."""
    latency_ms: int = 0
    """How long answers take, smoothed; 0 before the first."""


class LeasedHost(Struct, frozen=True):
    """A host as its holder sees it."""

    hid: int
    name: str
    pace: Pace
    fetched: int = 0
    """Requests settled so far: what budgets count."""
    group: str | None = None
    """The pace group whose turn it has; None when it has none, or its address must be known for that."""
    address: str | None = None
    """Where its name leads to, as far as that was told."""
    traps: frozenset[str] = frozenset()
    """Shapes of addresses that bring nothing new any more: links to them are refused."""


class Lease(Struct, frozen=True):
    """The exclusive, expiring right to a host and to a few of its URLs."""

    token: int
    host: LeasedHost
    urls: tuple[QueuedUrl, ...]
    until: int


class Wish(Struct, frozen=True):
    """What a worker asks `lease` for."""

    worker: int
    hosts: int
    urls_per_host: int
    ttl_ms: int
    visit_ms: int
    """A host gets no more URLs than fit into this time at its delay (always one)."""
    pages: int | None = None
    """Requests that the whole crawl may make, whoever makes them: those that were settled and those that leased URLs
    stand for are together never more. None: there is no such limit."""
    lone: int | None = None
    """Of these hosts, so many at most that have no pace group: what is left of the worker's part where several share
    hosts out. A group's turns belong to one worker, so that its hosts are nobody's part. None: no such limit."""


class Crew(Struct, frozen=True):
    """The workers of a crawl that take hosts at this moment, as one of them sees them."""

    others: tuple[int, ...]
    """How many hosts each of the others visits at once at most."""
    hosts: int
    """Hosts without a pace group that one of them holds, this worker included, and free ones that are due soon."""
    free: int
    """Those that are free and due now."""
