"""Hosts that look like traps are told, once, and in bounded memory."""

from __future__ import annotations

import hashlib

import pytest

from crawlspace.policy.traps import COMBINATIONS, HOSTS, MONTHS, PATHS, Alarm, Trap, TrapWatch
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
