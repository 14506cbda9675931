"""The values that travel between the parts. All are frozen; none knows how it is stored or fetched.

What is made once per link is a named tuple, what is made once per page a slotted dataclass: a page has
hundreds of links, and most of them are repeats that are dropped as soon as they have a key.
Times are integer milliseconds since 1970 UTC unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum, unique
from typing import NamedTuple

from crawlspace.states import UrlState

FINGERPRINT_BYTES = 16
HOST_BYTES = 6


def host_id(fingerprint: bytes) -> int:
    """The 48 host bits in front of a fingerprint: the number of its host."""
    return int.from_bytes(fingerprint[:HOST_BYTES], "big")


# -- identity -----------------------------------------------------------------------------------------------


class Address(NamedTuple):
    """One URL and who it is: what is requested, what is compared, and under which key."""

    fetch_url: str
    """As found: resolved by the WHATWG rules, fragment and user information dropped."""
    canonical: str
    """The one spelling under the crawl's URL rules; compared, never requested."""
    host: str
    """Host name after the host rules, with `:port` unless it is http's 80 or https's 443: the unit of pace."""
    key: bytes
    """Fingerprint: 48 bits of the host, then 80 bits of the canonical URL."""


class Unusable(NamedTuple):
    """A link that is no address we could fetch, and why."""

    text: str
    reason: str
    """`scheme`, `host`, `syntax`, `too_long` or `empty`."""


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """How a URL is asked for when it is not a plain GET. Method and body are part of the identity."""

    method: str = "GET"
    body: bytes = b""
    content_type: str = ""


# -- links --------------------------------------------------------------------------------------------------


@unique
class Relation(StrEnum):
    """How a link was found. `styled`: in a requisite's style sheet; `hint`: in a form or attribute, by a setting."""

    SEED = "seed"
    HYPERLINK = "hyperlink"
    FRAME = "frame"
    REFRESH = "refresh"
    REDIRECT = "redirect"
    SITEMAP = "sitemap"
    SITEMAP_FILE = "sitemap_file"
    """A sitemap itself: named by robots.txt or an index, or at a well-known place; its depth counts files."""
    CANONICAL = "canonical"
    ALTERNATE = "alternate"
    REQUISITE = "requisite"
    STYLED = "styled"
    HINT = "hint"
    USER = "user"
    """Added by a handler or a hook."""


class Link(NamedTuple):
    """A link as it stands in a page: text, not yet resolved."""

    url: str
    relation: Relation = Relation.HYPERLINK
    nofollow: bool = False


@unique
class Reason(StrEnum):
    """Why a URL is refused. The words are stored and shown, and never change their meaning."""

    OUT_OF_SCOPE = "out_of_scope"
    EXCLUDED = "excluded"
    NOT_INCLUDED = "not_included"
    DEPTH = "depth"
    PATH_DEPTH = "path_depth"
    PARAM_LIMIT = "param_limit"
    PATH_REPEAT = "path_repeat"
    URL_LENGTH = "url_length"
    REDIRECT_CHAIN = "redirect_chain"
    HOST_BUDGET = "host_budget"
    ROBOTS = "robots"
    NOFOLLOW = "nofollow"
    BLOCKED_HOST = "blocked_host"
    DROPPED = "dropped"


PATH_DEPENDENT = frozenset({Reason.DEPTH, Reason.NOFOLLOW, Reason.HOST_BUDGET, Reason.REDIRECT_CHAIN})
"""Refusals that say something of the way to a URL, not of the URL: a better way undoes them."""


class Claim(NamedTuple):
    """A link that was read, resolved and judged, on its way in. `lifts` is a refusal that no longer holds."""

    address: Address
    depth: int = 0
    """Links followed from a seed."""
    hops: int = 0
    """Redirects in a row that led here."""
    front_class: int = 5
    """0 leaves first, 9 last."""
    parent: int | None = None
    """Number of the URL whose page or redirect gave it."""
    relation: Relation = Relation.HYPERLINK
    label: str | None = None
    meta: str | None = None
    """JSON object, 1 KiB at most."""
    request: RequestSpec | None = None
    refusal: Reason | None = None
    """Set when scope or a trap forbids it: kept as skipped, with this reason."""
    seed_host: bool = False
    """The host is a seed's own: another page budget applies."""
    lifts: Reason | None = None


