"""The seven states of a URL and the only legal moves between them.

One table, one function. Every store applies moves through `advance`, every database repeats the states in a
CHECK, and the diagram in the documentation is drawn from `MOVES`. A move that is not in the table raises and
changes nothing.
"""

from __future__ import annotations

from enum import IntEnum, unique

from crawlspace.errors import IllegalMove


@unique
class UrlState(IntEnum):
    """Where a URL is. The numbers are stored on disk and never change their meaning."""

    QUEUED = 0
    """Waits for its host, for a time, or on another route."""
    LEASED = 1
    """In a worker's hands until the lease ends."""
    STORED = 2
    """Capture durable, processing failed: processed again from the archive, never fetched again for that."""
    DONE = 3
    """Capture durable, links claimed, parsers run."""
    REDIRECTED = 4
    """Answered with a redirect; the edge is kept."""
    SKIPPED = 5
    """Refused with a reason; never requested, or stopped by robots at the door."""
    DEAD = 6
    """Failed for good; in the dead letters with its class."""


@unique
class Event(IntEnum):
    """What happens to a URL."""

    LEASE = 0
    """A worker takes it."""
    RETURN = 1
    """It comes back unspent: the visit ended first, or the lease was lost."""
    RETRY = 2
    """The request failed for now: again at a later time."""
    MOVE = 3
    """The same page answers under another fetch URL: queued with that one."""
    FINISH = 4
    """Stored, its links claimed, its parsers run."""
    FAIL_PROCESSING = 5
    """Stored, but reading it failed."""
    REDIRECT = 6
    """The answer was a redirect to another page."""
    REFUSE = 7
    """A rule forbids it: scope, robots, budget, trap."""
    DIE = 8
    """It failed for good."""
    READMIT = 9
    """The refusal no longer holds: a better path or a changed setting."""
    REVISIT = 10
    """A new generation of visits begins."""
    REVIVE = 11
    """A person took it out of the dead letters."""
    DROP = 12
    """A person took it off the dead letters for good; it stays known."""
    REROUTE = 13
    """It was blocked, and goes on another route."""


_QUEUED_OR_LEASED = {Event.REFUSE: UrlState.SKIPPED, Event.DIE: UrlState.DEAD}

MOVES: dict[UrlState, dict[Event, UrlState]] = {
    UrlState.QUEUED: {Event.LEASE: UrlState.LEASED, **_QUEUED_OR_LEASED},
    UrlState.LEASED: {
        Event.RETURN: UrlState.QUEUED,
        Event.RETRY: UrlState.QUEUED,
        Event.REROUTE: UrlState.QUEUED,
        Event.MOVE: UrlState.QUEUED,
        Event.FINISH: UrlState.DONE,
        Event.FAIL_PROCESSING: UrlState.STORED,
        Event.REDIRECT: UrlState.REDIRECTED,
        **_QUEUED_OR_LEASED,
    },
    UrlState.STORED: {Event.FINISH: UrlState.DONE, Event.DIE: UrlState.DEAD},
    UrlState.DONE: {Event.REVISIT: UrlState.QUEUED},
    UrlState.REDIRECTED: {Event.REVISIT: UrlState.QUEUED},
    UrlState.SKIPPED: {Event.READMIT: UrlState.QUEUED},
    UrlState.DEAD: {Event.REVIVE: UrlState.QUEUED, Event.REVISIT: UrlState.QUEUED, Event.DROP: UrlState.SKIPPED},
}

TERMINAL = frozenset(UrlState) - {UrlState.QUEUED, UrlState.LEASED}
"""States in which nothing is left to do unless a person, a setting or a new generation asks for it."""


def advance(state: UrlState, event: Event) -> UrlState:
    """The state after `event`; raises `IllegalMove` when the table does not allow it."""
    try:
        return MOVES[state][event]
    except KeyError:
        raise IllegalMove(state.name.lower(), event.name.lower()) from None
