"""Which way a URL goes, what its answer comes to, and how it ends: the decisions, without a web."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from crawlspace.app.routes import route_fetchers
from crawlspace.engine.asking import request_for
from crawlspace.engine.routes import Way, Ways
from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchError, FetchRequest, FetchResult, Headers
from crawlspace.fetch.http import HttpFetcher
from crawlspace.fetch.proxied import ProxyPool
from crawlspace.fetch.routes import Dressed, HttpRoute, RoutedFetcher
from crawlspace.policy.blocked import Detector
from crawlspace.policy.decide import Case, decide, unroutable
from crawlspace.policy.outcome import Kind, Outcome, Told, classify
from crawlspace.policy.retry import RetrySettings
from crawlspace.policy.routes import Routing, RoutingRule, RoutingSettings, SignatureRule, When
from crawlspace.settings import convert
from crawlspace.testing.clock import ManualClock
from crawlspace.types import Died, Evidence, Finished, QueuedUrl, RequestSpec, Rerouted, RetryAt, RouteFigures

NOW = 1_700_000_000_000
ROUTES = {"one": HttpRoute(), "two": HttpRoute(requests=2, attempts=1)}
URL = QueuedUrl(1, b"k" * 16, "http://a.test/x", 1, 0)
ON_ONE = replace(URL, routes=("one",))


class Book:
    """Budgets in memory."""

    def __init__(self) -> None:
        self.taken: dict[str, int] = {}

    async def take_route(self, name: str, most: int) -> bool:
        if self.taken.get(name, 0) >= most:
            return False
        self.taken[name] = self.taken.get(name, 0) + 1
        return True

    async def give_route_back(self, name: str) -> None:
        self.taken[name] -= 1

    async def route_figures(self) -> list[RouteFigures]:
        return []


def ways(*rules: RoutingRule, order: Sequence[str] = ("one", "two"), **settings: Any) -> Ways:
    routing = Routing.of(RoutingSettings(order=tuple(order), rules=rules, **settings), ROUTES)
    own = Detector(routing.settings.signatures)
    return Ways(routing, Book(), own)


def way(where: Ways, url: QueuedUrl = URL) -> Way:
    return asyncio.run(where.way(url))


def test_a_url_goes_by_plain_http_until_a_rule_or_a_block_says_otherwise() -> None:
    assert way(ways()) == Way()
    assert way(ways(), ON_ONE) == Way("one", ("one",))
    always = RoutingRule(url="/x", routes=("two",), when=When.ALWAYS)
    assert way(ways(always)) == Way("two", ("two",))
    assert way(ways(RoutingRule(url="/y", routes=("two",), when=When.ALWAYS))) == Way()
    assert way(ways(RoutingRule(url="/x", routes=("two",)))) == Way()


def test_a_budget_that_is_used_up_sends_it_on_and_in_the_end_nowhere() -> None:
    where = ways()
    on_two = replace(URL, routes=("two",))
    assert [way(where, on_two).route for _ in range(3)] == ["two", "two", "one"]
    assert way(where, replace(URL, routes=("one", "two"))).none_left == "no route has anything left to give: two"
    asyncio.run(where.unused(Way("two", ("two",))))
    assert way(where, on_two).route == "two"
    asyncio.run(where.unused(Way("one", ("one",))))
    asyncio.run(where.unused(Way()))


def test_a_route_that_is_no_longer_set_is_passed_over() -> None:
    assert way(ways(), replace(URL, routes=("gone",))) == Way("one", ("gone", "one"))
    assert way(ways(order=()), replace(URL, routes=("gone",))).none_left.endswith("gone")


def test_rules_go_by_url_and_by_signature_and_never_back() -> None:
    rules = (
        RoutingRule(signatures=("a-wall",), routes=("two", "one")),
        RoutingRule(url="glob:http://b.test/**", routes=("two",)),
    )
    where = ways(*rules, signatures=(SignatureRule(id="a-wall", statuses=(403,)),))
    wall = Outcome(Kind.BLOCKED, signature="a-wall")
    other = Outcome(Kind.BLOCKED, signature="another")
    assert where.onward(URL, (), wall) == "two"
    assert where.onward(URL, ("two",), wall) == "one"
    assert where.onward(URL, ("two", "one"), wall) == ""
    assert where.onward(URL, (), other) == "one"
    assert where.onward(replace(URL, url="http://b.test/"), ("two",), other) == ""
    assert (where.tries("two"), where.tries(""), where.tries("gone")) == (1, None, None)


def test_rules_that_cannot_be() -> None:
    for rule, said in (
        (RoutingRule(routes=()), "names no route"),
        (RoutingRule(routes=("three",)), "no route 'three'"),
        (RoutingRule(url="(", routes=("one",)), "rule 1"),
        (RoutingRule(signatures=("dtadome",), routes=("one",)), "rule 1: there is no signature 'dtadome'.*datadome"),
    ):
        with pytest.raises(ConfigError, match=said):
            ways(rule)
    with pytest.raises(ConfigError, match=r"routing\.ignore: there is no signature 'x'") as raised:
        ways(ignore=("x",))
    assert "signatures: cloudflare-challenge, " in str(raised.value.hint)
    with pytest.raises(ValueError, match="says nothing by which"):
        SignatureRule(id="empty")


def judged(where: Ways, url: QueuedUrl, status: int, body: bytes = b"", **fields: Any) -> Outcome:
    result = FetchResult(url.url, NOW, status=status, body=body, headers=Headers(), **fields)
    return where.judge(url, classify(result, NOW), result)


def test_what_an_answer_comes_to() -> None:
    wall = b'<div class="cf-error-details">'
    assert judged(ways(), URL, 403, wall).kind is Kind.BLOCKED
    assert judged(ways(), URL, 403).kind is Kind.TERMINAL
    assert judged(ways(), ON_ONE, 403).signature == "http_403"
    assert judged(ways(), ON_ONE, 404).kind is Kind.TERMINAL
    assert judged(ways(), ON_ONE, 200).kind is Kind.SUCCESS
    assert judged(ways(detect=False), URL, 403, wall).error == "http_403"
    away = FetchResult(URL.url, NOW, status=302, headers=Headers(((b"Location", b"/showcaptcha?cc=1"),)))
    assert ways().judge(URL, classify(away, NOW), away).signature == "sent-to-captcha"
    limited = judged(ways(), URL, 403, b"error code: 1015")
    assert (limited.kind, limited.error, limited.slow_down) == (Kind.TRANSIENT, "rate_limited", True)


def test_a_route_that_fails_says_nothing_of_the_host_and_a_plain_request_does() -> None:
    assert judged(ways(), ON_ONE, 0, error=FetchError.CONNECT, route="one").told is Told.NOTHING
    assert judged(ways(), ON_ONE, 0, error=FetchError.PROTOCOL, route="one").told is Told.NOTHING
    assert judged(ways(), URL, 0, error=FetchError.CONNECT).told is Told.ABSENT


def ended(outcome: Outcome, url: QueuedUrl = URL, **case: Any) -> Any:
    evidence = Evidence(NOW, status=403, route=url.route, detail="words")
    return decide(Case(3, 5, url, outcome, evidence, **case), NOW, random.Random(1), RetrySettings(jitter=0))


def test_a_blocked_url_goes_on_or_is_dead() -> None:
    blocked = Outcome(Kind.BLOCKED, error="blocked", signature="a-wall")
    onward = ended(blocked, ON_ONE, gone=("one",), onward="two")
    assert isinstance(onward, Rerouted)
    assert (onward.routes, onward.due, onward.evidence.error) == (("one", "two"), NOW, "blocked")
    dead = ended(blocked, ON_ONE, gone=("one",))
    assert isinstance(dead, Died)
    assert dead.evidence.error == "blocked"


def test_a_route_has_its_own_tries_and_then_the_next_has() -> None:
    busy = Outcome(Kind.TRANSIENT, error="http_503")
    assert isinstance(ended(busy, ON_ONE, gone=("one",), onward="two", tries=2), RetryAt)
    tried = replace(ON_ONE, attempts=1)
    onward = ended(busy, tried, gone=("one",), onward="two", tries=2)
    assert isinstance(onward, Rerouted)
    assert onward.evidence.detail == "http_503 by route one: words"
    dead = ended(busy, tried, gone=("one",), tries=2)
    assert (type(dead), dead.evidence.error) == (Died, "blocked")
    half = replace(busy, partial=True, error="truncated")
    assert isinstance(ended(half, tried, gone=("one",), onward="two", tries=2), Finished)
    never_blocked = ended(busy, replace(URL, attempts=1), gone=("one",), onward="two", tries=2)
    assert (type(never_blocked), never_blocked.evidence.error) == (Died, "http_503")


def test_what_no_route_takes_is_dead_without_a_request() -> None:
    dead = unroutable(3, 5, ON_ONE, "nothing left", NOW)
    assert (dead.evidence.asked, dead.evidence.error, dead.evidence.route) == (False, "blocked", "one")


def test_requests_carry_their_route() -> None:
    assert request_for(URL, "one") == FetchRequest(URL.url, by_type=True, route="one")
    spec = RequestSpec("POST", b"a=1", "text/x")
    posted = request_for(replace(URL, request=spec), "")
    assert posted == FetchRequest(URL.url, "POST", b"a=1", (("Content-Type", "text/x"),))


class Scripted:
    """A fetcher that answers what it is told to, and remembers what it was asked."""

    def __init__(self, *answers: FetchResult) -> None:
        self.answers = list(answers)
        self.asked: list[FetchRequest] = []
        self.closed = False

    async def fetch(self, request: FetchRequest) -> FetchResult:
        self.asked.append(request)
        return self.answers.pop(0) if self.answers else FetchResult(request.url, NOW, status=200)

    async def close(self) -> None:
        self.closed = True
        if self.answers:
            raise RuntimeError("still has answers")


def test_a_request_goes_by_its_route_and_all_are_closed() -> None:
    async def main() -> None:
        plain, one, left = Scripted(), Scripted(), Scripted(FetchResult("x", NOW))
        routed = RoutedFetcher(plain, {"one": one, "left": left}, ManualClock())
        assert (await routed.fetch(FetchRequest(URL.url))).route == ""
        assert (await routed.fetch(FetchRequest(URL.url, route="one"))).route == "one"
        gone = await routed.fetch(FetchRequest(URL.url, route="gone"))
        assert (gone.error, gone.route, gone.detail) == (FetchError.LOCAL, "gone", "there is no route gone")
        assert (len(plain.asked), len(one.asked)) == (1, 1)
        with pytest.raises(RuntimeError, match="still has answers"):
            await routed.close()
        assert plain.closed
        assert one.closed

    asyncio.run(main())


def test_a_proxy_of_a_route_that_fails_is_told_once() -> None:
    async def main() -> None:
        # Nobody listens at the first port of all.
        proxies = ["http://127.0.0.1:1", "http://127.0.0.2:1"]
        options = {"network": {"allow": ["127.0.0.0/8"]}, "routes": {"p": {"kind": "http", "proxies": proxies}}}
        told: list[str] = []
        routed = RoutedFetcher(
            Scripted(),
            route_fetchers(convert(options, "test"), ManualClock()),
            ManualClock(),
            lambda warned: told.append(warned.message),
        )
        for number in range(4):
            result = await routed.fetch(FetchRequest(f"http://127.0.0.{number + 3}/", route="p"))
            assert result.error is FetchError.LOCAL
            result = await routed.fetch(FetchRequest(f"http://127.0.0.{number + 3}/", route="p"))
            assert result.error is FetchError.LOCAL
        await routed.close()
        assert [words.partition(": 127")[0] for words in told] == [f"route p: proxy {proxy}" for proxy in proxies]

    asyncio.run(main())


def test_further_fields_give_way_to_the_requests_own() -> None:
    async def main() -> None:
        inner = Scripted()
        dressed = Dressed(inner, {"Accept-Language": "de", "X-A": "1"})
        await dressed.fetch(FetchRequest(URL.url, headers=(("accept-language", "fr"),)))
        assert inner.asked[0].headers == (("accept-language", "fr"), ("X-A", "1"))
        await dressed.close()
        assert inner.closed

    asyncio.run(main())


def test_a_host_stays_with_its_proxy_until_that_fails_or_is_refused() -> None:
    async def main() -> None:
        bad = FetchResult("x", NOW, error=FetchError.LOCAL)
        refused = FetchResult("x", NOW, status=429)
        first, second = (
            Scripted(FetchResult("x", NOW, status=200), bad),
            Scripted(FetchResult("x", NOW, status=404), refused),
        )
        pool = ProxyPool([first, second])
        for url in ("http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4", "http://a.test/5"):
            await pool.fetch(FetchRequest(url))
        assert [asked.url[-1] for asked in first.asked] == ["1", "2", "5"]
        assert [asked.url[-1] for asked in second.asked] == ["3", "4"]
        await pool.fetch(FetchRequest("http://b.test/1"))
        assert second.asked[-1].url == "http://b.test/1"
        await pool.fetch(FetchRequest("nonsense"))
        await pool.close()
        assert first.closed
        assert second.closed

    asyncio.run(main())


def test_a_pool_of_proxies_is_made_of_the_settings() -> None:

    async def main() -> None:
        routes = {
            "pool": {"kind": "http", "proxies": ["http://93.184.215.14:3128", "direct"], "headers": {"X-A": "1"}},
            "alone": {"kind": "http"},
        }
        made = route_fetchers(convert({"contact": "x", "routes": routes}, "test"), ManualClock())
        assert isinstance(made["pool"], Dressed)
        assert isinstance(made["alone"], HttpFetcher)
        for fetcher in made.values():
            await fetcher.close()

    asyncio.run(main())