@unique
class Claimed(IntEnum):
    """The frontier's answer to one claim."""

    NEW = 0
    """Queued now, or kept as skipped when the claim carried a refusal."""
    KNOWN = 1
    """Claimed before, whoever found it."""
    OVER_BUDGET = 2
    """The host's queue or the store of its refusals is full; counted, not kept."""


# -- leases -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request for a URL that did not settle it."""

    at: int
    error: str
    """Class of what happened, such as `http_503` or `connect_timeout`."""
    status: int | None = None


@dataclass(frozen=True, slots=True)
class QueuedUrl:
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


@dataclass(frozen=True, slots=True)
class Pace:
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


@dataclass(frozen=True, slots=True)
class LeasedHost:
    """A host as its holder sees it."""

    hid: int
    name: str
    pace: Pace
    fetched: int = 0
    """Requests settled so far: what budgets count."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The exclusive, expiring right to a host and to a few of its URLs."""

    token: int
    host: LeasedHost
    urls: tuple[QueuedUrl, ...]
    until: int


@dataclass(frozen=True, slots=True)
class Wish:
    """What a worker asks `lease` for."""

    worker: int
    hosts: int
    urls_per_host: int
    ttl_ms: int
    visit_ms: int
    """A host gets no more URLs than fit into this time at its delay (always one)."""


# -- what a request gave ------------------------------------------------------------------------------------


class Pointer(NamedTuple):
    """Where a capture's response record lies: a file of the archive, and a slice of it that opens by itself."""

    file: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is kept of one request, whatever came of it."""

    at: int
    """When the request started."""
    status: int | None = None
    error: str | None = None
    """Class of the failure; None when the answer was read whole."""
    detail: str = ""
    """The failure in words."""
    pointer: Pointer | None = None
    digest: bytes | None = None
    """SHA-256 of the decoded body."""
    mime: str | None = None
    size: int = 0
    """Bytes of the response on the wire."""
    elapsed_ms: int = 0
    etag: str | None = None
    last_modified: str | None = None


# -- settlements: the named ways in which a lease of one URL ends --------------------------------------------


@dataclass(frozen=True, slots=True)
class _OfUrl:
    token: int
    hid: int
    url: QueuedUrl
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Finished(_OfUrl):
    """Stored, links claimed in the same call, parsers run: done."""


@dataclass(frozen=True, slots=True)
class ProcessingFailed(_OfUrl):
    """The capture is durable, reading it failed; `evidence.error` and `detail` say how."""


@dataclass(frozen=True, slots=True)
class WasRedirect(_OfUrl):
    """The answer sent us elsewhere; the target is among the links of the same call."""

    target: str


@dataclass(frozen=True, slots=True)
class Moved(_OfUrl):
    """The same page answers under another fetch URL: queued again with that one."""

    target: str


@dataclass(frozen=True, slots=True)
class RetryAt(_OfUrl):
    """Failed for now. `due` is the earliest next try."""

    due: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A rule stopped it at the door; no request was made for it."""

    token: int
    hid: int
    url: QueuedUrl
    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Died(_OfUrl):
    """Failed for good; `evidence.error` is its class in the dead letters."""


@dataclass(frozen=True, slots=True)
class Released:
    """The visit is over: unspent URLs return, the host waits by its new clock.

    With `condemned`, the host is given up: its queued URLs become dead letters of that class.
    """

    token: int
    hid: int
    pace: Pace
    condemned: str | None = None


Settlement = Finished | ProcessingFailed | WasRedirect | Moved | RetryAt | Refused | Died | Released


@unique
class Answer(IntEnum):
    """The frontier's answer to one settlement."""

    SETTLED = 0
    STALE = 1
    """The lease is lost: nothing was changed."""
    ALREADY = 2
    """It was settled before, by this very lease."""


# -- what can be asked of a frontier ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Counts:
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


@dataclass(frozen=True, slots=True)
class DeadLetter:
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


@dataclass(frozen=True, slots=True)
class Story:
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


@dataclass(frozen=True, slots=True)
class HostFigures:
    """One host in numbers."""

    name: str
    queued: int
    leased: int
    fetched: int
    done: int
    dead: int
    pace: Pace
    parked: str | None = None
    """Why it is not visited although it has URLs: `host_budget`, `condemned`, `paused` or `blocked`."""
    discovered: int = 0
    duplicates: int = 0
    alarm: str | None = None
