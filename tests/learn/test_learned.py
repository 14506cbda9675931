"""Learned rules as settings, beside those that a person made."""

from __future__ import annotations

from typing import Any

import pytest

from crawlspace.urls import HostChoices, IdentitySettings, canonicalize, policy_from
from crawlspace.urls.difference import may_part
from crawlspace.urls.learned import with_rules
from crawlspace.urls.variants import HostRule, RuleKind

SLASH = HostRule(RuleKind.SLASH, "a.test")
WWW = HostRule(RuleKind.WWW, "www.a.test")


def settings(*hosts: dict[str, Any], **choices: Any) -> IdentitySettings:
    return IdentitySettings(**choices, hosts=[HostChoices(**host) for host in hosts])


def mirror(host: str, of: str) -> HostRule:
    return HostRule(RuleKind.MIRROR, host, of)


def form(url: str, made: IdentitySettings) -> str:
    return canonicalize(url, policy=policy_from(made))


def test_without_rules_the_settings_stay_as_they_are() -> None:
    assert with_rules(settings(strip=["a"]), []) == settings(strip=["a"])


def test_each_rule_is_an_entry_behind_those_of_the_settings_in_its_order() -> None:
    made = with_rules(settings({"suffix": "b.test", "sort": False}), [SLASH, WWW])
    assert [entry.suffix or entry.host for entry in made.hosts] == ["b.test", "a.test", "www.a.test"]


def test_a_persons_choice_for_a_host_stands() -> None:
    made = with_rules(settings({"suffix": "a.test", "trailing_slash": "keep"}), [SLASH])
    assert form("http://a.test/x/", made) == "http://a.test/x/"


def test_rules_that_were_written_into_the_settings_are_not_there_twice() -> None:
    rules = [SLASH, HostRule(RuleKind.PARAM, "a.test", "p"), WWW, HostRule(RuleKind.ID_SEGMENT, "a.test", "s-")]
    exported = with_rules(settings(), rules)
    assert with_rules(exported, rules) == exported


def test_what_a_person_keeps_is_kept() -> None:
    made = with_rules(settings(keep=["p"]), [HostRule(RuleKind.PARAM, "a.test", "p")])
    assert form("http://a.test/?p=1", made) == "http://a.test/?p=1"


def test_a_persons_fold_of_a_host_stands() -> None:
    own = settings({"host": "m.test", "fold_into": "b.test"})
    assert form("http://m.test/", with_rules(own, [mirror("m.test", "a.test")])) == "http://b.test/"


def test_rules_of_a_name_that_is_folded_away_hold_under_the_name_that_stays() -> None:
    made = with_rules(settings(), [HostRule(RuleKind.SLASH, "www.a.test"), WWW])
    assert form("http://www.a.test/x/", made) == "http://a.test/x"


@pytest.mark.parametrize(
    "rules",
    [
        [mirror("a.test", "b.test"), mirror("b.test", "a.test")],
        [mirror("a.test", "b.test"), mirror("b.test", "c.test"), mirror("c.test", "a.test")],
        [mirror("a.test", "www.a.test"), WWW],
    ],
)
def test_of_hosts_counted_as_each_other_the_last_rule_is_left_out(rules: list[HostRule]) -> None:
    made = with_rules(settings(), rules)
    assert len(made.hosts) == len(rules) - 1
    assert form("http://a.test/", made) == f"http://{rules[-1].host}/"


def test_a_circle_through_a_persons_own_rule_is_left_out_too() -> None:
    own = settings({"host": "b.test", "fold_into": "a.test"})
    assert form("http://b.test/", with_rules(own, [mirror("a.test", "b.test")])) == "http://a.test/"


def test_a_host_is_counted_as_one_other_only() -> None:
    made = with_rules(settings(), [mirror("m.test", "a.test"), mirror("m.test", "b.test")])
    assert form("http://m.test/", made) == "http://a.test/"


def test_index_documents_of_one_host_add_up() -> None:
    own = settings({"host": "b.test", "index_documents": ["x.html"]}, index_documents=["start.html"])
    documents = [HostRule(RuleKind.INDEX, "a.test", name) for name in ("index.php", "home.php", "index.php")]
    made = with_rules(own, [*documents, HostRule(RuleKind.INDEX, "b.test", "home.php")])
    for name in ("start.html", "index.php", "home.php"):
        assert form(f"http://a.test/f/{name}", made) == "http://a.test/f/"
    assert form("http://b.test/home.php", made) == "http://b.test/home.php"


def test_rules_that_only_grow_part_no_pages() -> None:
    param = HostRule(RuleKind.PARAM, "a.test", "p")
    before, after = (policy_from(with_rules(settings(), rules)) for rules in ([SLASH], [SLASH, param]))
    assert not may_part(before.text, after.text)
    assert may_part(after.text, before.text)
