"""How values lie in rows, and how they come out again.

A URL that waits has the same columns in `queue` and in `delayed`; `Waiting` is that row. An outcome is the lasting
part of it and an `Ending`. The order of the fields is the order of the columns in every statement.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from crawlspace.frontier.settings import CLASSES
from crawlspace.frontier.sql import blob
from crawlspace.policy.outcome import BLOCKED
from crawlspace.states import UrlState
from crawlspace.types import (
    HOST_BYTES,
    Attempt,
    Claim,
    DeadLetter,
    Evidence,
    HostFigures,
    Pace,
    Pointer,
    QueuedUrl,
    Relation,
    RequestSpec,
    Rerouted,
)

_HYPERLINK = Relation.HYPERLINK
HISTORY = 10
"""Attempts that a URL remembers; the oldest are forgotten."""

_DETAIL_CHARACTERS = 500
_STORY_CHARACTERS = 100

_encode_request = msgspec.msgpack.Encoder().encode
_decode_request = msgspec.msgpack.Decoder(RequestSpec).decode
_encode_history = msgspec.json.Encoder().encode
_decode_history = msgspec.json.Decoder(list[tuple[int, str, int | None]]).decode


class Waiting(NamedTuple):
    """A row of `queue`, or of `delayed` without its time."""

    hid: int
    front_class: int
    id: int
    tail: bytes
    url: str
    depth: int
    hops: int
    attempts: int
    parent: int | None
    relation: str | None
    found_at: int
    suspect: int
    label: str | None
    meta: str | None
    request: bytes | None
    history: str | None
    generation: int
    settled: int | None
    route: str | None
    """The routes it was sent on after it was blocked, in order; NULL for none."""


class Ending(NamedTuple):
    """What an outcome adds to the URL's own columns."""

    state: int
    at: int
    token: int | None = None
    reason: str | None = None
    detail: str | None = None
    requested_at: int | None = None
    status: int | None = None
    elapsed_ms: int | None = None
    segment: int | None = None
    offset: int | None = None
    length: int | None = None
    digest: bytes | None = None
    mime: str | None = None
    size: int | None = None
    etag: str | None = None
    last_modified: str | None = None
    target: str | None = None
    copy_of: int | None = None
    next_visit: int | None = None
    interval_ms: int | None = None
    changed: int | None = None
    content: bytes | None = None


_NO_REASON = (None, None)
_NO_MORE = (None,) * len(Ending._fields[16:])
"""An `Ending` without reason and detail, and without all that follows `last_modified`."""


def waiting(claim: Claim, hid: int, number: int, now: int) -> Waiting:
    """The first row of a URL that was just claimed."""
    # By position: this is done for each link of a crawl.
    return Waiting(
        hid,
        claim.front_class,
        number,
        claim.address.key[HOST_BYTES:],
        claim.address.fetch_url,
        claim.depth,
        claim.hops,
        0,
        claim.parent,
        _relation_column(claim.relation),
        now,
        0,
        claim.label,
        claim.meta,
        None if claim.request is None else _encode_request(claim.request),
        None,
        0,
        None,
        None,
    )


def key_of(row: Waiting) -> bytes:
    """The URL's fingerprint."""
    return row.hid.to_bytes(HOST_BYTES, "big") + row.tail


def way_of(row: Waiting) -> int:
    """Depth and class of a row in one number, as `seen.way` has them."""
    return row.depth * CLASSES + row.front_class


def is_no_better(claim: Claim, way: int | None) -> bool:
    """Whether a repeated claim can change nothing, since the URL was claimed in a way as good; None: not known."""
    return (
        way is not None
        and way % CLASSES <= claim.front_class
        and way // CLASSES <= claim.depth
        and claim.lifts is None
    )


LinkRow = tuple[int, int, int, bytearray, str, int, int | None, int]
"""The first row of an ordinary link: host, class, number, tail, `shortened` address, depth, parent, time."""


def is_plain(claim: Claim) -> bool:
    """Whether there is nothing more to say of a new URL than `link` says."""
    return (
        claim.relation is _HYPERLINK
        and claim.hops == 0
        and claim.label is None
        and claim.meta is None
        and claim.request is None
    )


def shortened(url: str, host: str) -> str:
    """An address as it stands in the queue of its host: without what the host's name says already."""
    if url.startswith("https://") and url.startswith(host + "/", 8):
        return url[8 + len(host) :]
    if url.startswith("http://") and url.startswith(host + "/", 7):
        return "+" + url[7 + len(host) :]
    return url


