"""The settings of proxies: which one is meant, whose login, and what is refused without repeating a secret."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from crawlspace.errors import ConfigError
from crawlspace.fetch import NetworkSettings
from crawlspace.fetch.proxy import Proxies, Proxy, proxy_from
from crawlspace.fetch.request import destination_of

LOGIN = "robot:open sesame"

TABLE = {
    "*": "http://all.test:3128",
    "*.b.test": "socks5://b.test",
    "exact.b.test": "direct",
    "exact.b.test:8080": "https://c.test:8443",
}


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://a.test/", Proxy("http", "all.test", 3128)),
        ("http://x.b.test/", Proxy("socks5", "b.test", 1080)),
        ("https://exact.b.test/", None),
        ("http://exact.b.test:8080/", Proxy("https", "c.test", 8443)),
        ("http://[2001:db8::1]/", Proxy("http", "all.test", 3128)),
    ],
)
def test_the_most_exact_pattern_chooses_the_proxy(url: str, proxy: Proxy | None) -> None:
    proxies = Proxies(TABLE, {}, {})
    assert proxies.of(destination_of(url).origin) == proxy
    assert len(list(proxies)) == 3


def test_without_a_setting_there_is_no_proxy() -> None:
    assert Proxies("", {}, {}).of(destination_of("http://a.test/").origin) is None


@pytest.mark.parametrize(
    "text", ["proxy:3128", "socks4://a.test", "http://a.test:0", "http://a.test:70000", "http://", ""]
)
def test_what_is_no_proxy_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="no proxy"):
        proxy_from(text)


@pytest.mark.parametrize(
    "settings",
    [
        {"proxy": "http://robot:hush@a.test:3128"},
        {"proxy": {"*": "socks5://robot:hush@a.test"}},
        {"proxy": "http://a.test", "proxy_auth": {"http://robot:hush@a.test": "X"}},
        {"proxy": "http://a.test", "proxy_auth": {"http://a.test": "robot:hush"}},
    ],
)
def test_a_login_has_no_place_in_the_settings_and_is_not_repeated(settings: Any) -> None:
    with pytest.raises(msgspec.ValidationError, match="variable") as caught:
        msgspec.convert(settings, NetworkSettings)
    assert "hush" not in str(caught.value)


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="RELAY"):
        Proxies("http://a.test", {"http://a.test": "RELAY"}, {})
    for text in ("no colon", "a:\nb"):
        with pytest.raises(ConfigError, match="RELAY") as caught:
            Proxies("http://a.test", {"http://a.test": "RELAY"}, {"RELAY": text})
        assert text not in str(caught.value)


def test_a_login_shows_nothing_of_itself() -> None:
    login = Proxies("http://a.test", {"http://a.test": "X"}, {"X": LOGIN}).login(proxy_from("http://a.test"))
    assert login is not None
    assert "sesame" not in repr(login)
    assert "robot" not in f"{login}"
