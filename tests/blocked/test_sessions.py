"""Log-ins are made, kept, noticed to be lost and made again, and their secrets stay where they belong."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.routes import route_fetchers
from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchError, FetchRequest, FetchResult
from crawlspace.fetch.routes import HttpRoute
from crawlspace.fetch.sessions import ASKS, HOUR, Ask, SessionFetcher, SessionSettings, from_function, read_state
from crawlspace.settings import convert
from crawlspace.states import UrlState
from crawlspace.testing.clock import ManualClock

from .conftest import Answer, Asked, Doors

HOME = "http://a.test/"
PAGE = "http://a.test/page"
LOGIN = "http://a.test/login"
SECRET = "s3cret-of-this-session"


class Members:
    """A site whose pages are for who is logged in; sessions end after so many pages."""

    def __init__(self, web: Doors, *, pages: int = 1000, how: str = "redirect") -> None:
        self.left = 0
        self.pages = pages
        self.how = how
        self.logins = 0
        web.doors[LOGIN] = self.log_in
        for url in (HOME, PAGE, "http://a.test/other"):
            web.doors[url] = self.page

    def log_in(self, asked: Asked) -> Answer:
        if asked.body != b"user=robot&password=pa%26ss":
            return Answer("wrong", 403)
        self.logins += 1
        self.left = self.pages
        return Answer("welcome", 303, {"Location": "/", "Set-Cookie": f"sid={SECRET}-{self.logins}; HttpOnly"})

    def page(self, asked: Asked) -> Answer:
        if f"sid={SECRET}-{self.logins}" in asked.headers.get("cookie", "") and self.left > 0:
            self.left -= 1
            return Answer('<a href="/page">x</a><a href="/other">x</a><a href="http://b.test/">x</a>')
        match self.how:
            case "redirect":
                return Answer("", 302, {"Location": "/login?next=/"})
            case "status":
                return Answer("log in", 401)
            case _:
                return Answer("<p>Please log in</p>")


async def log_in(ask: Ask) -> None:
    """What a user writes."""
    answered = await ask("POST", "/login", data={"user": "robot", "password": "pa&ss"})
    assert answered.status == 303
    assert answered.headers["location"] == "/"


def session_of(web: Doors, function: Callable[[Ask], Any] = log_in, **settings: Any) -> SessionFetcher:
    """A fetcher with a session at a.test."""
    whole = convert(nested(web), "test")
    (fetcher,) = route_fetchers(whole, ManualClock()).values()
    made = SessionSettings(**{"origin": "http://a.test", "login": "x:y", **settings})
    return SessionFetcher(fetcher, made, from_function(function), ManualClock(), 0)


def nested(web: Doors) -> dict[str, Any]:
    resolve = {f"{name}.test:80": f"127.0.0.1:{web.port}" for name in "abc"}
    return {
        "contact": "x",
        "network": {"allow": ["127.0.0.1"], "resolve": resolve},
        "routes": {"members": {"kind": "http"}},
    }


def play(fetcher: SessionFetcher, story: Callable[[SessionFetcher], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        try:
            await story(fetcher)
        finally:
            await fetcher.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("how", "settings"),
    [
        ("redirect", {"lost_redirect": "glob:http://a.test/login**"}),
        ("status", {}),
        ("text", {"lost_text": "Please log in"}),
    ],
)
def test_a_session_that_is_lost_is_noticed_and_made_again(web: Doors, how: str, settings: dict[str, Any]) -> None:
    site = Members(web, pages=2, how=how)

    async def story(fetcher: SessionFetcher) -> None:
        for _ in range(5):
            result = await fetcher.fetch(FetchRequest(PAGE))
            assert (result.status, result.error) == (200, None)
            assert SECRET.encode() not in result.request_head
            assert b"Cookie: [redacted]" in result.request_head
        assert site.logins == 3

    play(session_of(web, **settings), story)


def test_many_who_notice_at_once_log_in_once(web: Doors) -> None:
    site = Members(web)

    async def story(fetcher: SessionFetcher) -> None:
        results = await asyncio.gather(*(fetcher.fetch(FetchRequest(PAGE)) for _ in range(5)))
        assert [result.status for result in results] == [200] * 5
        assert site.logins == 1
        site.left = 0
        site.logins += 1  # the site forgot it
        results = await asyncio.gather(*(fetcher.fetch(FetchRequest(PAGE)) for _ in range(5)))
        assert [result.status for result in results] == [200] * 5
        assert site.logins == 3

    play(session_of(web, lost_redirect="/login"), story)


def test_the_bound_holds_for_an_hour_and_a_page_is_never_the_log_in_page(web: Doors) -> None:
    site = Members(web, pages=0)

    async def story(fetcher: SessionFetcher) -> None:
        first = await fetcher.fetch(FetchRequest(PAGE))
        assert (first.status, first.error) == (0, FetchError.LOCAL)
        assert "lost again as soon as it is made" in first.detail
        second = await fetcher.fetch(FetchRequest(PAGE))
        assert (second.error, site.logins) == (FetchError.LOCAL, 3)
        third = await fetcher.fetch(FetchRequest(PAGE))
        assert "made 3 times within an hour" in third.detail
        assert site.logins == 3
        clock = fetcher._clock
        assert isinstance(clock, ManualClock)
        clock.advance(round(HOUR) * 1000 + 1)
        site.pages = 10
        assert (await fetcher.fetch(FetchRequest(PAGE))).status == 200

    play(session_of(web, lost_redirect="/login"), story)


def test_nothing_of_it_goes_to_another_origin(web: Doors) -> None:
    Members(web)
    web.open("http://b.test/")

    async def story(fetcher: SessionFetcher) -> None:
        assert (await fetcher.fetch(FetchRequest(PAGE))).status == 200
        assert (await fetcher.fetch(FetchRequest("http://b.test/"))).status == 200
        assert (await fetcher.fetch(FetchRequest("nonsense"))).error is FetchError.LOCAL

    play(session_of(web), story)
    (asked,) = web.came("http://b.test/")
    assert "cookie" not in asked.headers


def test_what_a_log_in_may_not_do_and_what_it_raises_is_not_repeated(web: Doors) -> None:
    async def elsewhere(ask: Ask) -> None:
        await ask("GET", "http://b.test/")

    async def unreadable(ask: Ask) -> None:
        await ask("GET", "ftp://a.test/")

    async def endless(ask: Ask) -> None:
        while True:
            await ask("GET", "/login", headers={"X-A": "1"})

    def failing(_ask: Ask) -> None:
        raise RuntimeError(SECRET)

    for function, kind in ((elsewhere, "Value"), (unreadable, "Value"), (endless, "Value"), (failing, "Runtime")):

        async def story(fetcher: SessionFetcher, kind: str = kind) -> None:
            result = await fetcher.fetch(FetchRequest(PAGE))
            assert result.detail == f"no session at http://a.test: logging in failed: {kind}Error"

        play(session_of(web, function), story)
    assert len(web.came(LOGIN)) == ASKS
    assert not web.came("http://b.test/")


def test_a_function_may_give_cookies_and_headers(web: Doors) -> None:
    def given(_ask: Ask) -> dict[str, Any]:
        return {"cookies": {"sid": "abcd"}, "headers": {"X-Key": SECRET}}

    web.open(PAGE)

    async def story(fetcher: SessionFetcher) -> None:
        result = await fetcher.fetch(FetchRequest(PAGE, headers=(("Cookie", "own=1"), ("Accept", "text/x"))))
        assert b"X-Key: [redacted]" in result.request_head
        assert SECRET.encode() not in result.request_head

    play(session_of(web, given), story)
    (asked,) = web.asked
    assert (asked.headers["cookie"], asked.headers["x-key"], asked.headers["accept"]) == (
        "own=1; sid=abcd",
        SECRET,
        "text/x",
    )


def test_a_state_is_what_browsers_save_and_cookies_of_other_sites_in_it_are_not_sent(
    web: Doors, tmp_path: Path
) -> None:
    saved = [
        {"name": "sid", "value": "abcd", "domain": "a.test", "path": "/", "expires": -1, "httpOnly": True},
        {"name": "other", "value": "efgh", "domain": ".elsewhere.test", "path": "/"},
    ]
    (tmp_path / "state.json").write_text(json.dumps({"cookies": saved, "origins": []}))
    web.doors[PAGE] = lambda asked: Answer("in", 200 if asked.headers.get("cookie") == "sid=abcd" else 401)
    session = {"origin": "http://a.test", "state": "state.json"}
    whole = convert({**nested(web), "routes": {"members": {"kind": "http", "session": session}}}, "test")

    async def main() -> list[FetchResult]:
        (fetcher,) = route_fetchers(whole, ManualClock(), tmp_path).values()
        good = await fetcher.fetch(FetchRequest(PAGE))
        web.doors[PAGE] = lambda asked: Answer("in", 200 if asked.headers.get("cookie") == "sid=new1" else 401)
        lost = await fetcher.fetch(FetchRequest(PAGE))
        (tmp_path / "state.json").write_text(json.dumps({"cookies": {"sid": "new1"}}))
        renewed = await fetcher.fetch(FetchRequest(PAGE))
        await fetcher.close()
        return [good, lost, renewed]

    good, lost, renewed = asyncio.run(main())
    assert (good.status, renewed.status) == (200, 200)
    assert (lost.status, lost.error) == (0, FetchError.LOCAL)


@pytest.mark.parametrize("said", [[], {"cookies": 3}, {"headers": [1]}, {"cookies": [3]}, {"cookies": {"a": 1}}])
def test_what_is_no_state(said: object) -> None:
    with pytest.raises(ValueError, match="table"):
        read_state(said)


@pytest.mark.parametrize(
    ("session", "said"),
    [
        ({"origin": "a.test", "login": "x:y"}, "is no origin"),
        ({"origin": "http://a.test"}, "by one of them"),
        ({"origin": "http://a.test", "login": "x:y", "state": "z"}, "by one of them"),
        ({"origin": "http://a.test", "login": "x:y", "lost_redirect": "("}, "lost_redirect"),
    ],
)
def test_settings_that_cannot_be(session: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        convert({"routes": {"members": {"kind": "http", "session": session}}}, "test")


def test_functions_and_files_that_are_not_there(web: Doors, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0")
    (tmp_path / "number.py").write_text("log_in = 3")
    for session, said in (
        ({"state": "none.json"}, "there is no file none.json"),
        ({"login": "none.py:log_in"}, "there is no file none.py"),
        ({"login": "broken.py:log_in"}, "ZeroDivisionError"),
        ({"login": "number.py:log_in"}, "is no function"),
        ({"login": "no_such_module:log_in"}, "ModuleNotFoundError"),
    ):
        routes = {"members": {"kind": "http", "session": {"origin": "http://a.test", **session}}}
        with pytest.raises(ConfigError, match=said):
            route_fetchers(convert({**nested(web), "routes": routes}, "test"), ManualClock(), tmp_path)


def test_a_host_is_held_for_as_long_as_a_log_in_may_take() -> None:
    session = SessionSettings(origin="http://a.test", login="x:y")
    assert HttpRoute().seconds(30) == 30
    assert HttpRoute(timeout=5).seconds(30) == 5
    assert HttpRoute(session=session).seconds(30) == 90
    assert HttpRoute(session=session, timeout=90).seconds(30) == 100


def test_a_crawl_of_members_pages_leaves_no_secret_anywhere(web: Doors) -> None:
    site = Members(web, pages=2)
    web.open("http://b.test/")
    web.directory.mkdir()
    (web.directory / "members.py").write_text(
        "async def log_in(ask):\n    await ask('POST', '/login', data={'user': 'robot', 'password': 'pa&ss'})\n"
    )
    session = {"origin": "http://a.test", "login": "members.py:log_in", "lost_redirect": "/login"}
    rules = [{"url": "glob:http://a.test/**", "routes": ["members"], "when": "always"}]
    web.crawl(
        HOME,
        routes={"members": {"kind": "http", "session": session}},
        routing__rules=rules,
        archive__redact_set_cookie=True,
    )
    assert [web.story(url).state for url in (HOME, PAGE, "http://a.test/other")] == [UrlState.DONE] * 3
    assert site.logins == 2
    assert not any("sid" in asked.headers.get("cookie", "") for asked in web.came("http://b.test/"))
    place = CrawlDirectory(web.directory)
    for path in place.path.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in unpacked(path.read_bytes()), path


def unpacked(data: bytes) -> bytes:
    """The members of a gzip file one after the other, or what it is."""
    text = b""
    while data[:2] == b"\x1f\x8b":
        reader = zlib.decompressobj(31)
        text += reader.decompress(data)
        data = reader.unused_data
    return text + data
