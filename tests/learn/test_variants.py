"""Two addresses of one page, and the rule that would make them one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.urls import IdentitySettings, canonicalize, policy_from
from crawlspace.urls.learned import with_rules
from crawlspace.urls.variants import HostRule, RuleKind, looks_random, variants

ID, OTHER_ID = "cdc993a493e899bed04f4d0c8a462a03", "0a1b2c3d4e5f60718293a4b5c6d7e8f9"


def rule(kind: str, detail: str = "", host: str = "a.test") -> HostRule:
    return HostRule(RuleKind(kind), host, detail)


CASES = [
    ("http://a.test/x", "https://a.test/x", [rule("scheme")]),
    ("http://www.a.test/x", "http://a.test/x", [rule("www", host="www.a.test")]),
    ("http://www.a.test/x", "https://a.test/x", [rule("www", host="www.a.test"), rule("scheme")]),
    ("http://m.a.test/x", "https://a.test/x", [rule("mirror", "a.test", "m.a.test")]),
    ("http://a.test/x", "http://a.test/x/", [rule("slash")]),
    ("http://a.test/x/index.php", "http://a.test/x/", [rule("index", "index.php")]),
    ("http://a.test/", "http://a.test/Home.aspx", [rule("index", "Home.aspx")]),
    ("http://a.test/About", "http://a.test/about", [rule("case")]),
    ("http://a.test/x?p=1", "http://a.test/x?p=2", [rule("param", "p")]),
    ("http://a.test/x?p=1", "http://a.test/x", [rule("param", "p")]),
    ("http://a.test/x?a=1&p=1&z=3", "http://a.test/x?a=1&z=3", [rule("param", "p")]),
    ("http://a.test/x;v=1/y", "http://a.test/x/y", [rule("path_param", "v")]),
    ("http://a.test/x;v=1/y;v=2", "http://a.test/x;v=3/y", [rule("path_param", "v")]),
    ("http://a.test/x/print", "http://a.test/x", [rule("view", "print")]),
    (f"http://a.test/s-{ID}/y", "http://a.test/y", [rule("id_segment", "s-")]),
    (f"http://a.test/y/{ID}", "http://a.test/y", [rule("id_segment")]),
    (f"http://a.test/{ID}/y", f"http://a.test/{OTHER_ID}/y", [rule("id_segment")]),
]


@pytest.mark.parametrize(("one", "other", "expected"), CASES)
def test_the_rule_that_makes_two_addresses_one_is_found_either_way(
    one: str, other: str, expected: list[HostRule]
) -> None:
    assert list(variants(one, other)) == expected
    back = variants(other, one)
    assert [each.kind for each in back] == [each.kind for each in expected]


@pytest.mark.parametrize(("one", "other", "expected"), CASES)
def test_a_crawl_under_the_rules_counts_the_two_as_one(one: str, other: str, expected: list[HostRule]) -> None:
    rules = [*expected, *([rule("scheme")] if expected[0].kind is RuleKind.MIRROR else [])]
    made = policy_from(with_rules(IdentitySettings(), rules))
    assert canonicalize(one, policy=made) == canonicalize(other, policy=made)
    if len(expected) == 1:
        assert expected[0].form(one) == expected[0].form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://a.test/x", "http://a.test/x"),
        ("http://a.test/x", "http://a.test/y"),
        ("http://a.test/x", "http://a.test/x/y"),
        ("http://a.test/x/", "http://a.test/x//print"),
        ("http://a.test/", "http://a.test/print"),
        ("http://a.test/x", "http://a.test/x/index.html"),
        ("http://a.test/x/", "http://a.test/x/y.html"),
        ("http://a.test:81/x", "http://a.test/x"),
        ("http://a.test/#!x", "http://a.test/#!y"),
        ("http://www.a.test/x", "http://a.test/x/"),
        ("http://www.a.test/x?a=1", "http://a.test/x?a=2"),
        ("http://a.test/x?a=1", "http://a.test/x/?a=2"),
        ("http://a.test/x?a=1&b=1", "http://a.test/x?a=2&b=2"),
        ("http://a.test/x?a*=1", "http://a.test/x?a*=2"),
        ("http://a.test/x?=1", "http://a.test/x?=2"),
        (f"http://a.test/x?{'n' * 201}=1", "http://a.test/x"),
        ("http://a.test/x;v=1", "http://a.test/x;w=1"),
        ("http://a.test///", "http://a.test//;v=1/"),
        ("http://a.test/x/", "http://a.test/x;v=1/x"),
        ("http://a.test/x;v=1", "http://a.test/y;v=1"),
        ("http://a.test/x;v=1;v=2/z", "http://a.test/x;v=2;v=1/z"),
        (f"http://a.test/s-{ID}/y", f"http://a.test/t-{OTHER_ID}/y"),
        (f"http://a.test/s-{ID}/y", "http://a.test/words/y"),
        (f"http://a.test/{ID}/y", "http://a.test/z"),
        (f"http://a.test/{ID}/x", f"http://a.test/{OTHER_ID}/y"),
    ],
)
def test_what_no_single_rule_makes_one_says_nothing(one: str, other: str) -> None:
    assert variants(one, other) == ()


def test_a_rule_says_nothing_of_other_hosts() -> None:
    assert rule("slash").form("http://b.test/x/") is None
    assert rule("slash").form("http://a.test/x/") == "http://a.test/x"
    assert str(rule("param", "p")) == "a.test param p"


@pytest.mark.parametrize(
    ("found", "one", "other", "expected"),
    [
        (rule("param", "v"), f"http://a.test/?v={ID}", "http://a.test/", True),
        (rule("param", "v"), f"http://a.test/?v={ID}", "http://a.test/?v=red", False),
        (rule("param", "w"), f"http://a.test/?v={ID}", "http://a.test/?v=red", False),
        (rule("id_segment"), f"http://a.test/{ID}", "http://a.test/", True),
        (rule("slash"), "http://a.test/x", "http://a.test/x/", False),
    ],
)
def test_random_ids_are_known_by_their_looks(found: HostRule, one: str, other: str, expected: bool) -> None:
    assert looks_random(found, one, other) is expected


PIECES = st.sampled_from(["/", "x", "X", "index.html", ";v=1", ID, "?", "&", "a=1", "a=2", "b", "s-", "home"])
URLS = st.builds(
    lambda head, tail: canonicalize(f"{head}/{''.join(tail)}"),
    st.sampled_from(["http://a.test", "https://a.test", "http://www.a.test", "https://b.test"]),
    st.lists(PIECES, max_size=7),
)


@given(URLS, URLS)
def test_whatever_rules_are_found_do_make_the_two_one(one: str, other: str) -> None:
    rules = list(variants(one, other))
    if not rules:
        return
    made = policy_from(with_rules(IdentitySettings(), [*rules, HostRule(RuleKind.SCHEME, rules[0].names[-1])]))
    first, second = (canonicalize(url, policy=made) for url in (one, other))
    assert first == second
