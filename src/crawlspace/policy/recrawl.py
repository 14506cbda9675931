"""When a page is visited again, and what a visit says about the ones before it.

A page is left alone for an interval. With `adaptive` the interval follows what was seen: shorter after a visit that
found something new, longer after one that did not, always within its bounds. A page that is gone, or failed, is asked
for once more after `recheck`; when it answers twice in a row that it is not there (404 or 410), it is called gone.
What failed too often in a row stays dead until a person revives it, and so does what was dead at its first visit.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from crawlspace.types import Again, Before, Died, Evidence, Finished, Plan, Settlement, Unchanged, WasRedirect

GONE = "gone"
"""Class of the dead letters of pages that were there, and answered twice in a row that they are not any more."""
FAILED_VISITS = 3
"""Visits in a row that may fail before a page that was there is dead for good."""
NOT_MODIFIED = 304

_GONE_STATUSES = frozenset({404, 410})
_GONE_CLASSES = frozenset(f"http_{status}" for status in _GONE_STATUSES)
_CONTENT_BYTES = 16

_Seconds = Annotated[float, Meta(ge=1, le=315_360_000)]


class RecrawlSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether and how often pages are visited again."""

    on: Annotated[bool, Meta(description="Visit pages again when they are due; `crawl --recrawl` sets it.")] = False
    stay: Annotated[
        bool, Meta(description="With nothing left to do, wait for the next visit that comes due instead of ending.")
    ] = False
    adaptive: Annotated[
        bool,
        Meta(description="Let each page's interval follow how often it changed; else all have the same."),
    ] = True
    interval: Annotated[_Seconds, Meta(description="Seconds from one visit of a page to the next, at first.")] = (
        604_800.0
    )
    shortest: Annotated[_Seconds, Meta(description="No page is visited again sooner, in seconds.")] = 3600.0
    longest: Annotated[_Seconds, Meta(description="No page is left alone for longer, in seconds.")] = 7_776_000.0
    shrink: Annotated[
        float, Meta(description="What the interval is multiplied with when a page has changed.", gt=0, le=1)
    ] = 0.5
    grow: Annotated[
        float, Meta(description="What the interval is multiplied with when a page has not changed.", ge=1, le=100)
    ] = 1.5
    recheck: Annotated[
        _Seconds, Meta(description="Seconds until a page that is gone, or failed, is asked for once more.")
    ] = 86_400.0

    def __post_init__(self) -> None:
        if self.shortest > self.longest:
            raise ValueError(f"shortest is {self.shortest}, which is more than longest, {self.longest}")


def plan(settings: RecrawlSettings) -> Plan:
    """How pages that ended without a plan get one."""
    first = _bounded(settings.interval, settings)
    if not settings.adaptive:
        return Plan(first, first, first)
    return Plan(first, _ms(settings.shortest), _ms(settings.longest))


def conditions(before: Before | None) -> tuple[tuple[str, str], ...]:
    """Request headers by which a server may say that nothing has changed (RFC 9110, section 13.1)."""
    if before is None or before.status is None or not 200 <= before.status < 300:
        return ()
    headers = (("If-None-Match", before.etag), ("If-Modified-Since", before.last_modified))
    return tuple((name, value) for name, value in headers if value and _is_plain(value))


def with_next_visit(settlement: Settlement, settings: RecrawlSettings) -> Settlement:
    """The settlement with the visit that follows it, where one does."""
    if not settings.on:
        return settlement
    match settlement:
        case Finished(evidence=evidence):
            content = _content(evidence)
            changed = _has_changed(evidence, content, settlement.url.before)
            return replace(settlement, again=_again(settlement.url.before, changed, settings, content))
        case Unchanged():
            return replace(settlement, again=_again(settlement.url.before, False, settings))
        case WasRedirect(target=target):
            before = settlement.url.before
            changed = None if before is None else before.target != target
            return replace(settlement, again=_again(before, changed, settings))
        case Died():
            return _missed(settlement, settings)
        case _:
            return settlement


def _again(
    before: Before | None, changed: bool | None, settings: RecrawlSettings, content: bytes | None = None
) -> Again:
    last = None if before is None else before.interval_ms
    if last is None or changed is None or not settings.adaptive:
        return Again(_bounded(settings.interval, settings), changed, content)
    factor = settings.shrink if changed else settings.grow
    return Again(_bounded(last / 1000 * factor, settings), changed, content)


def _missed(died: Died, settings: RecrawlSettings) -> Died:
    before = died.url.before
    if before is None:
        return died
    error = died.evidence.error or ""
    if error in _GONE_CLASSES and before.misses and before.misses[-1] in _GONE_CLASSES:
        return replace(died, evidence=replace(died.evidence, error=GONE), again=Again(None, True))
    if len(before.misses) + 1 >= FAILED_VISITS:
        return replace(died, again=Again(None))
    return replace(died, again=Again(_ms(settings.recheck)))


def _has_changed(evidence: Evidence, content: bytes | None, before: Before | None) -> bool | None:
    """Whether the page says something new: by its text where both visits have it, else by its bytes."""
    if before is None:
        return None
    if content is not None and before.content is not None:
        return content != before.content
    return evidence.digest != before.digest or before.target is not None


def _content(evidence: Evidence) -> bytes | None:
    """What is left of a page without its volatile parts."""
    return None if evidence.fingerprints is None else evidence.fingerprints.text[:_CONTENT_BYTES]


def _is_plain(value: str) -> bool:
    """Whether a validator can be sent back: printable ASCII, as RFC 9110 has it."""
    return value.isascii() and value.isprintable()


def _bounded(seconds: float, settings: RecrawlSettings) -> int:
    if not settings.adaptive:
        return _ms(settings.interval)
    return _ms(min(max(seconds, settings.shortest), settings.longest))


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
