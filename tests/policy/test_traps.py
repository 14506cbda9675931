"""Hosts that look like traps are told, once, and in bounded memory."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.policy.patterns import Patterns
from crawlspace.policy.traps import (
    COMBINATIONS,
    HOSTS,
    MONTHS,
    PATHS,
    SHAPE_LIMIT,
    Alarm,
    Said,
    Trap,
    TrapSettings,
    TrapWatch,
    Tread,
    after,
    month_in,
    scope_rule,
    shape_of,
    tread,
)
from crawlspace.types import Address


def address(path: str, host: str = "a.test") -> Address:
    url = f"http://{host}{path}"
    key = (
        hashlib.blake2b(host.encode(), digest_size=6).digest()
        + hashlib.blake2b(url.encode(), digest_size=10).digest()
    )
    return Address(url, url, host, key)


def alarms(watch: TrapWatch, paths: list[str], host: str = "a.test") -> list[Alarm]:
    return [alarm for path in paths if (alarm := watch.see(address(path, host))) is not None]


def months(n: int, spelling: str) -> list[str]:
    return [spelling.format(y=1990 + number // 12, m=1 + number % 12) for number in range(n)]


@pytest.mark.parametrize(
    "spelling",
    [
        "/{y}/{m:02}",
        "/events/{y}-{m:02}-17",
        "/calendar?date={y}{m:02}01&view=day",
        "/c?year={y}&view=2&month={m}",
        "/c?month={m}&lang=en&year={y}",
    ],
)
def test_a_calendar_is_told_by_the_month_that_is_one_too_many(spelling: str) -> None:
    watch = TrapWatch()
    paths = months(MONTHS, spelling)
    assert alarms(watch, paths * 2) == [], "repeats count once"
    [one_more] = months(MONTHS + 1, spelling)[-1:]
    [alarm] = alarms(watch, [one_more, one_more, *months(MONTHS + 50, spelling)])
    assert (alarm.host, alarm.kind, alarm.example) == ("a.test", Trap.CALENDAR, f"http://a.test{one_more}")
    assert alarm.hid == int.from_bytes(address("/").key[:6], "big")


@pytest.mark.parametrize("spelling", ["/page/{y}{m:02}999", "/{m:02}/{y}1", "/item-{y}", "/id{y}9{m:02}"])
def test_numbers_that_are_no_months_are_no_calendar(spelling: str) -> None:
    assert alarms(TrapWatch(), months(MONTHS + 100, spelling)) == []


ANY_MONTH = re.compile(
    r"(?<![0-9])((?:1[6-9]|2[0-9])[0-9]{2})[-/_.]?(0[1-9]|1[0-2])(?![0-9]{3})"
    r"|year=([0-9]{4})[^#]*?&month=([0-9]{1,2})"
    r"|month=([0-9]{1,2})[^#]*?&year=([0-9]{4})"
)
"""What is meant, in one expression."""


@given(st.lists(st.sampled_from([*"0129-/&?#x", "20", "19", "08", "12", "2024", "year=", "month="]), max_size=12))
def test_the_quick_search_for_months_finds_what_the_plain_one_does(parts: list[str]) -> None:
    text = "".join(parts)
    found = ANY_MONTH.search(text)
    if found is None:
        assert month_in(text) is None
    else:
        y, m, y1, m2, m1, y2 = found.groups()
        assert month_in(text) == (y or y1 or y2, (m or m2 or m1).zfill(2))


def test_parameters_are_told_by_the_combination_that_is_one_too_many() -> None:
    """Counted by path; a few may share a place in the bitmap, none is counted twice."""
    watch = TrapWatch()
    paths = [f"/list?a={number}&b=1" for number in range(COMBINATIONS)]
    assert alarms(watch, paths * 3) == []
    [alarm] = alarms(watch, [f"/list?b={number}&c=1" for number in range(COMBINATIONS)])
    assert alarm.kind is Trap.PARAMETERS


def test_one_parameter_is_no_combination_and_many_paths_are_no_trap() -> None:
    watch = TrapWatch()
    assert alarms(watch, [f"/list?a={number}" for number in range(3 * COMBINATIONS)]) == []
    assert alarms(watch, [f"/{number}?a=1&b=2" for number in range(3 * COMBINATIONS)]) == []


def test_a_busy_path_is_not_forgotten_for_many_quiet_ones() -> None:
    watch = TrapWatch()
    told: list[Alarm] = []
    for number in range(2 * COMBINATIONS):
        told += alarms(watch, [f"/list?a={number}&b=1", f"/list?a={number}&b=2", f"/{number}?a=1&b=2"])
    assert [alarm.kind for alarm in told] == [Trap.PARAMETERS]
    [host] = watch._hosts.values()
    assert len(host.paths) <= PATHS


def test_both_kinds_are_told_and_hosts_are_counted_apart() -> None:
    watch = TrapWatch()
    calendar, filters = months(MONTHS + 1, "/{y}/{m:02}"), [f"/f?a={n}&b=1" for n in range(2 * COMBINATIONS)]
    assert [alarm.kind for alarm in alarms(watch, calendar + filters)] == [Trap.CALENDAR, Trap.PARAMETERS]
    assert alarms(watch, calendar[:-1], "b.test") == []
    assert [alarm.host for alarm in alarms(watch, calendar, "b.test")] == ["b.test"]


def test_only_so_many_hosts_are_watched() -> None:
    watch = TrapWatch()
    for number in range(2 * HOSTS):
        assert alarms(watch, ["/2024/01"], f"h{number}.test") == []
    assert len(watch._hosts) == HOSTS


# -- shapes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "shape"),
    [
        ("http://a.test/", "/"),
        ("http://a.test/month/2026/01", "/month/{n}/{n}"),
        ("http://a.test/p/item-17.html", "/p/item-{n}.html"),
        ("http://a.test/list?size=small&colour=blue&size=tiny", "/list?colour&size"),
        ("http://a.test/s/1f3870be274f6c49b3e31a0c6728957f/cart", "/s/{id}/cart"),
        ("http://a.test/s/0b9f2c1e-77aa/x", "/s/{id}/x"),
        ("http://a.test/(S(lit3py55t21z5v55vlm25s55))/x", "/{id}/x"),
        ("http://a.test/" + "w" * 41, "/{id}"),
        ("http://a.test/1/2/3/4/5/6/7/8/9/10", "/{n}/{n}/{n}/{n}/{n}/{n}/{n}/{n}/…"),
        ("http://a.test/b%C3%BCcher-7", "/b%C3%BCcher-{n}"),
        ("http://a.test/?", "/?"),
        ("http://a.test/defaced/facade", "/defaced/facade"),
    ],
)
def test_a_shape_is_an_address_without_numbers_ids_and_values(url: str, shape: str) -> None:
    assert shape_of(url) == shape


def test_a_shape_has_bounds() -> None:
    assert len(shape_of("http://a.test/" + "/".join(["word" * 9] * 8))) <= SHAPE_LIMIT


@pytest.mark.parametrize(
    "url",
    [
        "http://a.test/month/2026/01",
        "http://a.test/list?colour=blue&size=tiny",
        "http://a.test/room?visit=1f3870be274f6c49b3e31a0c6728957f",
        "http://a.test/1/2/3/4/5/6/7/8/9/10",
        "http://a.test/s/1f3870be274f6c49b3e31a0c6728957f/cart",
        "http://a.test/p2/?x7=3",
    ],
)
def test_the_rule_for_a_shape_fits_it_and_nothing_beside(url: str) -> None:
    """It is ready for `scope.exclude`: what it says is read by the same engine."""
    rule = Patterns.of([scope_rule("a.test", shape_of(url))], "scope.exclude")
    assert rule.match(url)
    assert rule.match(url.replace("http:", "https:"))
    beside = ("", "monthly/2026/01/x", "listing", "room", "p2/")
    for other in [url.replace("a.test", "b.a.test"), *(f"http://a.test/{path}" for path in beside)]:
        assert not rule.match(other), other


@pytest.mark.parametrize(
    ("said", "run"),
    [
        (Said(new=False, length=300, into=1, elsewhere=0), 6),
        (Said(new=True, length=300, into=1, elsewhere=0), 0),
        (Said(new=False, length=300, into=1, elsewhere=1), 0),
        (Said(new=False, length=300, into=0, elsewhere=0), 5),
        (Said(new=False, length=255, into=1, elsewhere=0), 5),
    ],
    ids=["empty", "new text", "leads elsewhere", "leads nowhere", "says too little"],
)
def test_a_run_grows_by_pages_that_lead_only_further(said: Said, run: int) -> None:
    assert after(5, said) == run


@pytest.mark.parametrize(
    ("run", "slow", "stop", "how"),
    [
        (9, 10, 40, Tread.FREELY),
        (10, 10, 40, Tread.SLOWLY),
        (40, 10, 40, Tread.NOT),
        (99, 0, 0, Tread.FREELY),
        (99, 10, 0, Tread.SLOWLY),
        (39, 0, 40, Tread.FREELY),
    ],
)
def test_a_long_run_is_slowed_and_a_longer_one_stopped(run: int, slow: int, stop: int, how: Tread) -> None:
    assert tread(run, TrapSettings(slow_after=slow, stop_after=stop)) is how
