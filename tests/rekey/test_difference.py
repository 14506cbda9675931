"""What differs between two sets of URL rules, in words, and whether pages may come apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.urls import HostChoices, IdentitySettings, Policy, UrlError, canonicalize, policy_from
from crawlspace.urls.difference import difference, may_part


def policy(*hosts: dict[str, Any], **choices: Any) -> Policy:
    return policy_from(IdentitySettings(**choices, hosts=[HostChoices(**host) for host in hosts]))


PLAIN = policy()
SUFFIX = {"suffix": "a.test"}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (PLAIN, PLAIN, []),
        (PLAIN, policy(fold_www=True), ["fold_www: no -> yes"]),
        (policy(fold_www=True), PLAIN, ["fold_www: yes -> no"]),
        (PLAIN, policy(trailing_slash="add"), ["trailing_slash: keep -> add"]),
        (policy(strip=["a", "b"]), policy(strip=["b", "c*"]), ["strip: with c*, without a"]),
        (
            PLAIN,
            policy(strip=list("abcdefghij")),
            ["strip: with a, b, c, d, e, f, g, h and 2 more"],
        ),
        (
            policy(index_documents=["a", "b"]),
            policy(index_documents=["b", "a"]),
            ["index_documents: in another order"],
        ),
        (PLAIN, policy({**SUFFIX, "sort": False}), ["rules for suffix a.test: sort: not set -> no"]),
        (
            policy({"host": "a.test", "strip": ["x"]}),
            policy({"host": "a.test", "strip": ["x", "y"]}),
            ["rules for host a.test: strip: with y"],
        ),
        (
            PLAIN,
            policy({"host": "b.test", "fold_into": "a.test"}),
            ["rules for host b.test: fold_into: not set -> a.test"],
        ),
        (PLAIN, policy({**SUFFIX, "keep": ["x"]}), ["rules for suffix a.test: keep: not set -> x"]),
        (PLAIN, policy({**SUFFIX, "keep": []}), ["rules for suffix a.test: keep: not set -> none"]),
        (policy({**SUFFIX, "sort": False}), PLAIN, ["rules for suffix a.test: gone"]),
        (
            policy({**SUFFIX, "sort": False}, {"pattern": "a.*", "sort": True}),
            policy({"pattern": "a.*", "sort": True}, {**SUFFIX, "sort": False}),
            ["rules for some hosts: in another order"],
        ),
    ],
)
def test_each_rule_that_differs_is_told_in_words(old: Policy, new: Policy, told: list[str]) -> None:
    assert difference(old.text, new.text) == told


def changed(**entries: Any) -> str:
    """The plain rules as another version would have written them."""
    return json.dumps(json.loads(PLAIN.text) | entries)


def rules(**entries: Any) -> dict[str, Any]:
    return json.loads(PLAIN.text)["rules"] | entries


@pytest.mark.parametrize(
    ("old", "told"),
    [
        (changed(parser="RFC 3986"), "parser: RFC 3986 -> URL Standard"),
        (changed(steps=[*json.loads(PLAIN.text)["steps"][1:], "old/1"]), "steps: with trailing-dot/1, without old/1"),
        (changed(trackers=[*json.loads(PLAIN.text)["trackers"], "ref"]), "trackers: without ref"),
        (changed(trackers_not_on={}), "trackers that stay on some paths: others"),
        (changed(rules=rules(odd=3)), "odd: 3 -> not set"),
        (changed(hosts=[{"network": "10.0.0.0/8", "rules": {"sort": True}}]), "rules for some hosts: gone"),
        ("", "parser: not set -> URL Standard"),
        ("[]", "sort: not set -> yes"),
    ],
)
def test_rules_of_another_version_are_told_as_they_stand_and_may_part_pages(old: str, told: str) -> None:
    assert told in difference(old, PLAIN.text)
    assert may_part(old, PLAIN.text)


def test_a_tracker_more_parts_nothing() -> None:
    assert not may_part(changed(trackers=[]), PLAIN.text)


JOINS: list[tuple[Policy, Policy]] = [
    (PLAIN, policy(policy="aggressive")),
    (PLAIN, policy(strip=["a"])),
    (policy(keep=["a"]), PLAIN),
    (policy(sort=False), PLAIN),
    (policy(hash_routes=True), PLAIN),
    (PLAIN, policy(trailing_slash="add")),
    (policy(trailing_slash="add"), policy(trailing_slash="strip")),
    (PLAIN, policy({**SUFFIX, "lower_path": True, "strip": ["a"], "trailing_slash": "strip"})),
    (policy({**SUFFIX, "sort": False}), policy({**SUFFIX, "sort": False}, strip=["x"])),
    (PLAIN, policy({**SUFFIX, "path_params": ["v"]})),
    (PLAIN, policy({**SUFFIX, "view_segments": ["print"]})),
]
PARTS: list[tuple[Policy, Policy]] = [
    *((new, old) for old, new in JOINS),
    (policy(hash_routes=True), policy(hash_routes=True, strip=["a"])),
    (PLAIN, policy({**SUFFIX, "fold_into": "b.test"})),
    (PLAIN, policy({**SUFFIX, "id_segments": [""]})),
    (PLAIN, policy(semicolons=True)),
    (policy(semicolons=True), PLAIN),
    (PLAIN, policy({**SUFFIX, "semicolons": True})),
    (PLAIN, policy({**SUFFIX, "keep": ["a"]})),
    (PLAIN, policy({**SUFFIX, "index_documents": ["a"]})),
    (PLAIN, policy({**SUFFIX, "trailing_slash": "add"})),
    (policy({**SUFFIX, "lower_path": True}), policy({**SUFFIX, "lower_path": True}, fold_www=True)),
]


@pytest.mark.parametrize(("old", "new"), JOINS)
def test_rules_that_only_make_more_pages_one_part_nothing(old: Policy, new: Policy) -> None:
    assert not may_part(old.text, new.text)


@pytest.mark.parametrize(("old", "new"), PARTS)
def test_all_other_changes_may_part_pages(old: Policy, new: Policy) -> None:
    assert may_part(old.text, new.text)


NAMES = st.lists(st.sampled_from(["a", "b", "utm_source", "s*"]), max_size=2, unique=True)
CHOICES: dict[str, st.SearchStrategy[Any]] = {
    **{
        name: st.booleans()
        for name in (
            *("fold_scheme", "fold_trailing_dot", "fold_www", "percent_encoding", "lower_path", "path_sessions"),
            *("merge_slashes", "semicolons", "drop_blank_params", "strip_trackers", "strip_sessions", "sort"),
            *("drop_empty_query", "hash_routes"),
        )
    },
    "trailing_slash": st.sampled_from(["keep", "strip", "add"]),
    "index_documents": st.lists(st.sampled_from(["index.html", "b"]), max_size=2, unique=True),
    "strip": NAMES,
    "keep": NAMES,
    "path_params": NAMES,
    "view_segments": st.lists(st.sampled_from(["index.html", "b"]), max_size=2, unique=True),
    "id_segments": st.just([""]),
}
HOSTS = st.lists(st.fixed_dictionaries({"suffix": st.sampled_from(["a.test", "test"])}, optional=CHOICES), max_size=1)


def drawn(few: dict[str, Any], hosts: list[dict[str, Any]]) -> Policy:
    return policy(*hosts, **few)


POLICIES = st.builds(drawn, st.fixed_dictionaries({}, optional=CHOICES), HOSTS)
WORDS = [
    "http://a.test",
    "https://www.a.test",
    "/",
    "/b",
    "/B",
    "index.html",
    "?",
    "&",
    ";",
    "a=1",
    "a=2",
    "b",
    "#!r",
]
WORDS += [";a=1", f"/{'0a' * 9}", "s1=x", "utm_source=q", "%62", "."]
URLS = st.builds(
    lambda head, tail: head + "".join(tail), st.sampled_from(WORDS[:2]), st.lists(st.sampled_from(WORDS[2:]))
)


def one_under(rules: Policy, first: str, second: str) -> bool:
    try:
        return canonicalize(first, None, rules) == canonicalize(second, None, rules)
    except UrlError:
        return False


@given(POLICIES, POLICIES, URLS, st.data())
def test_where_no_pages_may_part_none_do(old: Policy, new: Policy, first: str, data: st.DataObject) -> None:
    if may_part(old.text, new.text):
        return
    respell: Callable[[str], str] = data.draw(
        st.sampled_from(
            [str, lambda url: url + "&utm_source=z", lambda url: url.replace("B", "b"), lambda url: url + "/"]
        )
    )
    second = respell(first)
    if one_under(old, first, second):
        assert one_under(new, first, second)