def whole(short: str, host: str) -> str:
    """The address again."""
    if short[0] == "/":
        return f"https://{host}{short}"
    return f"http://{host}{short[1:]}" if short[0] == "+" else short


def link(claim: Claim, hid: int, number: int, now: int) -> LinkRow:
    """The row of a plain claim: made for each link of a crawl, where a `Waiting` would take as long as the rest."""
    address = claim.address
    return (
        hid,
        claim.front_class,
        number,
        blob(address.key[HOST_BYTES:]),
        shortened(address.fetch_url, address.host),
        claim.depth,
        claim.parent,
        now,
    )


def unlinked(row: LinkRow, host: str) -> Waiting:
    """The same row with all its columns."""
    hid, front_class, number, tail, short, depth, parent, found_at = row
    ahead = (hid, front_class, number, bytes(tail), whole(short, host), depth, 0, 0, parent, None, found_at, 0)
    return Waiting(*ahead, None, None, None, None, 0, None, None)


def has_more(row: Waiting) -> bool:
    """Whether there is more to say of a queued URL than of an ordinary link."""
    return (
        not is_link(row)
        or row.history is not None
        or row.settled is not None
        or row.route is not None
        or bool(row.hops or row.attempts or row.suspect or row.generation)
    )


def is_link(row: Waiting) -> bool:
    """Whether a row that `waiting` made is that of an ordinary link: its optional columns are empty."""
    return row.relation is None and row.label is None and row.meta is None and row.request is None


def bettered(row: Waiting, claim: Claim) -> Waiting | None:
    """The row with what the claim offers better; None when that is nothing.

    Depth, hops, parent and relation describe one path and change together.
    """
    better = row
    if claim.front_class < row.front_class:
        better = better._replace(front_class=claim.front_class)
    if claim.depth < row.depth:
        better = better._replace(
            depth=claim.depth, hops=claim.hops, parent=claim.parent, relation=_relation_column(claim.relation)
        )
    return None if better is row else better


def is_page(row: Waiting, end: Ending) -> bool:
    """Whether an outcome is that of an ordinary page: the columns that `page_outcome` leaves out are empty."""
    return (
        is_link(row)
        and row.history is None
        and row.route is None
        and end.requested_at is not None
        and end[3:5] == _NO_REASON
        and end[16:] == _NO_MORE
    )


def page_outcome(row: Waiting, end: Ending) -> tuple[object, ...]:
    """A row of `outcome` without the columns that are empty for most."""
    return (
        row.id,
        row.hid,
        row.front_class,
        row.tail,
        row.url,
        row.depth,
        row.hops,
        row.attempts + 1,
        row.parent,
        row.found_at,
        row.generation,
        *end[:3],
        *end[5:16],
    )


def outcome(row: Waiting, ending: Ending) -> tuple[object, ...]:
    """A row of `outcome`; the request that ended the URL, if there was one, is its last attempt."""
    return (
        row.id,
        row.hid,
        row.front_class,
        row.tail,
        row.url,
        row.depth,
        row.hops,
        row.attempts if ending.requested_at is None else row.attempts + 1,
        row.parent,
        row.relation,
        row.found_at,
        row.label,
        row.meta,
        row.request,
        row.history,
        row.generation,
        row.route,
        *ending,
    )


def queued_url(row: Waiting) -> QueuedUrl:
    """The URL as a worker gets it."""
    return QueuedUrl(
        id=row.id,
        key=key_of(row),
        url=row.url,
        front_class=row.front_class,
        depth=row.depth,
        hops=row.hops,
        attempts=row.attempts,
        parent=row.parent,
        relation=relation(row.relation),
        found_at=row.found_at,
        label=row.label,
        meta=row.meta,
        request=None if row.request is None else _decode_request(row.request),
        history=() if row.history is None else history(row.history),
        suspect=row.suspect,
        generation=row.generation,
        routes=routes(row.route),
    )


def ending(evidence: Evidence, state: UrlState, now: int, token: int, segment: int | None) -> Ending:
    """The ending that a request gave. `segment` is the number of the archive file its pointer names."""
    pointer = evidence.pointer
    offset, length = (None, None) if pointer is None else (pointer.offset, pointer.length)
    return Ending(
        state,
        now,
        token,
        evidence.error,
        detail_column(evidence.detail),
        evidence.at if evidence.asked else None,
        evidence.status,
        evidence.elapsed_ms,
        segment,
        offset,
        length,
        evidence.digest,
        evidence.mime,
        evidence.size,
        evidence.etag,
        evidence.last_modified,
    )


