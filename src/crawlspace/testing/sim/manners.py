"""What the web sees of the crawl: who asks which host when, and whether that was right (I4, I6, I12, I13)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from crawlspace.testing.sim.history import History
from crawlspace.testing.sim.web import Answer, Host, Web

if TYPE_CHECKING:
    from crawlspace.settings import Settings

TOLERANCE = 0.002
"""Seconds: wall times are whole milliseconds."""
ROBOTS_SLACK = 120.0
"""Seconds by which rules may be older than their cache says, beside the longest delay of a host: they are asked
before its turn is waited for."""


class Holder(NamedTuple):
    """Who may ask a host, and until when requests may begin and end (monotonic seconds)."""

    who: str
    fence: float


class Rules(NamedTuple):
    """One robots.txt as it was given out."""

    at: float
    defers: bool


@dataclass(slots=True)
class _Seen:
    """What is known of one host's visitors."""

    open: int = 0
    last_start: float = -1e9
    last_who: str = ""
    rules: list[Rules] = field(default_factory=list)
    waits: dict[str, float] = field(default_factory=dict)
    """Until when each worker was asked to wait; under the empty name what the store has learned of it."""
    asked_at: float = -1.0
    """When it last asked anybody to wait."""
    crawl_delay: float = 0.0
    """In force once the store holds the rules."""


class Manners:
    """Watches requests. `holder` says whose a host is by the store's answers."""

    def __init__(
        self, web: Web, settings: Settings, history: History, holder: Callable[[Host], Holder | None]
    ) -> None:
        self._web = web
        self._settings = settings
        self._history = history
        self._holder = holder
        self._seen: dict[str, _Seen] = {host.name: _Seen() for host in web.hosts}
        self.slack = ROBOTS_SLACK + settings.host.delay_max
        self.leaped_at = -1.0
        """When the wall clock was last set forth: stored waits may seem to be over then."""
        self.robbed: dict[tuple[str, str], float] = {}
        """Worker and host whose lease a clock that was set has ended, and until when the worker need not know."""

    def begins(self, who: str, url: str, at: float) -> None:
        """A request leaves."""
        host = self._web.host_of(url)
        if host is None:
            self._history.broken("I13", f"{who} asks for {url}, which is out of scope")
            return
        seen = self._seen[host.name]
        self._has_lease(who, url, host, at)
        self._is_free(who, url, seen)
        self._is_polite(who, url, seen, at)
        if not url.endswith("/robots.txt"):
            self._is_allowed(who, url, host, at)
        seen.open += 1
        seen.last_start, seen.last_who = at, who

    def ends(self, who: str, url: str, answer: Answer | None, at: float) -> None:
        """Its answer is there, or nobody waits for it any more."""
        host = self._web.host_of(url)
        if host is None:
            return
        seen = self._seen[host.name]
        seen.open -= 1
        if answer is None:
            return
        if answer.wait and seen.last_start > self.leaped_at:
            granted = min(answer.wait, self._settings.host.retry_after_max)
            seen.waits[who] = max(seen.waits.get(who, 0.0), at + granted)
            seen.asked_at = at
        if url.endswith("/robots.txt"):
            seen.rules.append(Rules(at, answer.status >= 500 or answer.status == 0))

    def clock_leaps(self, at: float) -> None:
        """The wall clock is set forth; whoever reads an answer at this very moment reads both clocks, one by one."""
        self.leaped_at = at
        for seen in self._seen.values():
            if seen.asked_at >= at - TOLERANCE:
                seen.waits.clear()

    def rules_are_kept(self, origin: str) -> None:
        """The store holds what an origin's robots.txt said."""
        host = self._web.host_of(f"{origin}/")
        if host is not None and self._seen[host.name].rules and not self._seen[host.name].rules[-1].defers:
            self._seen[host.name].crawl_delay = min(host.crawl_delay, self._settings.robots.crawl_delay_max)

    def pace_is_kept(self, who: str, name: str) -> None:
        """The store holds the host's clock as this worker left it: what it was asked for binds everybody."""
        waits = self._seen[name].waits
        waits[""] = max(waits.get("", 0.0), waits.get(who, 0.0))

    # -- the rules --------------------------------------------------------------------------------------------

    def _has_lease(self, who: str, url: str, host: Host, at: float) -> None:
        holder = self._holder(host)
        if at < self.robbed.get((who, host.name), 0.0):
            return
        if holder is None or holder.who != who:
            whose = "nobody's" if holder is None else f"{holder.who}'s"
            self._history.broken("I6", f"{who} asks for {url}; the host is {whose}")
        elif at + self._settings.fetch.timeout > holder.fence:
            left = holder.fence - at
            self._history.broken("I6", f"{who} asks for {url} with {left:.1f} s left of its lease")

    def _is_free(self, who: str, url: str, seen: _Seen) -> None:
        if seen.open >= self._settings.host.concurrency:
            self._history.broken("I12", f"{who} asks for {url} while the host answers another request")

    def _is_polite(self, who: str, url: str, seen: _Seen, at: float) -> None:
        """Stored waits are wall times: another process cannot know that the clock was set forth meanwhile."""
        if self.leaped_at > seen.last_start and seen.last_who != who:
            return
        gap = at - seen.last_start
        delay = self._settings.host.delay
        if not url.endswith("/robots.txt"):
            delay = max(delay, seen.crawl_delay)
        if gap < delay - TOLERANCE:
            self._history.broken("I12", f"{who} asks for {url} {gap:.3f} s after the last start, not {delay} s")
        asked = max(seen.waits.get(who, 0.0), seen.waits.get("", 0.0) if self.leaped_at < 0 else 0.0)
        if at < asked - TOLERANCE:
            self._history.broken("I12", f"{who} asks for {url} {asked - at:.1f} s before it was asked to")

    def _is_allowed(self, who: str, url: str, host: Host, at: float) -> None:
        oldest = at - self._settings.robots.cache - self.slack
        known = [rules for rules in self._seen[host.name].rules if rules.at >= oldest and not rules.defers]
        if not known:
            self._history.broken("I12", f"{who} asks for {url}, and has no robots.txt that is young enough")
        path = "/" + url.split("/", 3)[3]
        if known and all(host.forbids(path, rules.at) for rules in known):
            self._history.broken("I13", f"{who} asks for {url}, which robots.txt forbids")
