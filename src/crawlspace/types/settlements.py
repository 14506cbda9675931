"""What a request gave, and the named ways in which a lease of one URL ends."""

from __future__ import annotations

from enum import IntEnum, unique

from msgspec import Struct

from crawlspace.types.leases import Pace, QueuedUrl
from crawlspace.types.links import Reason
from crawlspace.types.pointers import Pointer
from crawlspace.types.revisits import Again


class Fingerprints(Struct, frozen=True):
    """What a page's content is known by. Made once, when the page is read, and compared when it is settled."""

    text: bytes
    """SHA-256 of its text, white space folded and volatile parts masked (`content.text`)."""
    follow: bytes
    """SHA-256 of that text and of its resolved links: equal where following the links gives nothing new."""
    length: int
    """Characters of the text."""
    novelty: int = 0
    """64 bits of the text without what its own address says: equal where only the address is another."""
    simhash: int | None = None
    """64 bits that differ in few places where texts differ in few words; None when it was not made."""
    kin: int = 0
    """64 bits that are equal for pages that may be near-duplicates: same language, same significant fields."""
    language: str = ""
    """As the page declares it, in lower case."""
    shape: str = ""
    """Its address with numbers, ids and values left out (`policy.traps`)."""
    sign: str | None = None
    """What the page says of itself: `not_found`, `empty_result` or `error`."""
    partial: bool = False
    """Some of its links were not to be followed, for depth, for their number or by the page's own wish."""
    stopped_by: int | None = None
    """The URL with the same text and links, on whose account its links were not followed."""
    main: bytes = b""
    """SHA-256 of its text without what stands around it, where it may be, or has, a view of a page, as for printing;
    else empty."""


class Evidence(Struct, frozen=True):
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
    fingerprints: Fingerprints | None = None
    """What its content is known by; None when it has no text, or is not a page."""
    canonical: str | None = None
    """What the page declares as its own address, resolved."""
    route: str = ""
    """The route by which it was asked for; empty for plain HTTP."""
    asked: bool = True
    """False when no request could be made: no route that it may take has anything left to give."""


class _OfUrl(Struct, frozen=True):
    token: int
    hid: int
    url: QueuedUrl
    evidence: Evidence


class Finished(_OfUrl, frozen=True):
    """Stored, links claimed in the same call, parsers run: done."""

    again: Again | None = None
    links: int = 0
    """URLs that the page names to be followed, repeats and known ones too, also those that were not claimed again."""


class Unchanged(_OfUrl, frozen=True):
    """The server says that the page is what it was at an earlier visit, whose capture stays the page's own: done."""

    again: Again | None = None


class ProcessingFailed(_OfUrl, frozen=True):
    """The capture is durable, reading it failed; `evidence.error` and `detail` say how."""


class WasRedirect(_OfUrl, frozen=True):
    """The answer sent us elsewhere; the target is among the links of the same call."""

    target: str
    again: Again | None = None


class Moved(_OfUrl, frozen=True):
    """The same page answers under another fetch URL: queued again with that one."""

    target: str


class RetryAt(_OfUrl, frozen=True):
    """Failed for now. `due` is the earliest next try."""

    due: int


class Rerouted(_OfUrl, frozen=True):
    """Blocked where it was asked for: queued again for the last of `routes`, on which its tries begin anew."""

    routes: tuple[str, ...]
    """All routes that it was sent on, the new one last."""
    due: int
    """The earliest request on it."""


class Refused(Struct, frozen=True):
    """A rule stopped it at the door; no request was made for it."""

    token: int
    hid: int
    url: QueuedUrl
    reason: Reason
    detail: str = ""


class Died(_OfUrl, frozen=True):
    """Failed for good, or until the next visit; `evidence.error` is its class in the dead letters."""

    again: Again | None = None


class Released(Struct, frozen=True):
    """The visit is over: unspent URLs return, the host waits by its new clock.

    With `condemned`, the host is given up: its queued URLs become dead letters of that class.
    """

    token: int
    hid: int
    pace: Pace
    condemned: str | None = None
    address: str | None = None
    """Where the host's name leads to; None when that is not known, or no news."""
    group_next_at: int = 0
    """No request to the host's pace group starts before this time."""


Settlement = (
    Finished | Unchanged | ProcessingFailed | WasRedirect | Moved | RetryAt | Rerouted | Refused | Died | Released
)

Adopted = Finished | ProcessingFailed | WasRedirect | Refused | Died
"""Settlements that a URL without a lease may get, when it was asked for elsewhere; their token says nothing."""


@unique
class Answer(IntEnum):
    """The frontier's answer to one settlement."""

    SETTLED = 0
    STALE = 1
    """The lease is lost: nothing was changed."""
    ALREADY = 2
    """It was settled before, by this very lease."""
