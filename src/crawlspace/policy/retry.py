"""Whether a failed URL is tried again, and when: a table of waits and one function that reads it.

The table is data: from a class of failure (`http_429`), or its family (`http_5xx`), to what differs from the
settings. The wait is the URL's own; the host's clock is kept by `pace`, and a request starts when both allow it.

Zero means zero and none means none: a wait of 0 is due at once, a single try is never repeated. Every wait has a cap.
What the server asked for (Retry-After) wins over ours, shorter or longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from crawlspace.clock import Chance


class RetrySettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How often and how soon a failed URL is asked for again."""

    max: Annotated[int, Meta(description="Requests for one URL in all, the first one included.", ge=1, le=100)] = 3
    wait: Annotated[
        float, Meta(description="Seconds before the second request for a URL that failed.", ge=0, le=86_400)
    ] = 30.0
    factor: Annotated[
        float, Meta(description="By how much the wait grows from one failure of a URL to the next.", ge=1, le=10)
    ] = 2.0
    wait_max: Annotated[
        float,
        Meta(
            description="Longest wait for a failed URL, in seconds, unless its server asks for more.",
            ge=0,
            le=604_800,
        ),
    ] = 3600.0
    jitter: Annotated[
        float,
        Meta(
            description="Share of a wait that chance may take off, so that retries do not come in step.", ge=0, le=1
        ),
    ] = 0.2


class Rule(NamedTuple):
    """What differs from the settings for one class of failure."""

    stretch: float = 1.0
    """The first wait is this many times `retry.wait`."""
    tries: int | None = None
    """Requests in all, when fewer than `retry.max` are worth their cost; None means no limit of its own."""


DEFAULT = Rule()

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "http_5xx": DEFAULT,
        "http_429": Rule(stretch=2),
        "dns": Rule(stretch=2),
        # Our own trouble (no descriptors, no route) ends when someone acts, not within seconds.
        "local": Rule(stretch=10),
        # These seldom pass by themselves; one more try tells chance from fault.
        "tls": Rule(tries=2),
        "protocol": Rule(tries=2),
        "decoding": Rule(tries=2),
        "truncated": Rule(tries=2),
    }
)
"""By class, then by family; what is not listed follows the settings alone."""


class Failed(Struct, frozen=True):
    """A URL's latest failure."""

    error: str
    """Its class."""
    attempts: int
    """Requests that had an outcome so far, this one included."""
    retry_after_ms: int | None = None
    """What the server asked for, already cut to the longest wait we grant."""


def rule_for(error: str) -> Rule:
    """The row of a class: its own, else its family's (`http_503` is of `http_5xx`), else the default."""
    row = RULES.get(error)
    if row is None and error.startswith("http_"):
        row = RULES.get(f"{error[:6]}xx")
    return row or DEFAULT


def next_try(failed: Failed, now: int, chance: Chance, settings: RetrySettings) -> int | None:
    """When the URL may be asked for again (milliseconds since 1970 UTC); None when it has had all its tries."""
    rule = rule_for(failed.error)
    tries = settings.max if rule.tries is None else min(rule.tries, settings.max)
    if failed.attempts >= tries:
        return None
    if failed.retry_after_ms is not None:
        return now + failed.retry_after_ms
    growth = settings.factor ** (failed.attempts - 1)
    wait = min(settings.wait * rule.stretch * growth, settings.wait_max)
    return now + int(1000 * wait * (1 - settings.jitter * chance.random()))
