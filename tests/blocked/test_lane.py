"""Blocked pages leave the way they were on, and go by the routes that the rules name."""

from __future__ import annotations

import tomllib

import pytest

from crawlspace.errors import ConfigError
from crawlspace.settings import as_toml, convert, load, template
from crawlspace.states import UrlState

from .conftest import Answer, Doors, agent, ways

HOME = "http://a.test/"
PAGE = "http://a.test/page"


def test_without_a_route_a_blocked_page_is_a_dead_letter_and_is_asked_for_once(web: Doors) -> None:
    web.open(HOME, "/page")
    web.block(PAGE, agent("second"), status=503)
    web.crawl(HOME)
    story = web.story(PAGE)
    assert (story.state, story.reason, story.detail) == (UrlState.DEAD, "blocked", "cloudflare-challenge-page")
    assert len(web.came(PAGE)) == 1


def test_a_blocked_page_goes_round_the_routes_until_one_is_let_in(web: Doors) -> None:
    web.open(HOME, "/page")
    web.block(PAGE, agent("third"))
    web.crawl(HOME, **ways("second", "third", "fourth"))
    story = web.story(PAGE)
    assert (story.state, story.routes, story.attempts) == (UrlState.DONE, ("second", "third"), 1)
    assert [each.error for each in story.history] == ["blocked (cloudflare-challenge-page)"] * 2
    assert [each.headers["user-agent"] for each in web.came(PAGE)[1:]] == ["second", "third"]
    figures = {name: (each.requests, each.pages, each.blocked) for name, each in web.figures().items()}
    assert figures == {"": (1, 0, 1), "second": (1, 0, 1), "third": (1, 1, 0)}


def test_behind_the_last_route_is_the_dead_letter(web: Doors) -> None:
    web.open(HOME, "/page")
    web.block(PAGE, agent())
    web.crawl(HOME, **ways("second", "third"))
    story = web.story(PAGE)
    assert (story.state, story.reason, story.routes) == (UrlState.DEAD, "blocked", ("second", "third"))
    assert len(web.came(PAGE)) == 3


def test_a_budget_is_held_and_the_next_route_takes_over(web: Doors) -> None:
    pages = [f"http://a.test/{number}" for number in range(4)]
    web.open(HOME, *pages)
    for page in pages:
        web.block(page, agent("dear", "cheap"))
    web.crawl(HOME, **ways("dear", "cheap", dear={"requests": 2}, cheap={"requests": 1}))
    came = [each.headers["user-agent"] for page in pages for each in web.came(page)]
    assert (came.count("dear"), came.count("cheap")) == (2, 1)
    ends = [web.story(page) for page in pages]
    (dead,) = [each for each in ends if each.state is UrlState.DEAD]
    assert (dead.reason, dead.detail) == ("blocked", "no route has anything left to give: dear, cheap")
    assert {name: each.taken for name, each in web.figures().items()} == {"": 0, "dear": 2, "cheap": 1}


def test_a_rule_sends_urls_on_a_route_at_once_and_others_by_what_blocks_them(web: Doors) -> None:
    other, walled = "http://a.test/other", "http://a.test/walled"
    web.open(HOME, "/page", "/other", "/walled")
    web.open(PAGE)
    web.block(other, agent("second"))
    web.block(walled, agent("third"), wall='<div class="cf-error-details">no</div>')
    rules = [
        {"url": "glob:http://a.test/page", "routes": ["second"], "when": "always"},
        {"signatures": ["cloudflare-block"], "routes": ["third"]},
    ]
    web.crawl(HOME, **{**ways("second", "third"), "routing__order": ["second"], "routing__rules": rules})
    assert [each.headers["user-agent"] for each in web.came(PAGE)] == ["second"]
    assert (web.story(PAGE).state, web.story(PAGE).routes) == (UrlState.DONE, ())
    assert web.story(other).routes == ("second",)
    assert web.story(walled).routes == ("third",)


def test_a_route_that_fails_has_its_tries_and_says_nothing_of_the_host(web: Doors) -> None:
    web.open(HOME, "/page")
    web.block(PAGE, agent("third"))
    settings = ways("second", "third", second={"proxies": ["http://127.0.0.1:9"], "attempts": 2})
    web.crawl(HOME, **settings, network__proxy_allow=["127.0.0.1"], host__failures_max=1)
    story = web.story(PAGE)
    assert (story.state, story.routes) == (UrlState.DONE, ("second", "third"))
    assert [each.error.split(" ")[0] for each in story.history] == ["blocked", "local", "blocked"]


def test_robots_and_scope_hold_on_every_route(web: Doors) -> None:
    web.doors["http://a.test/robots.txt"] = lambda _: Answer("User-agent: crawlspace\nDisallow: /no")
    web.open(HOME, "/no", "http://elsewhere.test/")
    web.crawl(HOME, **{**ways("second"), "routing__rules": [{"routes": ["second"], "when": "always"}]})
    assert not web.came("http://a.test/no")
    assert [each.url for each in web.asked] == ["http://a.test/robots.txt", HOME]


def test_the_routes_are_settings_and_what_is_wrong_with_one_is_said() -> None:
    settings = load(None, {}, ["routes.second.kind=http", "routes.second.requests=5", "routing.order=['second']"])
    assert convert(tomllib.loads(as_toml(settings)), "test") == settings
    assert 'routes = { second = { kind = "http", requests = 5 } }' in template(
        {"routes": {"second": {"kind": "http", "requests": 5}}}
    )
    for override, said in (
        ("routes.second.kind=htp", "routes.second.kind: invalid value 'htp'"),
        ("routes.second.requests=5", "routes.second: object missing required field `kind`"),
        ("routing.order=['second']", "routing.order: there is no route 'second'"),
        ("routes.Bad.kind=http", "'Bad' is no name of a route"),
    ):
        with pytest.raises(ConfigError, match=said):
            load(None, {}, [override])
    for route, said in (
        ({"headers": {"Cookie": "a=b"}}, "belongs into a session"),
        ({"headers": {"a b": "c"}}, "headers"),
        ({"proxies": ["ftp://x"]}, "is no proxy"),
        ({"proxy_auth": {"http://x:1": "user:password"}}, "never the secret itself"),
    ):
        with pytest.raises(ConfigError, match=said):
            convert({"routes": {"second": {"kind": "http", **route}}}, "test")
