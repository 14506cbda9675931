"""Crawls that give pages to a browser, which a double plays here: which pages it gets, and what becomes of them."""

from __future__ import annotations

import asyncio
import json
import sys
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

import crawlspace
from crawlspace.app import rendering
from crawlspace.cli import main
from crawlspace.engine.asking import request_for
from crawlspace.engine.rendering import Rendering
from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchResult, Rendered, Unrendered
from crawlspace.fetch.rendering import chromium
from crawlspace.pages.links import PageSettings
from crawlspace.policy.rendering import FACT, Memory, PageKind, RenderingSettings
from crawlspace.settings import load
from crawlspace.states import UrlState
from crawlspace.testing.clock import ManualClock
from crawlspace.types import Before, QueuedUrl
from crawlspace.urls import Identity, IdentitySettings, policy_from

SHELL = "<title>shop</title><div id=root></div><script src=/app.js></script>"
FULL = "<title>shop</title><p>" + "words and words and words, all of {0} " * 12 + "</p>"
Web = Any


class Double:
    """A browser that makes of an answer what `shows` says, and notes what it was given."""

    def __init__(self) -> None:
        self.given: list[tuple[str, str]] = []
        self.shows: Callable[[FetchResult], str | Unrendered] = lambda result: FULL.format(result.url)
        self.closed = 0

    async def render(self, result: FetchResult, why: str) -> Rendered | Unrendered:
        self.given.append((result.url.partition(".test")[2], why))
        shown = self.shows(result)
        if isinstance(shown, Unrendered):
            return shown
        return Rendered(shown.encode(), result.started_at + 5, why, requests=3, refused=1, size=100)

    async def close(self) -> None:
        self.closed += 1


class Notes:
    """What a crawl has noted, and nothing else of a ledger."""

    def __init__(self, facts: dict[str, str]) -> None:
        self.facts = facts

    async def notes(self) -> dict[str, str]:
        return self.facts


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Iterator[Double]:
    double = Double()
    monkeypatch.setattr(rendering, "browser_of", lambda *_: double)
    yield double
    assert double.closed > 0


