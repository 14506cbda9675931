"""What an answer means: a fetch result sorted into one of five kinds, with all that later decisions ask about it.

The tables here are the whole knowledge of statuses and failures; whoever needs to know "is this worth another try"
or "does this count against the host" reads the outcome and never the status. A status that was read decides, even
when the body broke off behind it: a 404 with half a body is a 404.

This module does not say how often or when to try again (`retry`), nor what it costs the host (`pace`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import StrEnum, unique
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from crawlspace.exchange import FetchError, FetchResult, Truncated

DAY_MS = 86_400_000

TRUNCATED = "truncated"
"""Error class of a successful answer whose body broke off; another try may bring the whole."""
BLOCKED = "blocked"
"""Error class of an answer that only keeps us out: a challenge, a captcha, a wall (`policy.blocked`)."""
REDIRECT_LOOP = "redirect_loop"
"""Error class of a page that only ever leads back to itself."""
SOFT_404 = "soft_404"
"""Error class of an answer that is a success by its status, and says or shows that there is no such page."""
BAD_LOCATION = "bad_location"
"""Error class of a redirect to something that cannot be fetched."""


@unique
class Kind(StrEnum):
    """The five ways a request can turn out."""

    SUCCESS = "success"
    """There is something to keep and read."""
    REDIRECT = "redirect"
    """The answer is at another address."""
    TRANSIENT = "transient"
    """Failed for now; another try may do better."""
    TERMINAL = "terminal"
    """Failed for good; another try would bring the same."""
    BLOCKED = "blocked"
    """We are kept out: another try would bring the same, another route may not. Said by `policy.blocked` alone."""


@unique
class Told(StrEnum):
    """What a request tells about the host."""

    PRESENT = "present"
    """The host answered, if badly."""
    ABSENT = "absent"
    """The host did not answer: counts towards giving it up."""
    NOTHING = "nothing"
    """The request never left, or was ours to fail: the host is not to blame."""


class Failure(NamedTuple):
    """One row of the table of failures."""

    kind: Kind
    told: Told


FAILURES: Mapping[FetchError, Failure] = MappingProxyType(
    {
        FetchError.DNS: Failure(Kind.TRANSIENT, Told.ABSENT),
        FetchError.ADDRESS_REFUSED: Failure(Kind.TERMINAL, Told.NOTHING),
        FetchError.CONNECT: Failure(Kind.TRANSIENT, Told.ABSENT),
        FetchError.CONNECT_TIMEOUT: Failure(Kind.TRANSIENT, Told.ABSENT),
        # A handshake fails for passing reasons too; a bad certificate fails for every URL of the host.
        FetchError.TLS: Failure(Kind.TRANSIENT, Told.ABSENT),
        FetchError.RESET: Failure(Kind.TRANSIENT, Told.ABSENT),
        FetchError.IDLE_TIMEOUT: Failure(Kind.TRANSIENT, Told.ABSENT),
        FetchError.TOTAL_TIMEOUT: Failure(Kind.TRANSIENT, Told.ABSENT),
        FetchError.TOO_SLOW: Failure(Kind.TRANSIENT, Told.PRESENT),
        FetchError.PROTOCOL: Failure(Kind.TRANSIENT, Told.PRESENT),
        FetchError.HEAD_TOO_LARGE: Failure(Kind.TERMINAL, Told.PRESENT),
        FetchError.DECODING: Failure(Kind.TRANSIENT, Told.PRESENT),
        FetchError.LOCAL: Failure(Kind.TRANSIENT, Told.NOTHING),
    }
)
"""Every way to fail without a whole answer; a test holds it complete."""

TRANSIENT_STATUSES = frozenset({408, 425, 429})
"""Refusals below 500 that RFC 9110, RFC 8470 and RFC 6585 describe as a matter of time."""
TERMINAL_SERVER_ERRORS = frozenset({501, 505})
"""Errors from 500 on that say "never": method or protocol version not supported."""
SLOW_DOWN_STATUSES = frozenset({429, 503})
PERMANENT_REDIRECTS = frozenset({301, 308})
NO_REDIRECTS = frozenset({304, 305, 306})
"""Statuses from 300 on whose Location, if any, is not where the page is (RFC 9110, 15.4.5 to 15.4.7)."""


class Outcome(Struct, frozen=True):
    """One request, understood."""

    kind: Kind
    error: str | None = None
    """Class of the failure, such as `http_404` or `dns`; None for successes and redirects."""
    location: str | None = None
    """Where a redirect points, as it stands in the header: neither resolved nor trusted."""
    permanent: bool = False
    """The redirect holds for good (301, 308)."""
    retry_after_ms: int | None = None
    """How long the server asks to be left alone, from now, cut to the longest wait we grant."""
    slow_down: bool = False
    """The server asks for fewer requests."""
    told: Told = Told.PRESENT
    partial: bool = False
    """A success that broke off with some of its body in hand: better than nothing when no try is left."""
    signature: str = ""
    """By what it is known that we are blocked."""

    @property
    def no_answer(self) -> bool:
        return self.told is Told.ABSENT


def classify(result: FetchResult, now: int, retry_after_max_ms: int = DAY_MS) -> Outcome:
    """Sort a fetch result.

    `now` is milliseconds since 1970 UTC, against which a Retry-After date is read; a longer wait than
    `retry_after_max_ms` is cut to it.
    """
    if result.status == 0:
        return _unanswered(result.error or FetchError.PROTOCOL)
    asked = wait_asked(result.headers.get("retry-after"), now)
    wait = None if asked is None else min(asked, retry_after_max_ms)
    slow_down = result.status in SLOW_DOWN_STATUSES or bool(wait)
    if 200 <= result.status < 300 or result.status == 304:
        return _answered_well(result, wait, slow_down)
    location = _as_utf8(result.headers.get("location").strip())
    if location and 300 <= result.status < 400 and result.status not in NO_REDIRECTS:
        return Outcome(
            Kind.REDIRECT,
            location=location,
            permanent=result.status in PERMANENT_REDIRECTS,
            retry_after_ms=wait,
            slow_down=slow_down,
        )
    kind = Kind.TRANSIENT if _is_passing(result.status) else Kind.TERMINAL
    return Outcome(kind, error=f"http_{result.status}", retry_after_ms=wait, slow_down=slow_down)


def _as_utf8(value: str) -> str:
    """A header's text whose bytes are UTF-8, as most servers mean it that send other than ASCII; else as it is."""
    try:
        return value if value.isascii() else value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def dead_end(error: str) -> Outcome:
    """An outcome that only its reader could see, such as a redirect that leads nowhere: failed for good."""
    return Outcome(Kind.TERMINAL, error=error)


