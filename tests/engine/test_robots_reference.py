"""Every row of the tables in docs/reference/robots.md, by its name."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crawlspace.engine.robots import Robots, ask_for_rules
from crawlspace.exchange import FetchError, FetchResult, Headers, RobotsVerdict, Truncated
from crawlspace.pages.robots import RobotsRules, RobotsSettings, judge
from crawlspace.policy.pace import with_crawl_delay
from crawlspace.types import Pace
from crawlspace.urls import Identity, IdentitySettings, policy_from

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "robots.md"
ORIGIN = "https://site.test"
DAY_MS = 86_400_000
SETTINGS = RobotsSettings()


def answer(status: int, body: bytes = b"", **more: Any) -> FetchResult:
    return FetchResult(f"{ORIGIN}/robots.txt", 0, status=status, body=body, **more)


def robots(result: FetchResult, product: str = "crawlspace") -> Robots:
    file = judge(result, ORIGIN, 0, SETTINGS)
    return Robots(file, RobotsRules(file.text, product) if file.verdict is RobotsVerdict.RULES else None)


def allows(text: str | bytes, path: str, product: str = "crawlspace") -> bool:
    body = text.encode() if isinstance(text, str) else text
    return robots(answer(200, body), product).check(ORIGIN + path).allowed


def everything(result: FetchResult) -> bool:
    found = robots(result)
    return found.check(f"{ORIGIN}/x").allowed and found.file.verdict is not RobotsVerdict.DEFER


def deferred(result: FetchResult) -> bool:
    found = robots(result)
    again = found.file.expires_at == round(SETTINGS.retry * 1000)
    return found.defers and not found.check(f"{ORIGIN}/x").allowed and again


def redirected(times: int) -> FetchResult:
    """The last answer to /robots.txt behind so many redirects, each to another host."""
    asked: list[str] = []

    async def fetch(url: str) -> FetchResult:
        asked.append(url)
        if len(asked) > times:
            return FetchResult(url, 0, status=200, body=b"User-agent: *\nDisallow: /x")
        location = f"https://h{len(asked)}.test/r".encode()
        return FetchResult(url, 0, status=302, headers=Headers(((b"Location", location),)))

    identity = Identity(policy_from(IdentitySettings()), bytes(32))
    results = asyncio.run(ask_for_rules(ORIGIN, fetch, identity, SETTINGS.max_redirects))
    assert [result.url for result in results] == asked
    return results[-1]


def without_a_target(location: bytes) -> FetchResult:
    async def fetch(url: str) -> FetchResult:
        return FetchResult(url, 0, status=302, headers=Headers(((b"Location", location),)))

    identity = Identity(policy_from(IdentitySettings()), bytes(32))
    (result,) = asyncio.run(ask_for_rules(ORIGIN, fetch, identity, 5))
    return result


def size_cap() -> bool:
    first, line = b"User-agent: *\nDisallow: /a\n", b"Disallow: /bbbbbbb\n"
    body = first + line * (600 * 1024 // len(line)) + b"Disallow: /late\n"
    kept = robots(answer(200, body)).file.text
    whole = 512 * 1024 - len(line) < len(kept) <= 512 * 1024 and kept.endswith("/bbbbbbb\n")
    return whole and not allows(body, "/a") and allows(body, "/late")


def cache_one_day() -> bool:
    lasting = [answer(200, b"User-agent: *\nDisallow: /x"), answer(404)]
    return {robots(result).file.expires_at for result in lasting} == {DAY_MS}


RULE = b"User-agent: *\nDisallow: /x\n"
TWO = "".join(f"User-agent: {agent}\nDisallow: /{number}\n\n" for number, agent in enumerate("aba*", 1))

ROWS: dict[str, Callable[[], bool]] = {
    "status_2xx": lambda: not allows(RULE, "/x") and allows(RULE, "/y"),
    "redirects_are_followed": lambda: not robots(redirected(5)).check(f"{ORIGIN}/x").allowed,
    "too_many_redirects": lambda: everything(redirected(6)) and everything(without_a_target(b"mailto:x")),
    "status_4xx": lambda: all(everything(answer(status, RULE)) for status in (400, 401, 403, 404, 410, 451)),
    "status_5xx": lambda: all(deferred(answer(status, RULE)) for status in (500, 502, 503, 599)),
    "status_429": lambda: deferred(answer(429)),
    "network_error": lambda: all(
        deferred(answer(0, error=error)) for error in (FetchError.DNS, FetchError.CONNECT, FetchError.TOTAL_TIMEOUT)
    ),
    "broken_off": lambda: deferred(answer(200, RULE, error=FetchError.RESET, truncated=Truncated.DISCONNECT)),
    "html_page": lambda: everything(answer(200, b"<!DOCTYPE html><title>User-agent: *\nDisallow: /</title>")),
    "empty_file": lambda: everything(answer(200)) and everything(answer(200, b"\n \n")),
    "size_cap": size_cap,
    "byte_order_mark": lambda: (
        not any(allows(body, "/x") for body in (b"\xef\xbb\xbf" + RULE, RULE.decode().encode("utf-16")))
    ),
    "wrong_encoding": lambda: not allows(b"User-agent: *\nDisallow: /\xe4", "/%E4"),
    "cache_one_day": cache_one_day,
    "groups_of_one_agent_are_one": lambda: (
        [allows(TWO, path, "a") for path in ("/1", "/2", "/3")] == [False, True, False]
    ),
    "star_group_last": lambda: allows(TWO, "/4", "a") and not allows(TWO, "/4", "c"),
    "no_group": lambda: allows("User-agent: a\nDisallow: /", "/x"),
    "agent_without_case": lambda: not allows("User-agent: CrawlSpace/9\nDisallow: /x", "/x"),
    "longest_match": lambda: allows("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c"),
    "allow_wins_a_tie": lambda: allows("User-agent: *\nDisallow: /a\nAllow: /a", "/a"),
    "percent_encoding": lambda: (
        not allows("User-agent: *\nDisallow: /%7Ea%2fb", "/~a%2Fb")
        and allows("User-agent: *\nDisallow: /a%2Fb", "/a/b")
    ),
    "path_with_case": lambda: allows("User-agent: *\nDisallow: /A", "/a"),
    "star_and_dollar": lambda: (
        not allows("User-agent: *\nDisallow: /*.gif$", "/a/b.gif")
        and allows("User-agent: *\nDisallow: /*.gif$", "/b.gif?1")
    ),
    "comments": lambda: not allows("User-agent: * # all\nDisallow: /x # why", "/x"),
    "robots_txt_itself": lambda: allows("User-agent: *\nDisallow: /", "/robots.txt"),
    "other_lines": lambda: not allows("User-agent: crawlspace\nHost: x\nUser-agent: b\nDisallow: /x", "/x"),
    "crawl_delay": lambda: (
        with_crawl_delay(Pace(), RobotsRules("User-agent: *\nCrawl-delay: 99", "c").crawl_delay, 30).crawl_delay_ms
        == 30_000
    ),
    "sitemap_lines": lambda: RobotsRules("Sitemap: /1\nUser-agent: b\nSitemap: /2", "c").sitemaps == ("/1", "/2"),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_the_reference_holds(row: str) -> None:
    assert ROWS[row]()


def test_every_row_of_the_page_has_its_test_and_none_is_left_over() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE) == list(ROWS)