def evidence(end: Ending, file: str | None) -> Evidence | None:
    """What is kept of the request behind an outcome; None when there was none. `file` is the segment's name."""
    if end.requested_at is None:
        return None
    refused = end.state == UrlState.SKIPPED
    pointer = None if file is None else Pointer(file, end.offset or 0, end.length or 0)
    return Evidence(
        at=end.requested_at,
        status=end.status,
        error=None if refused else end.reason,
        detail=end.detail or "",
        pointer=pointer,
        digest=end.digest,
        mime=end.mime,
        size=end.size or 0,
        elapsed_ms=end.elapsed_ms or 0,
        etag=end.etag,
        last_modified=end.last_modified,
    )


def pace(stored: tuple[int, int | None, int | None, int, int, int], first_delay_ms: int) -> Pace:
    """A host's clock from its columns next_at, delay_ms, crawl_delay_ms, failures, slowed and latency_ms."""
    next_at, delay_ms, crawl_delay_ms, failures, slowed, latency_ms = stored
    delay = first_delay_ms if delay_ms is None else delay_ms
    return Pace(next_at, delay, crawl_delay_ms, failures, slowed, latency_ms)


def host_figures(row: tuple[Any, ...], first_delay_ms: int) -> HostFigures:
    """One row of the statement `hosts`."""
    name, queued, leased, fetched, done, dead, parked, discovered, duplicates, alarm, *rest = row
    address, group, group_next_at, exact, near, links, known, *clock = rest
    return HostFigures(
        name=name,
        queued=queued,
        leased=leased,
        fetched=fetched,
        done=done,
        dead=dead,
        pace=pace((clock[0], clock[1], clock[2], clock[3], clock[4], clock[5]), first_delay_ms),
        parked=parked,
        discovered=discovered,
        duplicates=duplicates,
        alarm=alarm,
        address=address,
        group=group,
        group_next_at=group_next_at,
        exact=exact,
        near=near,
        links=links,
        known=known,
    )


def dead_letter(row: tuple[Any, ...]) -> DeadLetter:
    """One row of the statement `dead_letters`."""
    *facts, past = row
    number, url, host, error, status, detail, attempts, depth, parent, found_at, died_at = facts
    return DeadLetter(
        id=number,
        url=url,
        host=host,
        error=error,
        status=status,
        detail=detail or "",
        attempts=attempts,
        depth=depth,
        parent=parent,
        found_at=found_at,
        died_at=died_at,
        history=() if past is None else history(past),
    )


def with_attempt(row: Waiting, attempt: Attempt) -> Waiting:
    """The row after one more request that did not settle it."""
    past = [] if row.history is None else _decode_history(row.history)
    past.append((attempt.at, attempt.error, attempt.status))
    return row._replace(attempts=row.attempts + 1, history=_encode_history(past[-HISTORY:]).decode())


def history(column: str) -> tuple[Attempt, ...]:
    """Past attempts, oldest first."""
    return tuple(Attempt(*attempt) for attempt in _decode_history(column))


def rerouted(row: Waiting, settlement: Rerouted) -> Waiting:
    """The row of a URL that goes on another route, where its tries begin anew; its history says why."""
    seen = settlement.evidence
    tried = with_attempt(
        row, Attempt(seen.at, f"{seen.error or BLOCKED} ({seen.detail})"[:_STORY_CHARACTERS], seen.status)
    )
    return tried._replace(attempts=0, route=" ".join(settlement.routes), settled=settlement.token)


def routes(column: str | None) -> tuple[str, ...]:
    """The routes that a URL was sent on, in order; most have none, and take no room."""
    return () if column is None else tuple(column.split())


def relation(column: str | None) -> Relation:
    """How a link was found; most are hyperlinks, and take no room."""
    return Relation.HYPERLINK if column is None else Relation(column)


def detail_column(text: str) -> str | None:
    """Words for people: short, and no room for none."""
    return text[:_DETAIL_CHARACTERS] or None


def _relation_column(found: Relation) -> str | None:
    return None if found is Relation.HYPERLINK else found.value
