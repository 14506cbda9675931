"""Which hosts share a clock."""

from __future__ import annotations

import msgspec
import pytest

from crawlspace.errors import ConfigError
from crawlspace.policy import groups as groups_module
from crawlspace.policy.groups import Grouping, GroupSettings, PaceGroup, address_name, domain_name


def grouping(**fields: object) -> Grouping:
    return Grouping.of(msgspec.convert(fields, GroupSettings))


def test_by_default_nobody_shares_a_clock() -> None:
    alone = grouping()
    assert alone.group("www.example.com", "192.0.2.1") is None
    assert not alone.wants_address("www.example.com")
    assert alone.named("domain example.com") is None


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("example.com", "domain example.com"),
        ("a.b.example.co.uk:8080", "domain example.co.uk"),
        ("192.0.2.1:81", "domain 192.0.2.1:81"),
        ("[2001:db8::1]", "domain [2001:db8::1]"),
        ("localhost:8001", "domain localhost:8001"),
    ],
)
def test_hosts_of_a_registrable_domain_are_a_group(host: str, name: str) -> None:
    by_domain = grouping(by="domain", delay=2.5, concurrency=3)
    assert by_domain.group(host, None) == PaceGroup(name, 2500, 3)
    assert by_domain.named(name) == by_domain.group(host, None)
    assert domain_name(host) == name
    assert by_domain.named("address 192.0.2.1") is None, "a group of settings that have changed"
    assert not by_domain.wants_address(host)


def test_hosts_of_an_address_are_a_group_once_it_is_known() -> None:
    by_address = grouping(by="address")
    assert by_address.wants_address("example.com")
    assert by_address.group("example.com", None) is None
    assert by_address.group("example.com", "192.0.2.1") == PaceGroup(address_name("192.0.2.1"), 1000, 1)


@pytest.mark.parametrize("by", ["none", "domain", "address"])
def test_the_first_rule_that_fits_makes_the_group(by: str) -> None:
    rules = [{"host": r"\.shop\.test$", "delay": 0}, {"host": "glob:*.test", "concurrency": 7}]
    ruled = grouping(by=by, rules=rules)
    for _ in range(2):
        assert ruled.group("a.shop.test", "192.0.2.1") == PaceGroup(r"rule \.shop\.test$", 0, 1)
        assert ruled.group("a.test", None) == PaceGroup("rule glob:*.test", 1000, 7)
    assert ruled.named("rule glob:*.test") == ruled.group("a.test", None)
    assert not ruled.wants_address("a.test")
    assert ruled.wants_address("example.com") == (by == "address")


def test_the_rules_of_hosts_are_kept_at_hand_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups_module, "_REMEMBERED", 3)
    ruled = grouping(rules=[{"host": "1"}])
    for number in range(20):
        assert (ruled.group(f"h{number}.test", None) is not None) == ("1" in str(number))
        assert len(ruled._known) <= 3


def test_a_pattern_that_cannot_be_read_is_told_by_its_rule() -> None:
    with pytest.raises(ConfigError, match=r"group\.rules, rule 2"):
        grouping(rules=[{"host": "a"}, {"host": "("}])


def test_there_are_no_groups_without_a_way_to_make_them() -> None:
    assert grouping(by="none").is_off
    assert not grouping(by="none", rules=[{"host": "a"}]).is_off
    assert not grouping(by="domain").is_off