def wait_asked(text: str, now: int) -> int | None:
    """Milliseconds from `now` that a Retry-After value asks for; None when it cannot be read.

    RFC 9110, 10.2.3: whole seconds, or an HTTP date in any of its three forms. A date in the past asks for nothing.
    """
    value = text.strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        # A server may write a number longer than any integer we could multiply: from ten digits on it is "never".
        return int(value.lstrip("0")[:10] or "0") * 1000
    due = _http_date(value)
    return None if due is None else max(0, due - now)


_LONGEST_DATE = 64
"""Characters; the longest date RFC 9110 knows has 33. What is longer is not parsed at all."""


def _http_date(value: str) -> int | None:
    """Milliseconds since 1970 of an HTTP date (RFC 9110, 5.6.7), read leniently as to weekday and zone name."""
    if len(value) > _LONGEST_DATE:
        return None
    try:
        date = parsedate_to_datetime(value)
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return int(seconds) * 1000 if seconds >= 0 else None


def _is_passing(status: int) -> bool:
    if 500 <= status < 600:
        return status not in TERMINAL_SERVER_ERRORS
    return status in TRANSIENT_STATUSES


def _unanswered(error: FetchError) -> Outcome:
    kind, told = FAILURES[error]
    return Outcome(kind, error=error.value, told=told)


def _answered_well(result: FetchResult, wait: int | None, slow_down: bool) -> Outcome:
    """A 2xx, or 304: whole, cut by our own cap (which is a success), or broken off."""
    broken_off = result.truncated in (Truncated.DISCONNECT, Truncated.TIME)
    if result.error is None and not broken_off:
        return Outcome(Kind.SUCCESS, retry_after_ms=wait, slow_down=slow_down)
    error = result.error.value if result.error and not broken_off else TRUNCATED
    return Outcome(
        Kind.TRANSIENT,
        error=error,
        retry_after_ms=wait,
        slow_down=slow_down,
        told=Told.NOTHING if result.error is FetchError.LOCAL else Told.PRESENT,
        partial=bool(result.payload),
    )
