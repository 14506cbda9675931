"""Settings: four sources in order, unknown keys are errors with a suggestion, and nothing gets lost on the way."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from crawlspace.errors import ConfigError
from crawlspace.settings import Settings, as_toml, chosen, convert, described, keys, load, nested, template


def test_the_order_is_defaults_file_environment_command_line(tmp_path: Path) -> None:
    file = tmp_path / "crawl.toml"
    file.write_text('contact = "file"\n[host]\ndelay = 2\nconcurrency = 3\n[retry]\nmax = 5\n')
    environment = {"CRAWLSPACE_HOST__CONCURRENCY": "4", "CRAWLSPACE_RETRY__MAX": "6", "HOME": "/root"}
    settings = load(file, environment, ["retry.max=7"])
    assert settings.contact == "file"
    assert settings.host.delay == 2.0
    assert settings.host.concurrency == 4
    assert settings.retry.max == 7
    assert settings.fetch.timeout == Settings().fetch.timeout


def test_what_is_in_effect_reads_back_to_the_same_settings(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "budget.pages": 5,
        "budget.pages_per_host": None,
        "network.resolve": {"a.test:80": "127.0.0.1:8080"},
        "identity.hosts": [{"host": "a.test", "lower_path": True}],
        "scope.include": ["/docs/"],
        "concurrency.global": 3,
    }
    settings = load(None, {}, values=values)
    assert settings.concurrency.total == 3
    file = tmp_path / "effective.toml"
    file.write_text(as_toml(settings))
    assert load(file, {}) == settings


def test_the_template_is_toml_that_changes_nothing_but_what_was_chosen() -> None:
    text = template(chosen(["host.delay=2", "contact=me@example.com"]))
    assert convert(tomllib.loads(text), "template") == load(None, {}, ["host.delay=2", "contact=me@example.com"])
    for key in keys():
        assert f"{key.rsplit('.', maxsplit=1)[-1]} = " in text


def test_every_setting_says_what_it_means() -> None:
    assert not [f"{each.section}.{each.name}" for each in described() if not each.meaning]
    assert len(list(described())) == len(list(keys()))


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["hots.delay=1"], "did you mean host.delay"),
        (["host.delay.x=1"], "host.delay"),
        (["host=1"], "is a section"),
        (["host.delay=soon"], "host.delay: expected a number, got a text"),
        (["host.concurrency=0"], "host.concurrency"),
        (["nonsense"], "has no value"),
        (["zzzz=1"], "config show"),
        (["archive.max_record=1048576"], "must fit into the archive"),
        (["budget.pages=-1"], "budget.pages"),
        (["routes.x.kind=htp"], "did you mean http?"),
        (["routes.x.kind=zzz"], "one of browser, http, impersonate, service;"),
        (["routes.x.requests=5"], "one of browser, http, impersonate, service;"),
        (["routes.x.kind=http", "routes.x.proxi='direct'"], "did you mean proxies?"),
        (["routes.x.kind=http", "routes.x.session.orign='https://a'"], "did you mean origin?"),
        (["routes.x=5"], "routes.x: expected a table, got a whole number"),
        (["routing.rules=[{urls='/x', routes=[]}]"], "did you mean url?"),
        (["routing.rules=[{routes=[], when='allways'}]"], "did you mean always?"),
        (["routing.signatures=[{id='x', title='x', sort='zzz'}]"], "one of captcha, challenge, rate_limit, wall;"),
        (["fetch.auth=[1]"], "from command line"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(overrides: list[str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, {}, overrides)
    assert words in str(caught.value)


def test_none_is_a_word_where_a_setting_may_have_no_value() -> None:
    assert load(None, {}, ["budget.pages_per_host=none"]).budget.pages_per_host is None
    with pytest.raises(ConfigError, match=r"host\.delay"):
        load(None, {}, ["host.delay=none"])


def test_an_unreadable_file_is_an_error_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="is no TOML"):
        load(tmp_path / "bad.toml", {})
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path, {})


def test_the_user_agent_names_product_version_and_contact() -> None:
    settings = load(None, {}, values=nested({"contact": "me@example.com"}))
    assert settings.agent().startswith("crawlspace/")
    assert "me@example.com" in settings.agent()
    assert settings.product() == "crawlspace"
    assert load(None, {}, ["user_agent=mybot/2 (x)"]).product() == "mybot"
