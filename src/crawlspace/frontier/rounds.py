"""What the rows of earlier visits say, whatever database they lie in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from crawlspace.frontier.rows import Ending
from crawlspace.states import UrlState
from crawlspace.types import Again, Before, Captured, GenerationFigures, Pointer, Round

VISITS_READ = 8
"""Earlier visits that are read for the next one; fewer failed ones in a row than that end a URL."""
DUE_AT_ONCE = 500
"""URLs that one call brings back for another visit: what is left, the next call takes."""
LATER_MS = 3_600_000
"""After this time a visit is thought of again that its host cannot have now, being blocked, given up or full."""

_ENDED = frozenset({UrlState.STORED, UrlState.DONE, UrlState.REDIRECTED, UrlState.SKIPPED, UrlState.DEAD})


class Visited(NamedTuple):
    """An earlier visit: columns of `visit`, in the order of the statements that read them."""

    id: int
    generation: int
    state: int
    at: int
    url: str
    reason: str | None
    requested_at: int | None
    status: int | None
    segment: int | None
    offset: int | None
    length: int | None
    digest: bytes | None
    mime: str | None
    etag: str | None
    last_modified: str | None
    target: str | None
    copy_of: int | None
    interval_ms: int | None
    changed: int | None
    content: bytes | None


def planned(end: Ending, again: Again | None, now: int) -> Ending:
    """The ending with the next visit that its settlement asks for."""
    if again is None:
        return end
    due = None if again.interval_ms is None else now + again.interval_ms
    changed = None if again.changed is None else int(again.changed)
    return end._replace(
        next_visit=due, interval_ms=again.interval_ms, changed=changed, content=again.content or end.content
    )


def last_done(visits: Iterable[Visited]) -> Visited | None:
    """The visit whose capture is the page's own; the newest come first."""
    return next((visit for visit in visits if visit.state == UrlState.DONE), None)


def unchanged(end: Ending, earlier: Visited | None) -> Ending:
    """The ending of a visit that found the page as it was: its capture and content are those of the earlier one."""
    if earlier is None:
        return end
    return end._replace(
        status=earlier.status,
        segment=earlier.segment,
        offset=earlier.offset,
        length=earlier.length,
        digest=earlier.digest,
        mime=earlier.mime,
        etag=end.etag or earlier.etag,
        last_modified=end.last_modified or earlier.last_modified,
        copy_of=earlier.copy_of,
        content=earlier.content,
    )


def before(visits: Iterable[Visited]) -> Before | None:
    """What the next visit must know, from earlier ones, the newest first."""
    misses: list[str] = []
    for visit in visits:
        if visit.state != UrlState.DEAD:
            return Before(
                url=visit.url,
                at=visit.requested_at or visit.at,
                status=visit.status,
                digest=visit.digest,
                content=visit.content,
                # What broke off must not be found unchanged.
                etag=None if visit.reason else visit.etag,
                last_modified=None if visit.reason else visit.last_modified,
                target=visit.target,
                interval_ms=visit.interval_ms,
                misses=tuple(reversed(misses)),
            )
        misses.append(visit.reason or "")
    return None


def told(visit: Visited, file: str | None) -> Round:
    """An earlier visit for those who ask; `file` is its segment's name."""
    return Round(
        generation=visit.generation,
        state=UrlState(visit.state),
        at=visit.requested_at or visit.at,
        url=visit.url,
        status=visit.status,
        reason=visit.reason,
        changed=None if visit.changed is None else bool(visit.changed),
        pointer=None if file is None else Pointer(file, visit.offset or 0, visit.length or 0),
        interval_ms=visit.interval_ms,
    )


def captures_of(rows: Iterable[Sequence[Any]]) -> Iterator[Captured]:
    """The captures that visits found or left as they were, from rows of the statement `visited_again`."""
    for number, *columns in rows:
        for generation, url, at, file, offset, length, state in (columns[:7], columns[7:]):
            if state == UrlState.DONE and file is not None:
                yield Captured(number, generation, url, Pointer(file, offset, length), at)


class Counted(NamedTuple):
    """A row of `round`: visits of a generation that ended so."""

    generation: int
    state: int
    changed: int
    present: int
    past: int


def figures(counted: Iterable[Counted], states: Mapping[UrlState, int]) -> list[GenerationFigures]:
    """Each generation in numbers, the first at index 0; `states` are the totals over all of them.

    What is in the first generation now is what no later one has; who came to a later one is who left the one before.
    """
    present: dict[int, dict[UrlState, int]] = {0: {state: states[state] for state in _ENDED}}
    past: dict[int, dict[UrlState, int]] = {}
    changes: dict[int, dict[int, int]] = {}
    for row in counted:
        state = UrlState(row.state)
        now, gone = present.setdefault(row.generation, {}), past.setdefault(row.generation, {})
        now[state] = now.get(state, 0) + row.present
        gone[state] = gone.get(state, 0) + row.past
        if row.generation:
            present[0][state] -= row.present
        seen = changes.setdefault(row.generation, {})
        seen[row.changed] = seen.get(row.changed, 0) + row.present + row.past
    told_of: list[GenerationFigures] = []
    begun = sum(states.values())
    while begun:
        number = len(told_of)
        now, gone = present.get(number, {}), past.get(number, {})
        ended = {state: now.get(state, 0) + gone.get(state, 0) for state in sorted(_ENDED)}
        seen = changes.get(number, {})
        waiting = begun - sum(ended.values())
        told_of.append(GenerationFigures(number, begun, waiting, ended, seen.get(1, 0), seen.get(0, 0)))
        begun = sum(gone.values())
    return told_of
