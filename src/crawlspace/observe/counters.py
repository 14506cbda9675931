"""Figures of one run, made from its events: what the progress display and the closing lines show."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from crawlspace.events import (
    CarriedOut,
    Event,
    HostWaits,
    LinkRefused,
    PageSettled,
    Paused,
    Resumed,
    ScopeWidened,
    TrapSeen,
    Warned,
)
from crawlspace.observe.printable import printable
from crawlspace.observe.words import moment

_WAYS_OUT = {"address_refused": "its address is not public: network.allow names those that may be reached"}
"""What a person can do about a host that is given up."""
RATE_SECONDS = 10.0
NOTICES = 5


@dataclass(slots=True)
class Counters:
    """Totals and a sliding rate. `monotonic` gives seconds."""

    monotonic: Callable[[], float]
    pages: int = 0
    bytes: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    paused: str | None = None
    notices: deque[str] = field(default_factory=lambda: deque(maxlen=NOTICES))
    latest: str = ""
    _times: deque[float] = field(default_factory=deque)

    def see(self, event: Event) -> str | None:
        """Take an event in; the line that tells it, for those worth a line."""
        line = self._told(event)
        if line is not None:
            self.notices.append(line)
        return line

    def rate(self) -> float:
        """Requests settled a second, over the last ten seconds."""
        now = self.monotonic()
        while self._times and self._times[0] < now - RATE_SECONDS:
            self._times.popleft()
        span = now - self._times[0] if self._times else 0.0
        return len(self._times) / span if span >= 1 else float(len(self._times))

    def _told(self, event: Event) -> str | None:
        match event:
            case PageSettled() | LinkRefused():
                self._settled(event)
                return None
            case HostWaits(host, why, 0):
                told = f"{printable(host)} is given up: {why}; its URLs are dead letters"
                return f"{told} ({_WAYS_OUT[why]})" if why in _WAYS_OUT else told
            case HostWaits(host, why, until):
                return f"{printable(host)} {printable(why)}: left alone until {moment(until)}"
            case ScopeWidened(source, target, host):
                return (
                    f"the seed {printable(source)} has moved for good to {printable(target)}: "
                    f"{printable(host)} now belongs to the crawl"
                )
            case Paused(why):
                self.paused = why
                return f"paused: {why}"
            case Resumed():
                self.paused = None
                return "resumed"
            case TrapSeen(host, kind, example):
                return f"{printable(host)} looks like a trap ({kind}), such as {printable(example)}"
            case CarriedOut(what, changed):
                told = ", ".join(f"{n} {word}" for word, n in changed.items())
                return f"done: {printable(what)}" + (f" ({told})" if told else "")
            case Warned(message):
                return printable(message)

    def _settled(self, event: PageSettled | LinkRefused) -> None:
        if isinstance(event, LinkRefused):
            # No request was made; the store counts the URL.
            return
        self._times.append(self.monotonic())
        self.pages += event.kind == "done"
        self.bytes += event.size
        self.latest = event.url
        if event.error is not None and event.kind != "skipped":
            self.errors[event.error] += 1
