"""robots.txt is read and obeyed as RFC 9309 has it."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawlspace.exchange import FetchError, FetchResult, Headers, RobotsFile, RobotsVerdict, Truncated
from crawlspace.pages.robots import SITEMAPS, RobotsRules, RobotsSettings, judge

DATA = Path(__file__).parent.parent / "data" / "robots"
NOW = 1_700_000_000_000
ORIGIN = "https://site.test"


def answer(status: int, body: bytes = b"", **more: Any) -> FetchResult:
    return FetchResult(f"{ORIGIN}/robots.txt", NOW, status=status, body=body, **more)


def judged(result: FetchResult, **settings: Any) -> RobotsFile:
    return judge(result, ORIGIN, NOW, RobotsSettings(**settings))


def text_of(row: dict[str, Any]) -> str:
    if "robots" in row:
        return str(row["robots"])
    return judged(answer(200, base64.b64decode(row["robots_b64"]))).text


# -- the RFC's own ground -----------------------------------------------------------------------------------

FILES = json.loads((DATA / "cases.json").read_text())
OTHERWISE = {
    "agent-form": "an agent is a product token, not a header or a list",
    "token-with-digits": "a token is compared whole, digits too, and one line names one",
    "agent-line-form": "one line names one agent",
    "non-ascii-agent": "a product token is ASCII",
    "google-extension": "index.html is not its folder",
    "lenient": "markup in a line is part of it; two words without a colon are a line",
}


def test_what_the_rfc_decides_is_decided_so() -> None:
    wrong = [
        (name, agent, url)
        for file in FILES
        for name, kind, agent, url, allowed in file["checks"]
        if kind == "rfc" and RobotsRules(text_of(file), agent).check(url).allowed is not allowed
    ]
    assert not wrong


def test_where_good_tools_differ_our_choices_stay_what_they_are() -> None:
    """33 of 1,272 cases are decided otherwise than their authors expect, for the reasons in OTHERWISE."""
    differ: dict[str, int] = {}
    for file in FILES:
        text = text_of(file)
        for _, kind, agent, url, allowed in file["checks"]:
            if RobotsRules(text, agent).check(url).allowed is not allowed:
                differ[kind] = differ.get(kind, 0) + 1
    assert differ.keys() == OTHERWISE.keys()
    assert differ == {
        "agent-form": 13,
        "token-with-digits": 10,
        "lenient": 4,
        "google-extension": 2,
        "agent-line-form": 2,
        "non-ascii-agent": 2,
    }


NOT_A_TOKEN = {"dir-022", "dir-023", "dir-025"}
"""Markup in the lines; a whole header as agent."""


@pytest.mark.parametrize(
    "row", json.loads((DATA / "directives.json").read_text()), ids=lambda row: f"{row['id']}-{row['what']}"
)
def test_delays_and_sitemaps_are_read_as_other_tools_read_them(row: dict[str, Any]) -> None:
    rules = RobotsRules(row["robots"], row.get("agent", "crawlspace"))
    if row["what"] == "sitemaps":
        assert list(rules.sitemaps) == row["value"]
    elif row["what"] == "crawl-delay":
        assert (rules.crawl_delay == row["seconds"]) is (row["id"] not in NOT_A_TOKEN)
    elif row["id"] == "dir-035":
        assert len(rules.sitemaps) == 2, "a bare address is no line"
    else:
        assert len(rules.sitemaps) == row["value"]


# -- rules --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "path", "matches"),
    [
        ("/", "/", True),
        ("/a", "/abc", True),
        ("/a", "/b/a", False),
        ("/a$", "/a", True),
        ("/a$", "/ab", False),
        ("/*a", "/xxa", True),
        ("*a", "/xxa", True),
        ("*", "/", True),
        ("$", "/", False),
        ("/a*$", "/abc", True),
        ("/a*c$", "/abcc", True),
        ("/a*c$", "/abcd", False),
        ("/ab*b$", "/ab", False),
        ("/a*b*c", "/a-b-c-d", True),
        ("/a*b*c", "/a-c-b", False),
        ("/a**b", "/ab", True),
        ("/a$b", "/a$b", True),
        ("/a$b", "/a", False),
        ("/a%2Ab", "/a*b", True),
        ("/a%2Ab", "/axb", False),
        ("/a%24", "/a$", True),
        ("/a%24", "/ab", False),
        ("/%7Ejoe", "/~joe", True),
        ("/~joe", "/%7ejoe", True),
        ("/a%2fb", "/a%2Fb", True),
        ("/a%2Fb", "/a/b", False),
        ("/bücher", "/b%c3%bccher", True),
        ("/a b", "/a%20b", True),
        ("/a?b", "/a?bc", True),
        ("/a?b", "/a", False),
        ("a", "/a", False),
    ],
)
def test_a_rule_matches_from_the_start_of_path_and_query(rule: str, path: str, matches: bool) -> None:
    rules = RobotsRules(f"User-agent: *\nDisallow: {rule}", "crawlspace")
    assert rules.check(f"https://site.test:8080{path}").allowed is not matches
    assert rules.check(f"{path}#fragment").allowed is not matches


@pytest.mark.parametrize(
    ("lines", "path", "rule"),
    [
        ("Disallow: /a\nAllow: /a/b", "/a/b", "Allow: /a/b (line 3)"),
        ("Allow: /a/b\nDisallow: /a", "/a/c", "Disallow: /a (line 3)"),
        ("Disallow: /a\nAllow: /a", "/a", "Allow: /a (line 3)"),
        ("Disallow: /a*\nAllow: /a", "/a", "Disallow: /a* (line 2)"),
        ("Disallow: /a*b\nAllow: /a/long/", "/a/long/b", "Allow: /a/long/ (line 3)"),
        ("Disallow: /*\nAllow: /*z", "/a", "Disallow: /* (line 2)"),
        ("Disallow: /x\nDisallow: /x", "/x", "Disallow: /x (line 2)"),
        ("Disallow:", "/a", "no rule for * matches"),
        ("Disallow: /a", "/robots.txt", "robots.txt itself may always be fetched"),
        ("disallow : /a # why", "/a", "Disallow: /a (line 2)"),
        ("DISALOW: /a", "/a", "Disallow: /a (line 2)"),
        ("Disallow /a", "/a", "Disallow: /a (line 2)"),
        ("Disallow: /" + "a" * 300, "/" + "a" * 300, "Disallow: /" + "a" * 199 + " (line 2)"),
    ],
)
def test_the_longest_rule_decides_and_can_be_named(lines: str, path: str, rule: str) -> None:
    decision = RobotsRules(f"User-agent: *\n{lines}", "crawlspace").check(f"{ORIGIN}{path}")
    assert decision.rule == rule
    assert decision.allowed is not rule.startswith("Disallow")


@pytest.mark.parametrize(
    ("text", "allowed", "rule"),
    [
        (
            "User-agent: crawlspace\nDisallow: /a\n\nUser-agent: *\nDisallow: /",
            True,
            "no rule for crawlspace matches",
        ),
        ("User-agent: CRAWLSPACE/2.0\nDisallow: /x", False, "Disallow: /x (line 2)"),
        ("User-agent: *\nUser-agent: other\nDisallow: /x", False, "Disallow: /x (line 3)"),
        ("User-agent: crawlspace\nAllow: /\n\nUser-agent: crawlspace\nDisallow: /x", False, "Disallow: /x (line 5)"),
        ("User-agent: *\nCrawl-delay: 10\nUser-agent: other\nDisallow: /x", False, "Disallow: /x (line 4)"),
        ("User-agent: crawlspacer\nDisallow: /", True, "no group for crawlspace or *"),
        ("User-agent:\nDisallow: /", True, "no group for crawlspace or *"),
        ("Disallow: /", True, "no group for crawlspace or *"),
        ("", True, "no group for crawlspace or *"),
        ("user agent *\nDisallow: /x", True, "no group for crawlspace or *"),
        ("useragent: *\nDisallow: /x", False, "Disallow: /x (line 2)"),
        ("User-agent: *\rDisallow: /x", False, "Disallow: /x (line 2)"),
        ("User-agent: *\r\n\r\nDisallow: /x", False, "Disallow: /x (line 3)"),
        ("User-agent: *\0\n\0Disallow: /x\0", False, "Disallow: /x (line 2)"),
    ],
)
def test_the_groups_that_name_us_are_one_and_come_before_everyone_s(text: str, allowed: bool, rule: str) -> None:
    assert RobotsRules(text, "CrawlSpace/1.0").check(f"{ORIGIN}/x") == (allowed, rule)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("10", 10.0),
        ("0.5", 0.5),
        ("0", 0.0),
        ("soon", None),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        ("10\nCrawl-delay: 20", 10.0),
    ],
)
def test_a_delay_that_is_no_number_of_seconds_is_none_and_spoils_nothing(line: str, expected: float | None) -> None:
    rules = RobotsRules(f"User-agent: *\nCrawl-delay: {line}\nDisallow: /x", "crawlspace")
    assert rules.crawl_delay == expected
    assert not rules.check(f"{ORIGIN}/x").allowed


def test_a_delay_belongs_to_its_own_group() -> None:
    text = "User-agent: *\nDisallow: /x\nUser-agent: other\nCrawl-delay: 10\n"
    assert RobotsRules(text, "crawlspace").crawl_delay is None
    assert RobotsRules(text, "other").crawl_delay == 10


def test_sitemaps_are_kept_once_each_up_to_a_cap() -> None:
    lines = "".join(f"Sitemap: /{number}\nSitemap: /{number}\n" for number in range(SITEMAPS + 5))
    assert RobotsRules(lines + "Sitemap:\n", "crawlspace").sitemaps == tuple(f"/{n}" for n in range(SITEMAPS))


# -- bugs of other crawlers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "checks"),
    [
        pytest.param(
            "Disallow: /*%2F*\nAllow: /",
            [("/path/index.html", True), ("/topic/9%2F11/index.html", False), ("/topic/9%2f11/", False)],
            id="bug-028",
        ),
        pytest.param(
            "Disallow: /bücher/",
            [
                ("/b%C3%BCcher/1.html", False),
                ("/bücher/1.html", False),
                ("/b%c3%bccher/1.html", False),
                ("/b/", True),
            ],
            id="bug-029",
        ),
        pytest.param(
            "Disallow: /forbidden/",
            [("/forbidden/1.html", False), ("/%66orbidden/1.html", False), ("//forbidden/1.html", True)],
            id="bug-030",
        ),
        pytest.param(
            "Disallow: /hide?\nDisallow: /*?sort=",
            [("/hide?id=1", False), ("/hide", True), ("/l?sort=asc", False)],
            id="bug-031",
        ),
        pytest.param("User-agent: BadBot\nDisallow: /", [("/a", False)], id="bug-032"),
        pytest.param(
            "Crawl-delay: 10\nUser-agent: badbot\nDisallow: /\nUser-agent: *\nDisallow:",
            [("/a", False)],
            id="bug-033",
        ),
        pytest.param("Disallow: /*.aspx", [("/", True), ("/a.aspx", False)], id="bug-034"),
    ],
)
def test_what_other_crawlers_got_wrong(lines: str, checks: list[tuple[str, bool]]) -> None:
    rules = RobotsRules(f"User-agent: *\n{lines}\n", "examplebot")
    assert [(path, rules.check(f"{ORIGIN}{path}").allowed) for path, _ in checks] == checks


# -- answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "verdict", "detail"),
    [
        (answer(200, b"User-agent: *"), RobotsVerdict.RULES, "robots.txt: status 200"),
        (answer(204), RobotsVerdict.RULES, "robots.txt: status 204"),
        (
            answer(200, b"<!doctype html>"),
            RobotsVerdict.ALLOW_ALL,
            "robots.txt: status 200, a page of HTML and no rules",
        ),
        (answer(301), RobotsVerdict.ALLOW_ALL, "robots.txt: status 301"),
        (answer(400), RobotsVerdict.ALLOW_ALL, "robots.txt: status 400"),
        (answer(401), RobotsVerdict.ALLOW_ALL, "robots.txt: status 401"),
        (answer(403), RobotsVerdict.ALLOW_ALL, "robots.txt: status 403"),
        (answer(404, b"User-agent: *\nDisallow: /"), RobotsVerdict.ALLOW_ALL, "robots.txt: status 404"),
        (answer(418), RobotsVerdict.ALLOW_ALL, "robots.txt: status 418"),
        (answer(429), RobotsVerdict.DEFER, "robots.txt: status 429"),
        (answer(500), RobotsVerdict.DEFER, "robots.txt: status 500"),
        (answer(503, b"<html>"), RobotsVerdict.DEFER, "robots.txt: status 503"),
        (answer(999), RobotsVerdict.DEFER, "robots.txt: status 999"),
        (answer(100), RobotsVerdict.DEFER, "robots.txt: status 100"),
        (answer(0, error=FetchError.DNS), RobotsVerdict.DEFER, "robots.txt: dns"),
        (answer(200, b"User-agent: *\n", error=FetchError.RESET), RobotsVerdict.DEFER, "robots.txt: reset"),
        (answer(0, error=FetchError.LOCAL), RobotsVerdict.DEFER, "robots.txt: local"),
        (
            replace(answer(0, error=FetchError.LOCAL), detail="proxy http://p.test:1: refused"),
            RobotsVerdict.DEFER,
            "robots.txt: local, proxy http://p.test:1: refused",
        ),
    ],
    ids=lambda value: value.status if isinstance(value, FetchResult) else None,
)
def test_an_answer_comes_to_rules_to_none_or_to_waiting(
    result: FetchResult, verdict: RobotsVerdict, detail: str
) -> None:
    file = judged(result)
    assert (file.verdict, file.detail, file.origin, file.fetched_at) == (verdict, detail, ORIGIN, NOW)
    assert file.expires_at == NOW + (600_000 if verdict is RobotsVerdict.DEFER else 86_400_000)
    assert bool(file.text) is (verdict is RobotsVerdict.RULES and bool(result.body))


def test_how_long_an_answer_holds_is_a_setting() -> None:
    assert judged(answer(404), cache=60).expires_at == NOW + 60_000
    assert judged(answer(503), retry=30).expires_at == NOW + 30_000


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"\xef\xbb\xbfUser-agent: *", "User-agent: *"),
        ("\ufeffUser-agent: *".encode("utf-16-le"), "User-agent: *"),
        ("\ufeffUser-agent: *".encode("utf-16-be"), "User-agent: *"),
        ("Disallow: /ü".encode(), "Disallow: /ü"),
        (b"Disallow: /\xfc", "Disallow: /%FC"),
    ],
)
def test_rules_are_text_whatever_bytes_they_came_in(body: bytes, text: str) -> None:
    assert judged(answer(200, body)).text == text


@pytest.mark.parametrize("end", [b"\n", b"\r"])
def test_a_file_beyond_the_cap_is_cut_at_its_last_full_line(end: bytes) -> None:
    line = b"Disallow: /%06d" + end
    body = b"User-agent: *" + end + b"".join(line % number for number in range(40_000))
    file = judged(answer(200, body, truncated=Truncated.LENGTH))
    assert 512 * 1024 - len(line % 0) <= len(file.text.encode()) <= 512 * 1024
    assert file.text.endswith(end.decode())
    assert file.detail == f"robots.txt: status 200, the first {len(file.text)} bytes of {len(body)}"


def test_a_file_of_one_line_beyond_the_cap_has_no_rules() -> None:
    assert judged(answer(200, b"Disallow: /" + b"a" * 600_000)).text == ""


def test_headers_do_not_decide_what_a_body_is() -> None:
    """Many sites send their rules as text/html."""
    headers = Headers(((b"Content-Type", b"text/html"),))
    assert judged(answer(200, b"User-agent: *\nDisallow: /", headers=headers)).verdict is RobotsVerdict.RULES


# -- cost ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("Disallow: /" + "*a" * 1000 + "b", "/" + "a" * 8000),
        ("Disallow: " + "/*" * 200_000 + "x", "/" * 8000),
        ("".join(f"Disallow: /{number}*x\n" for number in range(25_000)), "/" + "1" * 8000),
        ("".join(f"Disallow: /{'a' * number}\n" for number in range(1000)), "/" + "b" * 8000),
        ("Disallow: /x\n" * 40_000, "/x"),
        ("User-agent: *\n" * 35_000 + "Disallow: /x", "/x"),
        (":" * 500_000, "/x"),
        ("#" * 500_000, "/x"),
        ("\r" * 500_000, "/x"),
    ],
    ids=range(9),
)
def test_no_file_and_no_url_takes_long(text: str, path: str) -> None:
    start = time.process_time()
    RobotsRules(f"User-agent: *\n{text}", "crawlspace").check(f"{ORIGIN}{path}")
    assert time.process_time() - start < 3


@given(st.text("abAB:*$/#%2Fu\n\r \t\0é-", max_size=200), st.text("ab*$/%2F?#é", max_size=40))
def test_no_file_is_too_odd_to_be_read(text: str, path: str) -> None:
    rules = RobotsRules(f"User-agent: *\nDisallow: {text}", "crawlspace")
    decision = rules.check(f"{ORIGIN}/{path}")
    assert decision.allowed is not decision.rule.startswith("Disallow")
