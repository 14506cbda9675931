"""One host's clock: when its next request may start, and when it is given up. The only place that computes a `Pace`.

Rules, in order of strength. No request starts earlier than one delay after the last one started. The delay is never
below the host's base: the larger of our setting and what robots.txt asks for. A host that asks us to slow down is
obeyed (Retry-After) or, when it does not say for how long, asked half as often; each good answer takes back half of
what was added. A host that does not answer is probed after waits that double. No wait is without a cap, so that a
clock that jumped or a server that lies cannot put a host off for ever.

Nothing here sleeps or fetches; the engine waits, the store keeps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from msgspec import Meta, Struct

from crawlspace.policy.outcome import Kind, Outcome, Told
from crawlspace.types import Pace

HOST_UNREACHABLE = "host_unreachable"
"""Class of the dead letters of a host that was given up."""

_FIRST_SLOW_DELAY_MS = 1000
"""A host without a delay that asks us to slow down gets this one: twice nothing would be nothing."""


class HostSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How gently a host is treated."""

    delay: Annotated[
        float,
        Meta(
            description="Seconds from the start of one request to a host to the start of the next.", ge=0, le=86_400
        ),
    ] = 1.0
    concurrency: Annotated[
        int, Meta(description="Requests that may be open to one host at the same time.", ge=1, le=64)
    ] = 1
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


def first(settings: HostSettings) -> Pace:
    """The clock of a host that was never asked: due at once."""
    return Pace(delay_ms=_ms(settings.delay))


def after(pace: Pace, outcome: Outcome, started_at: int, ended_at: int, settings: HostSettings) -> Pace:
    """The clock after a request that started and ended at these times (milliseconds since 1970 UTC)."""
    base = max(_ms(settings.delay), pace.crawl_delay_ms or 0)
    slowest = max(base, _ms(settings.delay_max))
    changed = _tempo(pace, outcome, base, slowest)
    asked = min(outcome.retry_after_ms or 0, _ms(settings.retry_after_max))
    silent = _silence_ms(changed.failures, settings) if outcome.no_answer else 0
    rest = max(asked, silent)
    # Another request to this host may have been told to wait for longer: that stands, within reason.
    due = max(pace.next_at, ended_at + rest if rest else 0)
    latest = ended_at + max(slowest, _ms(settings.retry_after_max))
    return replace(changed, next_at=max(started_at + changed.delay_ms, min(due, latest)))


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
    if outcome.kind is Kind.TRANSIENT:
        return replace(pace, delay_ms=delay, failures=0)
    return replace(pace, delay_ms=base + (delay - base) // 2, failures=0, slowed=0)


def _silence_ms(failures: int, settings: HostSettings) -> int:
    """How long a silent host is left alone: doubling from `failure_wait`, up to `delay_max`."""
    doublings = min(failures - 1, 32)
    return min(_ms(settings.failure_wait) << doublings, _ms(settings.delay_max))


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
