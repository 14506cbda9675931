"""Logins and cookies go to their own origin, and to nobody else."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchRequest, Headers
from crawlspace.fetch import FetchSettings, NetworkSettings
from crawlspace.fetch.credentials import Credentials
from crawlspace.fetch.request import destination_of

ENVIRONMENT = {"A_LOGIN": "robot:hush: hush", "UMLAUT": "j\xf6rg:\xe4"}


def fields(settings: FetchSettings, url: str, clock: Any, *headers: tuple[str, str]) -> dict[str, str]:
    credentials = Credentials(settings, ENVIRONMENT, clock)
    return dict(credentials.fields(FetchRequest(url, headers=headers), destination_of(url)))


AUTH = FetchSettings(auth={"https://a.test": "A_LOGIN", "https://u.test": "UMLAUT"})


@pytest.mark.parametrize(
    ("url", "basic"),
    [
        ("https://a.test/x", "Basic cm9ib3Q6aHVzaDogaHVzaA=="),
        ("https://a.test:443/x", "Basic cm9ib3Q6aHVzaDogaHVzaA=="),
        ("https://u.test/", "Basic asO2cmc6w6Q="),
        ("http://a.test/x", None),
        ("https://a.test:8443/", None),
        ("https://x.a.test/", None),
        ("https://test/", None),
    ],
)
def test_a_login_goes_to_its_origin_alone(url: str, basic: str | None, clock: Any) -> None:
    assert fields(AUTH, url, clock).get("Authorization") == basic


def test_a_request_with_an_authorization_of_its_own_keeps_it(clock: Any) -> None:
    assert fields(AUTH, "https://a.test/", clock, ("AUTHORIZATION", "Bearer x")) == {}


def test_cookies_are_off_unless_asked_for(clock: Any) -> None:
    credentials = Credentials(FetchSettings(), {}, clock)
    to = destination_of("https://a.test/")
    credentials.learn(to, Headers(((b"Set-Cookie", b"a=1"),)))
    assert credentials.fields(FetchRequest("https://a.test/"), to) == {}


def test_cookies_of_a_request_win_name_by_name(clock: Any) -> None:
    credentials = Credentials(FetchSettings(cookies=True), {}, clock)
    to = destination_of("https://a.test/")
    credentials.learn(to, Headers(((b"Set-Cookie", b"a=1"), (b"set-cookie", b"b=2"))))
    credentials.learn(to, Headers())
    for own, field in (("", "a=1; b=2"), ("b=3; c=4", "b=3; c=4; a=1")):
        request = FetchRequest("https://a.test/", headers=(("cookie", own),) if own else ())
        assert credentials.fields(request, to) == {"Cookie": field}


def test_a_session_that_a_site_opens_is_kept_for_the_run(run: Any, serving: Any, fetching: Any) -> None:
    async def answer(writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nSet-Cookie: id=%d; Path=/\r\nContent-Length: 0\r\n\r\n" % number)

    async def test(cookies: bool) -> None:
        async with serving(answer) as server:
            network = NetworkSettings(
                allow=["127.0.0.1"], resolve={"*.test": f"127.0.0.1:{server.port}"}, dns_ttl=300
            )
            async with fetching(network, cookies=cookies) as fetcher:
                for host in ("a.test", "a.test", "b.test"):
                    await fetcher.fetch(FetchRequest(f"http://{host}/"))
            assert [b"Cookie" in request for request in server.requests] == [False, cookies, False]

    for cookies in (True, False):
        run(test(cookies))


@pytest.mark.parametrize("table", ["auth", "client_certificates"])
def test_a_key_that_is_no_origin_is_named(table: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="no origin"):
        msgspec.convert({table: {"a.test": "X"}}, FetchSettings)


def test_a_secret_in_place_of_a_name_is_refused_and_not_repeated() -> None:
    with pytest.raises(msgspec.ValidationError, match="variable") as caught:
        msgspec.convert({"auth": {"https://a.test": "robot:hush"}}, FetchSettings)
    assert "hush" not in str(caught.value)


def test_a_login_that_is_not_in_the_environment_is_a_mistake_of_the_configuration(clock: Any) -> None:
    with pytest.raises(ConfigError, match="NOWHERE"):
        Credentials(FetchSettings(auth={"https://a.test": "NOWHERE"}), {}, clock)
