"""What a running crawl tells those who watch it. Values only; watchers must return quickly and never raise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum, unique

from msgspec import Struct


class PageSettled(Struct, frozen=True):
    """One URL's lease has ended, and the store has it."""

    url: str
    kind: str
    """`done`, `redirected`, `retry`, `dead`, `skipped`, `stored` or `moved`."""
    status: int | None
    error: str | None
    size: int
    """Response bytes on the wire."""
    elapsed_ms: int
    at: int


class LinkRefused(Struct, frozen=True):
    """A rule stopped a link where it was found; told only where somebody listens for it, or has `on_skip`."""

    url: str
    reason: str
    parent: int | None
    """Number of the page that has the link."""
    at: int


class HostWaits(Struct, frozen=True):
    """A host is left alone for longer than its usual delay, or for good."""

    host: str
    why: str
    until: int
    """Wall time in ms; 0 when it was given up."""


class ScopeWidened(Struct, frozen=True):
    """A seed moved for good to another host, which now belongs to the crawl."""

    source: str
    target: str
    host: str


class Paused(Struct, frozen=True):
    """Nothing can be stored for now; fetching stops until it can."""

    why: str


class Resumed(Struct, frozen=True):
    """Storing works again."""


class Warned(Struct, frozen=True):
    """Something a person should know, in words."""

    message: str


class TrapSeen(Struct, frozen=True):
    """A host's URLs look as if they never end; nothing is done about it but to say so."""

    host: str
    kind: str
    """`calendar` or `parameters`."""
    example: str


class CarriedOut(Struct, frozen=True):
    """What a person asked of the crawl, or changed settings made necessary, has been done."""

    what: str
    changed: Mapping[str, int]
    """How many URLs it looked at and what became of them, by words."""


Event = PageSettled | LinkRefused | HostWaits | ScopeWidened | Paused | Resumed | Warned | TrapSeen | CarriedOut
Watcher = Callable[[Event], None]


class Bus:
    """A watcher that passes events on to those who asked for their kind. Their errors are told and stop nothing."""

    def __init__(self) -> None:
        self._listeners: list[tuple[type | None, Watcher]] = []
        self._failed: set[Watcher] = set()

    def on(self, kind: type | None, listener: Watcher) -> None:
        """Pass events of this kind on to `listener`; None: all of them."""
        self._listeners.append((kind, listener))

    def __call__(self, event: Event) -> None:
        for kind, listener in self._listeners:
            if kind is None or isinstance(event, kind):
                self._pass_on(event, listener)

    def _pass_on(self, event: Event, listener: Watcher) -> None:
        try:
            listener(event)
        except Exception as error:  # whoever listens, the crawl goes on
            if listener in self._failed:
                return
            self._failed.add(listener)
            name = getattr(listener, "__name__", "a listener")
            self(Warned(f"{name} raised {type(error).__name__}: {error}; it is not told again"))


@unique
class Ending(StrEnum):
    """Why a run of a crawl ended."""

    FINISHED = "finished"
    """Nothing is left to fetch."""
    INTERRUPTED = "interrupted"
    """Asked to stop; resumable."""
    BUDGET = "budget"
    """A budget or limit of the crawl is used up."""
    LEARNED = "learned"
    """Rests so that learned rules can be applied or undone; the same call goes on by itself."""
    DISK_FULL = "disk_full"
    """Stopped while it waited for space; resumable."""
