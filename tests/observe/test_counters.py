"""Counters made from events: what the progress display shows."""

from __future__ import annotations

import pytest

from crawlspace.events import (
    CarriedOut,
    Event,
    HostWaits,
    PageSettled,
    Paused,
    Resumed,
    ScopeWidened,
    TrapSeen,
    Warned,
)
from crawlspace.observe.counters import NOTICES, Counters


class Time:
    """Seconds in the hands of the test."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def page(kind: str = "done", error: str | None = None) -> PageSettled:
    return PageSettled("http://a/", kind, 200, error, 1000, 5, 0)


def test_the_rate_covers_the_last_ten_seconds() -> None:
    time = Time()
    counters = Counters(time)
    for _ in range(40):
        time.now += 0.5
        counters.see(page())
    assert counters.rate() == pytest.approx(2.0, rel=0.1)
    time.now += 60
    assert counters.rate() == 0


def test_a_first_burst_is_not_divided_by_nothing() -> None:
    counters = Counters(Time())
    counters.see(page())
    assert counters.rate() == 1.0


def test_errors_are_counted_by_class_and_refusals_are_none() -> None:
    counters = Counters(Time())
    for event in (page("dead", "http_404"), page("dead", "http_404"), page("skipped", "robots"), page()):
        counters.see(event)
    assert counters.errors == {"http_404": 2}
    assert counters.pages == 1
    assert counters.bytes == 4000


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (HostWaits("a.test", "host_unreachable", 0), "given up"),
        (HostWaits("a.test", "address_refused", 0), "network.allow"),
        (HostWaits("a.test", "asked us to slow down", 1_700_000_000_000), "2023-11-14"),
        (ScopeWidened("http://a/", "http://b/", "b"), "belongs to the crawl"),
        (Paused("disk"), "paused: disk"),
        (Resumed(), "resumed"),
        (TrapSeen("a.test", "calendar", "http://a.test/2024/01"), "looks like a trap (calendar), such as http://a"),
        (CarriedOut("requeue", {"looked": 7, "queued": 2}), "done: requeue (7 looked, 2 queued)"),
        (CarriedOut("pause a.test", {}), "done: pause a.test"),
        (Warned("\x1bhm"), "\\x1bhm"),
    ],
)
def test_what_a_person_should_know_becomes_a_line(event: Event, words: str) -> None:
    counters = Counters(Time())
    line = counters.see(event)
    assert line is not None
    assert words in line
    assert list(counters.notices) == [line]


def test_a_pause_is_remembered_until_it_ends_and_notices_are_bounded() -> None:
    counters = Counters(Time())
    counters.see(Paused("disk"))
    assert counters.paused == "disk"
    counters.see(Resumed())
    assert counters.paused is None
    for number in range(50):
        counters.see(Warned(str(number)))
    assert len(counters.notices) == NOTICES
