"""What speaks for rendering a page, and what is remembered of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from crawlspace.exchange import Headers
from crawlspace.pages.shell import Looks, looks_of
from crawlspace.policy.rendering import (
    ENOUGH,
    FACT,
    KINDS,
    Gain,
    Memory,
    PageKind,
    RenderingSettings,
    kind_of,
    remembered,
    why_shell,
)

HTML = Headers(((b"Content-Type", b"text/html; charset=utf-8"),))
SCRIPT = "<script src=/app.js></script>"
WORDS = "<p>" + "Words that a reader came for. " * 40 + "</p>"
WAYS = "".join(f"<a href=/{number}>x</a>" for number in range(9))


def looks(body: str, headers: Headers = HTML) -> Looks | None:
    return looks_of(f"<html><head><title>t</title></head><body>{body}</body></html>".encode(), headers)


def why(body: str) -> str | None:
    found = looks(body)
    return None if found is None else why_shell(found)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (f"<div id=root></div>{SCRIPT}", "div#root waits to be filled"),
        (f"<div id=app><p>Loading</p></div>{SCRIPT}", "div#app waits"),
        (f"<div id=__next></div>{SCRIPT}", "div#__next"),
        (f"<app-root></app-root>{SCRIPT}", "app-root waits"),
        (f"<body ng-app=shop></body>{SCRIPT}", "body waits"),
        (f"<noscript>You need to enable JavaScript to run this app.</noscript>{SCRIPT}", "asks for scripts"),
        (f"<a href=/>home</a>{SCRIPT}", "1 links, 1 scripts"),
        ("<SCRIPT>document.write(1)</SCRIPT>", "0 links, 1 scripts"),
    ],
)
def test_a_page_that_waits_for_its_scripts_is_a_shell(body: str, said: str) -> None:
    found = why(body)
    assert found is not None
    assert said in found


@pytest.mark.parametrize(
    "body",
    [
        "<div id=root></div>",
        f"{WORDS}{SCRIPT}",
        f"<div id=root>{WORDS}</div>{SCRIPT}",
        f"<div id=root></div>{WORDS}{SCRIPT}",
        f"<div id=root><a href=/x>x</a></div><a href=/>y</a>{SCRIPT}",
        f"{WORDS}<noscript>Turn JavaScript on to see the map.</noscript>{SCRIPT}",
        f"<a href=/1>one</a><a href=/2>two</a>{SCRIPT}",
        f"{WAYS}<a href=/more>x</a>{SCRIPT}",
        f"{WORDS}<noscript><img src=/pixel></noscript>{SCRIPT}",
        "<p>A short page.</p>",
    ],
)
def test_a_page_that_says_something_is_none(body: str) -> None:
    assert why(body) is None


def test_what_is_no_page_is_not_looked_at() -> None:
    assert looks(SCRIPT, Headers(((b"Content-Type", b"text/plain"),))) is None


def test_the_words_of_a_noscript_are_not_the_page_s() -> None:
    long = "Please enable JavaScript. " * 40
    found = looks(f"<noscript>{long}</noscript>{SCRIPT}")
    assert found == Looks(1, 0, 1, "", asks=True)
    assert why_shell(found._replace(scripts=0)) is None


@pytest.mark.parametrize(
    ("gain", "worth"),
    [
        (Gain(10, 12, 0, 1), True),
        (Gain(10, 500, 3, 0), True),
        (Gain(10, 200, 3, 0), False),
        (Gain(400, 900, 3, 0), False),
        (Gain(400, 1000, 3, 0), True),
    ],
)
def test_links_or_much_text_are_worth_a_browser(gain: Gain, worth: bool) -> None:
    assert gain.is_worth_it is worth


def kind(renders: bool = True, at: int = 1) -> PageKind:
    return PageKind(renders, "an empty shell", "http://a.test/1", at, str(Gain(1, 900, 0, 3)))


def test_what_was_found_is_told_in_words() -> None:
    assert str(kind()) == (
        "pages of this kind are rendered: http://a.test/1 was tried (an empty shell) and brought "
        "900 characters of text in place of 1, 3 links more"
    )
    assert "are not rendered" in str(kind(False))


def test_a_kind_that_was_tried_is_known_and_others_are_to_be_tried() -> None:
    memory = Memory().with_kind("a.test /{n}", kind()).with_kind("a.test /old", kind(False))
    assert memory.wants("a.test", "/{n}") is True
    assert memory.wants("a.test", "/old") is False
    assert memory.wants("a.test", "/new") is None
    assert Memory().wants("a.test", "/") is None


@pytest.mark.parametrize("renders", [True, False])
def test_kinds_of_one_mind_speak_for_their_host_and_no_other(renders: bool) -> None:
    memory = Memory()
    for number in range(ENOUGH):
        assert memory.wants("a.test", "/new") is None
        memory = memory.with_kind(kind_of("a.test", f"/word{number}"), kind(renders))
    assert memory.wants("a.test", "/new") is renders
    assert memory.wants("b.test", "/new") is None
    assert memory.with_kind("a.test /other", kind(not renders)).wants("a.test", "/new") is None


def test_the_kind_found_longest_ago_is_forgotten() -> None:
    memory = Memory({f"a.test /{number}": kind(at=number) for number in range(1, KINDS + 1)})
    assert list(memory.with_kind("b.test /", kind(at=9)).kinds)[::999] == ["a.test /2", "b.test /"]


def test_counts_add_up_and_what_is_known_stays() -> None:
    one = Memory({"a.test /": kind()}, pages=1, failed=2, requests=3, bytes=4)
    other = Memory({"a.test /": kind(False), "a.test /x": kind(False)}, 10, 20, 30, 40)
    both = one.plus(other)
    assert (both.pages, both.failed, both.requests, both.bytes) == (11, 22, 33, 44)
    assert {key: each.renders for key, each in both.kinds.items()} == {"a.test /": True, "a.test /x": False}


def test_it_is_kept_as_a_fact_of_the_crawl() -> None:
    memory = Memory({"a.test /": kind()}, pages=1)
    assert remembered({}) == Memory()
    assert remembered({FACT: msgspec.json.encode(memory).decode()}) == memory


@pytest.mark.parametrize(("chosen", "on"), [({}, False), ({"evidence": True}, True), ({"rules": ("/app/",)}, True)])
def test_rendering_is_off_unless_something_asks_for_it(chosen: dict[str, Any], on: bool) -> None:
    assert RenderingSettings(**chosen).on is on
