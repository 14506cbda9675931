"""Policies as values: what the settings make of them, which hosts they hold for, and what identifies them."""

from __future__ import annotations

import json

import msgspec
import pytest

from crawlspace.errors import ConfigError
from crawlspace.urls import (
    AGGRESSIVE,
    CONSERVATIVE,
    HostChoices,
    Identity,
    IdentitySettings,
    Policy,
    canonicalize,
    policy_from,
)
from crawlspace.urls.rules import HOST_STEPS, OPTIONAL, STEPS


def policy(text: str) -> Policy:
    """The policy of settings in JSON, as a file would give them."""
    return policy_from(msgspec.json.decode(text, type=IdentitySettings))


@pytest.mark.parametrize(
    ("hosts", "url", "expected"),
    [
        ('[{"host": "a.test", "lower_path": true}]', "http://A.test:8080/X", "http://a.test:8080/x"),
        ('[{"host": "a.test", "lower_path": true}]', "http://b.a.test/X", "http://b.a.test/X"),
        ('[{"suffix": "a.test", "lower_path": true}]', "http://b.a.test/X", "http://b.a.test/x"),
        ('[{"suffix": ".a.test", "lower_path": true}]', "http://a.test/X", "http://a.test/x"),
        ('[{"suffix": "a.test", "lower_path": true}]', "http://ba.test/X", "http://ba.test/X"),
        ('[{"pattern": "shop[0-9]+\\\\.test", "lower_path": true}]', "http://shop12.test/X", "http://shop12.test/x"),
        ('[{"pattern": "shop[0-9]+", "lower_path": true}]', "http://shop12.test/X", "http://shop12.test/X"),
        ('[{"host": "bücher.test", "lower_path": true}]', "http://BÜCHER.test/X", "http://xn--bcher-kva.test/x"),
        ('[{"host": "a.test", "lower_path": true}]', "http://a.test./X", "http://a.test/x"),
        (
            '[{"suffix": "test", "strip": ["a"]}, {"host": "x.test", "strip": ["b"], "keep": ["gclid"]}]',
            "http://x.test/?a=1&b=2&c=3&gclid=4&utm_id=5",
            "http://x.test/?c=3&gclid=4",
        ),
        (
            '[{"suffix": "test", "trailing_slash": "strip"}, {"host": "x.test", "trailing_slash": "keep"}]',
            "http://x.test/a/",
            "http://x.test/a/",
        ),
        ('[{"host": "www.a.test", "fold_www": true}]', "http://www.a.test/", "http://a.test/"),
        ('[{"host": "www.a.test", "fold_www": true}]', "http://www.b.test/", "http://www.b.test/"),
        ('[{"host": "a.test", "hash_routes": true}]', "http://a.test/#!x", "http://a.test/#!x"),
        ('[{"host": "a.test", "hash_routes": true}]', "http://b.test/#!x", "http://b.test/"),
        ('[{"host": "a.test", "fold_scheme": true}]', "http://a.test/", "https://a.test/"),
    ],
)
def test_host_rules_hold_for_the_hosts_they_name(hosts: str, url: str, expected: str) -> None:
    made = policy(f'{{"hosts": {hosts}}}')
    assert canonicalize(url, policy=made) == expected
    assert canonicalize(expected, policy=made) == expected


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (IdentitySettings(hosts=[HostChoices()]), r"identity.hosts\[0\] must have exactly one"),
        (IdentitySettings(hosts=[HostChoices(host="a.test", suffix="b.test")]), "it has 2"),
        (IdentitySettings(hosts=[HostChoices(host="a.test"), HostChoices(pattern="(")]), r"hosts\[1\].pattern.*RE2"),
        (IdentitySettings(hosts=[HostChoices(pattern="(?=a)")]), "no RE2 expression"),
        (IdentitySettings(hosts=[HostChoices(host="http://a.test/")]), "is no host name"),
        (IdentitySettings(hosts=[HostChoices(host="a.test:80")]), "is no host name"),
        (IdentitySettings(hosts=[HostChoices(host="a.test:81")]), "is no host name"),
        (IdentitySettings(hosts=[HostChoices(suffix=".")]), "is no host name"),
        (IdentitySettings(hosts=[HostChoices(host="a b")]), "is no host name"),
        (IdentitySettings(strip=["a*b"]), "identity.strip: 'a[*]b' is no parameter name"),
        (IdentitySettings(keep=["a=b"]), "identity.keep"),
        (IdentitySettings(hosts=[HostChoices(host="a.test", strip=["&"])]), r"identity.hosts\[0\].strip"),
        (IdentitySettings(index_documents=["a/b"]), "identity.index_documents: 'a/b' is no file name"),
        (
            IdentitySettings(policy="aggressive", hosts=[HostChoices(host="www.a.test", sort=False)]),
            "counted under 'a.test'",
        ),
        (IdentitySettings(hosts=[HostChoices(host="a.test.", sort=False)]), "write it for 'a.test'"),
        (IdentitySettings(hosts=[HostChoices(host="a.test", fold_into="b/c")]), r"hosts\[0\].fold_into: 'b/c'"),
        (
            IdentitySettings(
                hosts=[
                    HostChoices(host="a.test", fold_into="www.b.test"),
                    HostChoices(host="www.b.test", fold_www=True),
                    HostChoices(host="b.test", fold_into="a.test"),
                ]
            ),
            "www.b.test is counted as b.test is counted as a.test is counted as www.b.test",
        ),
    ],
)
def test_a_wrong_setting_is_named_in_the_message(settings: IdentitySettings, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        policy_from(settings)


@pytest.mark.parametrize(
    "text",
    [
        '{"max_length": 63}',
        '{"policy": "loose"}',
        '{"trailing_slash": "cut"}',
        '{"no_such_rule": true}',
        '{"strip": [""]}',
    ],
)
def test_settings_of_a_wrong_kind_are_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=IdentitySettings)