def stats(web: Web, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(sys, "argv", ["crawlspace", "stats", str(web.directory), "--json"])
    with pytest.raises(SystemExit):
        main()
    done: dict[str, Any] = json.loads(capsys.readouterr().out)["rendering"]
    return done


def test_a_page_that_a_rule_names_is_read_as_it_was_rendered(
    web: Web, browser: Double, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.shows = lambda _: '<a href="/found">x</a>'
    web.put("/app/1", SHELL, ETag='"same"')
    web.put("/found", SHELL)
    web.put("/app/feed.xml", "<rss/>", "application/rss+xml")
    settings = {"rendering__rules": ["/app/"], "recrawl__on": True}
    web.crawl("http://a.test/app/1", "http://a.test/app/feed.xml", "http://a.test/app/none", **settings)
    assert browser.given == [("/app/1", "the rule /app/")]
    story = web.story("http://a.test/app/1")
    assert story.evidence.detail == "rendered: the rule /app/"
    assert web.story("http://a.test/found").state is UrlState.DONE
    assert stats(web, capsys, monkeypatch) == {
        "pages": 1,
        "failed": 0,
        "requests": 2,
        "bytes": 100,
        "kinds_rendered": 0,
        "kinds_not_rendered": 0,
    }


def test_a_shell_is_tried_once_for_its_kind_which_is_rendered_from_then_on(web: Web, browser: Double) -> None:
    """Also in a crawl that goes on, and by a page of the kind that is no shell itself."""
    links = "".join(f"<a href=/item/{number}>x</a>" for number in range(4))
    web.put("/", f"<p>{FULL}</p>{links}")
    for number in range(4):
        web.put(f"/item/{number}", SHELL if number else FULL.format("a full page") + "<script></script>")
    web.crawl("http://a.test/", rendering__evidence=True, scope__max_depth=0)
    assert browser.given == []
    web.crawl(rendering__evidence=True, scope__max_depth=1)
    tried, *others = browser.given
    assert "an empty shell: div#root waits to be filled" in tried[1]
    assert {why for _, why in others} == {"pages such as a.test/item/{n} need it"}
    assert len(others) >= 2
    web.put("/item/9", SHELL)
    web.crawl("http://a.test/item/9", rendering__evidence=True)
    assert browser.given[-1] == ("/item/9", "pages such as a.test/item/{n} need it")


def test_a_kind_that_rendering_brings_nothing_is_left_alone_and_read_as_it_came(web: Web, browser: Double) -> None:
    browser.shows = lambda _: SHELL
    web.put("/", FULL + "".join(f"<a href=/item/{number}>x</a>" for number in range(4)))
    for number in range(4):
        web.put(f"/item/{number}", SHELL)
    web.crawl("http://a.test/", rendering__evidence=True)
    assert len(browser.given) == 1
    assert not web.story("http://a.test/item/3").evidence.detail


def test_a_page_that_cannot_be_rendered_is_read_as_it_came_and_says_so(web: Web, browser: Double) -> None:
    browser.shows = lambda _: Unrendered("the browser has ended", passing=True)
    web.put("/", "<a href=/one>x</a><script></script>")
    web.put("/one", SHELL)
    web.crawl("http://a.test/", rendering__rules=["."])
    assert web.story("http://a.test/").evidence.detail == "not rendered: the browser has ended"
    assert web.story("http://a.test/one").state is UrlState.DONE


def test_a_kind_that_cannot_be_tried_is_given_up_in_this_run(web: Web, browser: Double) -> None:
    browser.shows = lambda _: Unrendered("no")
    web.put("/", FULL + "".join(f"<a href=/item/{number}>x</a>" for number in range(6)))
    for number in range(6):
        web.put(f"/item/{number}", SHELL)
    web.crawl("http://a.test/", rendering__evidence=True)
    assert len(browser.given) == 3


def test_shells_of_a_host_that_always_needs_it_are_rendered_and_told(
    web: Web, browser: Double, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [*("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta")]
    for name in names:
        web.put(f"/{name}", SHELL)
    web.put("/plain", FULL + "<script></script>")
    web.crawl(*(f"http://a.test/{name}" for name in (*names, "plain")), rendering__evidence=True)
    assert [why.endswith("shells of a.test need it") for _, why in browser.given] == [False] * 5 + [True] * 2
    for url, said in (("/alpha", "was tried"), ("/zeta", "shells of a.test are rendered"), ("/plain", "shells of")):
        monkeypatch.setattr(
            sys, "argv", ["crawlspace", "explain", str(web.directory), f"http://a.test{url}", "--json"]
        )
        with pytest.raises(SystemExit):
            main()
        assert said in json.loads(capsys.readouterr().out)["rendering"]
    assert stats(web, capsys, monkeypatch)["kinds_rendered"] == 5


def test_a_page_to_be_rendered_comes_whole_at_each_visit() -> None:
    """What its scripts show may change though its own bytes do not."""
    identity = Identity(policy_from(IdentitySettings()))
    before = Before("http://a.test/app/1", 1, status=200, etag='"same"')
    url = QueuedUrl(1, bytes(16), "http://a.test/app/1", 5, 1, before=before)

    async def expected(rules: tuple[str, ...], memory: Memory) -> bool:
        ledger = Notes({FACT: msgspec.json.encode(memory).decode()})
        settings = RenderingSettings(rules=rules, evidence=True)
        found = Rendering(settings, Double(), ledger, identity, PageSettings(), ManualClock(), lambda _: None)
        return await found.expects(url)

    renders = Memory({"a.test /app/{n}": PageKind(True, "", "", 1, "")})
    assert asyncio.run(expected((), renders))
    assert asyncio.run(expected(("/app/",), Memory()))
    assert not asyncio.run(expected(("/other/",), Memory()))
    assert not request_for(url, "", whole=True).headers
    assert request_for(url, "").headers


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (["browser.executable='/no/such/program'", "rendering.evidence=true"], "is no program"),
        (["rendering.rules=['(']"], "rendering.rules"),
        (["rendering.evidence=true", "network.proxy='http://127.0.0.90:3128'"], "is not a public address"),
        (["routes.x={kind='browser', proxies=['http://127.0.0.90:3128']}"], "routes.x: .*is not a public address"),
        (["routes.x={kind='browser', proxies=['http://a:b@proxy.test']}"], "a proxy's URL holds no login"),
        (["browser.max_document=1000000000"], "browser.max_document allows"),
        (["browser.timeout=101"], "browser.timeout"),
        (["browser.block=['cookies']"], "browser.block"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_before_anything_is_fetched(
    web: Web, chosen: list[str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        crawlspace.Crawl(web.directory, ["http://a.test/"], settings=_values(chosen)).run()
    assert web.asked == []


def _values(overrides: list[str]) -> dict[str, Any]:
    pairs = (override.partition("=")[::2] for override in overrides)
    return {name: tomllib.loads(f"value = {text}")["value"] for name, text in pairs}


def test_where_no_browser_is_that_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chromium.shutil, "which", lambda _: None)
    with pytest.raises(ConfigError) as told:
        chromium.program(load(None, {}).browser)
    assert "apt install chromium" in told.value.hint
    monkeypatch.setattr(chromium, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="playwright") as told:
        chromium.program(load(None, {}).browser)
    assert told.value.hint == "pip install 'crawlspace[browser]'"


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("BrowserType.launch: Target page has been closed\nBrowser logs:\n<launched> pid=7\n", "without a word"),
        ("BrowserType.launch: closed\n<launched> pid=7\n[pid=7][err] no libnss3.so\nCall log:", "no libnss3.so"),
        ("BrowserType.launch: Timeout 60000ms exceeded.\nCall log:\n", "was not ready after 60 s"),
    ],
)
def test_a_program_that_is_no_browser_is_named_with_what_is_known_of_it(told: str, why: str) -> None:
    said = chromium.not_started("/bin/false", told)
    assert "/bin/false" in said
    assert why in said
    assert "browser.executable" in said
