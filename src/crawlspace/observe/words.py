"""Figures in words: sizes, durations, times, and what comes next for a URL."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from crawlspace.states import UrlState
from crawlspace.types import Reason, Story

FINAL = frozenset({Reason.BLOCKED_HOST, Reason.DROPPED})
"""Refusals that no path and no setting undoes."""


def size(count: float) -> str:
    """Bytes, with three digits and a unit: `980 B`, `1.21 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def duration(seconds: float) -> str:
    """Seconds, as `7 s`, `3:05 min` or `2:07 h`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"


def moment(at: int | None) -> str:
    """A stored time as ISO 8601 in UTC, to the second; `-` for none."""
    if not at:
        return "-"
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def what_next(story: Story, now: int) -> str:
    """What will happen to a URL, in a sentence."""
    match story.state:
        case UrlState.QUEUED:
            if story.due is not None and story.due > now:
                return (
                    f"waits until {moment(story.due)} (in {duration((story.due - now) / 1000)}), then it is fetched"
                )
            return "is fetched when its host's turn comes"
        case UrlState.LEASED:
            return "is being fetched by a worker; should that worker die, it returns to the queue"
        case UrlState.STORED:
            return "its capture is kept; it is read again from the archive, not from the web"
        case UrlState.DONE:
            return "nothing: it is done"
        case UrlState.REDIRECTED:
            return "nothing: what it redirects to is a URL of its own"
        case UrlState.SKIPPED:
            return _after_refusal(story.reason)
        case UrlState.DEAD:
            return "nothing, unless a person queues it again"


def _after_refusal(reason: str | None) -> str:
    if reason in FINAL:
        return "nothing: a person said so"
    if reason == Reason.IMPORTED:
        return "nothing: it was visited before, as what was imported says"
    return "nothing, unless a better path to it is found or the settings change"


_KIND = re.compile(r"(Expected |got )`([a-z]+(?: \| [a-z]+)*)`")
_KINDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "none",
    "object": "a table",
    "str": "a text",
}
"""Kinds of values in words, for those who never saw a type."""


def kinds_in_words(message: str) -> str:
    """What msgspec says of a value of a wrong kind, without the names of types."""
    return _KIND.sub(
        lambda match: match[1] + " or ".join(_KINDS.get(each, each) for each in match[2].split(" | ")), message
    )