def test_the_text_of_a_policy_holds_every_effective_rule() -> None:
    content = json.loads(policy('{"strip": ["b", "a"], "hosts": [{"suffix": "x.test", "sort": false}]}').text)
    assert content["rules"]["strip"] == ["a", "b"]
    assert content["rules"]["drop_empty_query"] is True
    assert content["hosts"] == [{"suffix": "x.test", "rules": {"sort": False}}]
    first = [step for step in (*HOST_STEPS, *STEPS) if step.name not in OPTIONAL]
    assert content["steps"] == [step.identifier for step in first]
    assert "gclid" in content["trackers"]


def test_the_identifier_follows_the_rules_and_nothing_else() -> None:
    same = [policy("{}"), policy('{"sort": true}'), policy('{"max_length": 100}'), policy('{"fetch": "canonical"}')]
    other = [policy('{"sort": false}'), AGGRESSIVE, policy('{"hosts": [{"host": "a.test", "sort": false}]}')]
    assert {made.identifier for made in same} == {CONSERVATIVE.identifier}
    assert {*same} == {CONSERVATIVE}
    assert len({made.identifier for made in other} - {CONSERVATIVE.identifier}) == len(other)
    assert CONSERVATIVE != "conservative"
    assert CONSERVATIVE.identifier in repr(CONSERVATIVE)
    assert len(CONSERVATIVE.identifier) == 16


def test_policies_that_differ_in_length_only_still_refuse_by_their_own() -> None:
    url = "http://a.test/" + "x" * 100
    assert canonicalize(url) == url
    with pytest.raises(ValueError, match="too_long"):
        canonicalize(url, policy=policy('{"max_length": 64}'))


def test_a_form_that_grows_over_the_cap_is_refused() -> None:
    """Or the canonical form would be refused where its own URL was taken."""
    url = "http://a.test/" + "x" * 50
    made = policy('{"max_length": 64, "trailing_slash": "add"}')
    for links in (["/", url], [url]):
        assert [getattr(who, "reason", "") for who in Identity(made).identify_many(links, "http://a.test/")][-1] == (
            "too_long"
        )


def test_what_a_policy_remembers_of_hosts_is_bounded() -> None:
    hosts = [{"pattern": f".*x{number}.*", "strip": [f"p{number}"]} for number in range(11)]
    made = policy_from(msgspec.convert({"hosts": hosts}, IdentitySettings))
    for number in range(2048):
        name = "-".join(f"x{bit}" for bit in range(11) if number >> bit & 1) or "none"
        # `x1` also stands in `x10`; only that the rules stay right is asked here.
        assert ("p0" in made.rules_for(name).strip) == ("x0" in name)


def test_a_host_that_repeats_another_is_counted_as_that_one_with_its_rules() -> None:
    made = policy(
        '{"hosts": [{"host": "copy.test", "fold_into": "a.test"}, {"suffix": "a.test", "strip": ["s"]},'
        ' {"suffix": "a.test", "fold_into": "a.test"}]}'
    )
    assert canonicalize("http://copy.test/x?s=1&t=2", policy=made) == "http://a.test/x?t=2"
    assert canonicalize("http://deep.a.test/", policy=made) == "http://a.test/"


def test_a_policy_without_the_later_rules_keeps_the_identifier_it_had_before_them() -> None:
    assert "fold_into" not in CONSERVATIVE.text
    assert "path-params" not in CONSERVATIVE.text
    with_one = policy('{"hosts": [{"host": "a.test", "path_params": ["v"]}]}')
    assert "path-params/1" in with_one.text
    assert "id-segment" not in with_one.text
