"""When a page is visited again, as a table of what was seen."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from crawlspace.policy.recrawl import GONE, RecrawlSettings, conditions, plan, with_next_visit
from crawlspace.types import (
    Again,
    Before,
    Died,
    Evidence,
    Fingerprints,
    Finished,
    Plan,
    QueuedUrl,
    Reason,
    Refused,
    RetryAt,
    Settlement,
    Unchanged,
    WasRedirect,
)

HOUR = 3_600_000
ON = RecrawlSettings(on=True, interval=7200, shortest=3600, longest=14_400)
FIXED = msgspec.structs.replace(ON, adaptive=False, interval=100_000)
BEFORE = Before("http://a.test/", 1, 200, b"x", interval_ms=2 * HOUR)
MOVED = Before("http://a.test/", 1, 301, target="http://b.test/", interval_ms=2 * HOUR)


def _url(before: Before | None) -> QueuedUrl:
    return QueuedUrl(1, b"k" * 16, "http://a.test/", 5, 0, before=before)


def _finished(before: Before | None, digest: bytes | None = b"x", text: bytes | None = None) -> Finished:
    prints = None if text is None else Fingerprints(text, b"", 1)
    return Finished(1, 1, _url(before), Evidence(1, 200, digest=digest, fingerprints=prints))


def _redirected(before: Before | None, target: str = "http://b.test/") -> WasRedirect:
    return WasRedirect(1, 1, _url(before), Evidence(1, 301), target)


def _died(before: Before | None, error: str | None) -> Died:
    return Died(1, 1, _url(before), Evidence(1, 404, error=error))


def _missed(*classes: str) -> Before:
    return replace(BEFORE, misses=classes)


@pytest.mark.parametrize(
    ("settlement", "settings", "again"),
    [
        (_finished(None), ON, Again(2 * HOUR)),
        (_finished(BEFORE), ON, Again(3 * HOUR, False)),
        (_finished(BEFORE, b"y"), ON, Again(HOUR, True)),
        (_finished(replace(BEFORE, interval_ms=HOUR), b"y"), ON, Again(HOUR, True)),
        (_finished(replace(BEFORE, interval_ms=4 * HOUR)), ON, Again(4 * HOUR, False)),
        (_finished(replace(BEFORE, interval_ms=None)), ON, Again(2 * HOUR, False)),
        (_finished(MOVED), ON, Again(HOUR, True)),
        (_finished(BEFORE, b"y"), FIXED, Again(100_000_000, True)),
        (Unchanged(1, 1, _url(BEFORE), Evidence(1, 304)), ON, Again(3 * HOUR, False)),
        (_redirected(None), ON, Again(2 * HOUR)),
        (_redirected(MOVED), ON, Again(3 * HOUR, False)),
        (_redirected(MOVED, "http://c.test/"), ON, Again(HOUR, True)),
        (_redirected(BEFORE), ON, Again(HOUR, True)),
        (_died(None, "http_404"), ON, None),
        (_died(BEFORE, "http_404"), ON, Again(24 * HOUR)),
        (_died(_missed("http_503"), "http_404"), ON, Again(24 * HOUR)),
        (_died(_missed("http_410"), "http_404"), ON, Again(None, True)),
        (_died(_missed("http_404", "http_503"), "http_500"), ON, Again(None)),
        (_died(BEFORE, None), ON, Again(24 * HOUR)),
    ],
)
def test_what_was_seen_decides_on_the_next_visit(
    settlement: Settlement, settings: RecrawlSettings, again: Again | None
) -> None:
    planned = with_next_visit(settlement, settings)
    assert isinstance(planned, Finished | Unchanged | WasRedirect | Died)
    assert planned.again == again


def test_the_text_decides_where_both_visits_have_one() -> None:
    first = with_next_visit(_finished(None, b"x", b"t" * 32), ON)
    assert isinstance(first, Finished)
    assert first.again == Again(2 * HOUR, None, b"t" * 16)
    before = replace(BEFORE, content=b"t" * 16)
    for text, changed in ((b"t" * 32, False), (b"u" * 32, True)):
        after = with_next_visit(_finished(before, b"other bytes", text), ON)
        assert isinstance(after, Finished)
        assert after.again is not None
        assert after.again.changed is changed


def test_a_page_that_is_missing_twice_in_a_row_is_called_gone() -> None:
    gone = with_next_visit(_died(_missed("http_404"), "http_410"), ON)
    assert isinstance(gone, Died)
    assert gone.evidence.error == GONE


@pytest.mark.parametrize("settlement", [_finished(BEFORE), _died(BEFORE, "http_404"), _redirected(MOVED)])
def test_nothing_is_planned_unless_it_is_wanted(settlement: Settlement) -> None:
    assert with_next_visit(settlement, RecrawlSettings()) is settlement


@pytest.mark.parametrize(
    "settlement",
    [RetryAt(1, 1, _url(BEFORE), Evidence(1, 503), 5), Refused(1, 1, _url(BEFORE), Reason.ROBOTS)],
)
def test_what_has_not_ended_or_was_not_asked_for_is_left_alone(settlement: Settlement) -> None:
    assert with_next_visit(settlement, ON) is settlement


@pytest.mark.parametrize(
    ("before", "headers"),
    [
        (None, ()),
        (BEFORE, ()),
        (replace(BEFORE, etag='W/"1"'), (("If-None-Match", 'W/"1"'),)),
        (replace(BEFORE, last_modified="yesterday"), (("If-Modified-Since", "yesterday"),)),
        (replace(BEFORE, etag='"1"', last_modified="x"), (("If-None-Match", '"1"'), ("If-Modified-Since", "x"))),
        (replace(MOVED, etag='"1"'), ()),
        (replace(BEFORE, status=None, etag='"1"'), ()),
        (replace(BEFORE, etag='"\r\nX: 1"'), ()),
        (replace(BEFORE, etag='"\xe9"'), ()),
    ],
)
def test_validators_are_sent_back_as_they_came_or_not_at_all(
    before: Before | None, headers: tuple[tuple[str, str], ...]
) -> None:
    assert conditions(before) == headers


def test_pages_without_a_plan_get_one_within_the_bounds() -> None:
    assert plan(ON) == Plan(2 * HOUR, HOUR, 4 * HOUR)
    assert plan(msgspec.structs.replace(ON, interval=1)) == Plan(HOUR, HOUR, 4 * HOUR)
    assert plan(FIXED) == Plan(100_000_000, 100_000_000, 100_000_000)


def test_bounds_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(ValueError, match="more than longest"):
        RecrawlSettings(shortest=10, longest=5)
