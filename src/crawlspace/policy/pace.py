"""One host's clock: when its next request may start, and when it is given up. The only place that computes a `Pace`.

Rules, in order of strength. No request starts earlier than one delay after the last one started. The delay is never
below the host's base: the larger of our setting and what robots.txt asks for. A host that asks us to slow down is
obeyed (Retry-After) or, when it does not say for how long, asked half as often; each good answer takes back half of
what was added. A host whose answers take long is asked so seldom that a request of ours is under way for half of its
time at most. A host that does not answer is probed after waits that double, one request at a time. No wait is without
a cap, so that a clock that jumped or a server that lies cannot put a host off for ever.

Nothing here sleeps or fetches; the engine waits, the store keeps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum, unique
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from crawlspace.clock import Chance
from crawlspace.policy.outcome import Kind, Outcome, Told
from crawlspace.policy.patterns import Patterns
from crawlspace.types import Pace

HOST_UNREACHABLE = "host_unreachable"
"""Class of the dead letters of a host that was given up."""

_FIRST_SLOW_DELAY_MS = 1000
"""A host without a delay that asks us to slow down gets this one: twice nothing would be nothing."""
_REST = 2
"""Times the usual length of an answer from start to start: the host rests for as long as it works for us."""

_REMEMBERED = 4096
"""Hosts whose settings are kept at hand; what is forgotten is looked up again."""

_Delay = Annotated[
    float,
    Meta(description="Seconds from the start of one request to a host to the start of the next.", ge=0, le=86_400),
]
_Concurrency = Annotated[
    int, Meta(description="Requests that may be open to one host at the same time.", ge=1, le=64)
]


class HostRule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Another treatment for some hosts."""

    host: Annotated[
        str,
        Meta(min_length=1, max_length=2000, description="Names of the hosts: RE2, or a glob behind `glob:`."),
    ]
    delay: _Delay | None = None
    concurrency: _Concurrency | None = None
    jitter: Annotated[float, Meta(ge=0, le=1)] | None = None


class HostSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How gently a host is treated."""

    delay: _Delay = 1.0
    concurrency: _Concurrency = 1
    jitter: Annotated[
        float,
        Meta(
            description="Part of the delay by which chance may lengthen it, so that requests keep no beat.",
            ge=0,
            le=1,
        ),
    ] = 0.1
    adaptive: Annotated[
        bool,
        Meta(description="Ask a host whose answers take long less often; a delay of 0 stays 0."),
    ] = True
    rules: Annotated[
        tuple[HostRule, ...],
        Meta(
            description="Tables with `host`, and `delay`, `concurrency` or `jitter` for hosts that fit; the first "
            "counts. For a limit on all hosts that fit together see `group.rules`."
        ),
    ] = ()
    delay_max: Annotated[
        float,
        Meta(
            description="Longest delay, in seconds, that a host's requests to slow down or its silence lead to.",
            ge=0,
            le=86_400,
        ),
    ] = 300.0
    retry_after_max: Annotated[
        float,
        Meta(description="Longest wait, in seconds, that is granted to a server that names one.", ge=0, le=604_800),
    ] = 86_400.0
    failure_wait: Annotated[
        float,
        Meta(
            description="Seconds before a host that did not answer is asked again; doubles each time.",
            ge=0,
            le=86_400,
        ),
    ] = 10.0
    failures_max: Annotated[
        int, Meta(description="Requests in a row without an answer after which a host is given up.", ge=1, le=1000)
    ] = 5


@dataclass(slots=True)
class Treatment:
    """The settings of each host: the crawl's, with the first rule that fits its name."""

    settings: HostSettings
    _rules: tuple[tuple[Patterns, HostRule], ...]
    _known: dict[str, HostSettings] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: HostSettings) -> Treatment:
        """Raises `ConfigError` for a pattern that cannot be read."""
        rules = [
            (Patterns.of((rule.host,), f"host.rules, rule {n}"), rule) for n, rule in enumerate(settings.rules, 1)
        ]
        return cls(settings, tuple(rules))

    def host(self, name: str) -> HostSettings:
        """How this host is treated."""
        if not self._rules:
            return self.settings
        found = self._known.get(name)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[name] = self._find(name)
        return found

    def _find(self, name: str) -> HostSettings:
        for patterns, rule in self._rules:
            if patterns.match(name):
                return msgspec.structs.replace(
                    self.settings,
                    delay=self.settings.delay if rule.delay is None else rule.delay,
                    concurrency=rule.concurrency or self.settings.concurrency,
                    jitter=self.settings.jitter if rule.jitter is None else rule.jitter,
                )
        return self.settings


@unique
class Breaker(StrEnum):
    """Whether a host is asked at all, as its clock has it: the clock is stored, and this with it."""

    CLOSED = "closed"
    """It answers."""
    OPEN = "open"
    """It did not answer, and is left alone for now."""
    HALF_OPEN = "half_open"
    """Its rest is over: one request probes it, and what comes of that closes or opens it."""


def breaker(pace: Pace, now: int) -> Breaker:
    """The state of a host's circuit breaker at this time."""
    if pace.failures == 0:
        return Breaker.CLOSED
    return Breaker.OPEN if now < pace.next_at else Breaker.HALF_OPEN


def first(settings: HostSettings) -> Pace:
    """The clock of a host that was never asked: due at once."""
    return Pace(delay_ms=_ms(settings.delay))


def begin(pace: Pace, settings: HostSettings) -> Pace:
    """The clock at the start of a visit, under settings that may have changed since the last one ended.

    A longer delay holds from the last start on. A shorter one is reached answer by answer, but at a host that was
    never asked.
    """
    base = _base(pace, settings)
    if pace.next_at == 0:
        return replace(pace, delay_ms=base)
    longer = max(0, base - pace.delay_ms)
    return replace(pace, delay_ms=pace.delay_ms + longer, next_at=pace.next_at + longer)


def after(pace: Pace, outcome: Outcome, started_at: int, ended_at: int, settings: HostSettings) -> Pace:
    """The clock after a request that started and ended at these times (milliseconds since 1970 UTC)."""
    slowest = max(_base(pace, settings), _ms(settings.delay_max))
    if settings.adaptive and outcome.told is Told.PRESENT:
        pace = replace(pace, latency_ms=_latency(pace.latency_ms, ended_at - started_at))
    changed = _tempo(pace, outcome, _least(pace, settings, slowest), slowest)
    asked = min(outcome.retry_after_ms or 0, _ms(settings.retry_after_max))
    silent = _silence_ms(changed.failures, settings) if outcome.no_answer else 0
    rest = max(asked, silent)
    # Another request to this host may have been told to wait for longer: that stands, within reason.
    due = max(pace.next_at, ended_at + rest if rest else 0)
    latest = ended_at + max(slowest, _ms(settings.retry_after_max))
    return replace(changed, next_at=max(started_at + changed.delay_ms, min(due, latest)))


def with_jitter(pace: Pace, chance: Chance, settings: HostSettings) -> Pace:
    """The clock with its next time put off by a random part of the delay, never brought forward."""
    late = int(chance.random() * settings.jitter * pace.delay_ms)
    return replace(pace, next_at=pace.next_at + late) if late else pace


def with_crawl_delay(pace: Pace, seconds: float | None, cap: float) -> Pace:
    """The clock under what robots.txt asks for, which is None when it asks for nothing; `cap` is in seconds too.

    A longer delay holds from the last start on, so the next time moves with it. A shorter one than before is reached
    as after a slow-down, answer by answer.
    """
    asked = None if seconds is None or not seconds >= 0 else _ms(min(seconds, cap))
    delay = max(pace.delay_ms, asked or 0)
    return replace(pace, crawl_delay_ms=asked, delay_ms=delay, next_at=pace.next_at + delay - pace.delay_ms)


def condemned(pace: Pace, settings: HostSettings) -> str | None:
    """The class of dead letters for all that the host has queued, once it is given up; else None."""
    return HOST_UNREACHABLE if pace.failures >= settings.failures_max else None


def _base(pace: Pace, settings: HostSettings) -> int:
    """The delay that holds whatever comes: ours, or the host's own."""
    return max(_ms(settings.delay), pace.crawl_delay_ms or 0)


def _least(pace: Pace, settings: HostSettings, slowest: int) -> int:
    """The delay of a host in good health, at the speed it has now."""
    base = _base(pace, settings)
    if base == 0 or not settings.adaptive:
        return base
    return min(max(base, _REST * pace.latency_ms), slowest)


def _latency(usual: int, took: int) -> int:
    """How long answers take: quick to see that a host slows, slow to believe that it is well again."""
    took = max(0, took)
    if usual == 0:
        return took
    return (usual + took) // 2 if took > usual else usual - (usual - took) // 4


def _tempo(pace: Pace, outcome: Outcome, base: int, slowest: int) -> Pace:
    """Delay and counters after an outcome; the next time is not yet touched."""
    delay = min(max(pace.delay_ms, base), slowest)
    if outcome.told is Told.NOTHING:
        return replace(pace, delay_ms=delay)
    if outcome.no_answer:
        return replace(pace, delay_ms=delay, failures=pace.failures + 1)
    if outcome.slow_down:
        # Told how long, we wait that long; told again straight after, the delay itself is too short.
        if outcome.retry_after_ms is None or pace.slowed:
            delay = min(max(2 * delay, _FIRST_SLOW_DELAY_MS), slowest)
        return replace(pace, delay_ms=delay, failures=0, slowed=pace.slowed + 1)
    if outcome.kind in (Kind.TRANSIENT, Kind.BLOCKED):
        return replace(pace, delay_ms=delay, failures=0)
    return replace(pace, delay_ms=base + (delay - base) // 2, failures=0, slowed=0)


def _silence_ms(failures: int, settings: HostSettings) -> int:
    """How long a silent host is left alone: doubling from `failure_wait`, up to `delay_max`."""
    doublings = min(failures - 1, 32)
    return min(_ms(settings.failure_wait) << doublings, _ms(settings.delay_max))


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
