"""Lines to the server that are cut, stalled, or lose an answer: every call is done once, and a crawl goes on."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from crawlspace.clock import SystemClock
from crawlspace.frontier.postgres import Place, PostgresFrontier, sessions
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.settings import nested
from crawlspace.states import UrlState
from crawlspace.testing.frontier_contract_words import (
    T0,
    TTL,
    finished,
    links,
    released,
    retry,
    seen,
    states,
    wish,
)
from crawlspace.testing.toyweb import LIGHT, Size, ToyWeb
from crawlspace.types import Answer, Claimed, Settlement

sys.path.insert(0, str(Path(__file__).parent))
from proxy import Break, Judge, Proxy

Places = Callable[..., Place]
ROUND = {"done": 3, "queued": 3}
"""What each round of the story leaves behind."""
COMMIT = "COMMIT"
NEVER = T0 + 10**12
EVERY = 67
SOME = 4
PAGES = 70


@pytest.fixture
def proxy(server: str) -> Iterator[Proxy]:
    with Proxy(server) as proxy:
        yield proxy


async def story(store: PostgresFrontier, turn: int) -> None:
    """One round of all that a worker asks for, at a host of its own; each answer is as if it had been asked once."""
    now = T0 + turn
    host = f"h{turn}.test"
    claimed = await store.claim(links(4, host), now)
    assert set(claimed) in ({Claimed.NEW}, {Claimed.KNOWN})
    [lease] = await store.lease(wish(hosts=1), now)
    assert (lease.host.name, len(lease.urls)) == (host, 4)
    assert await store.renew([lease.token], TTL, now) == [True]
    *most, last = lease.urls
    told: list[Settlement] = [finished(lease, url, seen(200, str(url.id).encode())) for url in most]
    told += [retry(lease, last, NEVER), released(lease, NEVER)]
    answers = set(await store.settle(told, links(6, host), now))
    assert answers in ({Answer.SETTLED}, {Answer.ALREADY})
    assert set(await store.settle(told, [], now)) == {Answer.ALREADY}
    assert await store.reclaim(now) == 0


def played(place: Place, proxy: Proxy, judges: Sequence[Judge]) -> None:
    """Play a round under each of these judges, and look at the store past the proxy."""

    async def whole() -> None:
        through = Place.parse(proxy.address(place.schema, place.shards))
        store = await PostgresFrontier.open(through, FrontierSettings(), SystemClock(), worker="w")
        beside = await PostgresFrontier.open_beside(place, FrontierSettings(), SystemClock())
        try:
            for turn, judge in enumerate(judges):
                proxy.judge = judge
                await story(store, turn)
                proxy.judge = never
                assert await states(beside) == {name: n * (turn + 1) for name, n in ROUND.items()}
            assert await beside.audit() == []
        finally:
            await store.close()
            await beside.close()

    asyncio.run(whole())


def never(_sql: str) -> Break | None:
    """All is well."""
    return None


def noting(counted: list[str]) -> Judge:
    """All is well, and what is asked is written down."""

    def judge(sql: str) -> Break | None:
        counted.append(sql)
        return None

    return judge


def at(place: int, what: Break, *, commits: bool = False) -> Judge:
    """Breaks the line once, at a statement or commit of this number."""
    left = [place]

    def judge(sql: str) -> Break | None:
        left[0] -= not commits or sql == COMMIT
        if left[0] == 0:
            left[0] = -1
            return what
        return None

    return judge


@pytest.fixture
def asked(places: Places, proxy: Proxy) -> list[str]:
    """The statements of a round to which nothing happens; the fewest of some, since a slow line is asked more."""
    rounds: list[list[str]] = [[] for _ in range(3)]
    played(places(), proxy, [never, *map(noting, rounds)])
    fewest = min(rounds, key=len)
    assert len(fewest) > 20
    return fewest


def test_a_line_that_is_cut_before_some_statement(asked: list[str], place: Place, proxy: Proxy) -> None:
    places = range(1, len(asked) + 1, SOME)
    played(place, proxy, [at(number, Break.CUT) for number in places])
    assert proxy.broken == len(places)


@pytest.mark.long
def test_a_line_that_is_cut_before_each_statement(asked: list[str], place: Place, proxy: Proxy) -> None:
    played(place, proxy, [at(number, Break.CUT) for number in range(1, len(asked) + 1)])
    assert proxy.broken == len(asked)


def test_a_commit_whose_answer_is_lost_is_not_done_twice(asked: list[str], place: Place, proxy: Proxy) -> None:
    """The call is made again, and its answer is what the first would have been, or says that it was done before."""
    commits = asked.count(COMMIT)
    assert commits >= 6
    played(place, proxy, [at(number, Break.LOSE, commits=True) for number in range(1, commits + 1)])
    assert proxy.broken == commits


def test_a_line_that_nobody_says_is_dead_is_hung_up(
    place: Place, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a transaction, whose locks the server then holds for a while."""
    monkeypatch.setattr(sessions, "CALL_SECONDS", 1.0)
    played(place, proxy, [at(5, Break.HOLE)])
    assert proxy.broken == 1


def test_a_server_that_is_away_for_a_while(place: Place, proxy: Proxy) -> None:
    async def run() -> None:
        through = Place.parse(proxy.address(place.schema, place.shards))
        store = await PostgresFrontier.open(through, FrontierSettings(), SystemClock(), worker="w")
        try:
            await story(store, 0)
            proxy.go_down()
            call = asyncio.ensure_future(store.claim(links(4, "later.test"), T0))
            await asyncio.wait([call], timeout=0.2)
            assert not call.done()
            proxy.is_down = False
            assert await call == [Claimed.NEW] * 4
        finally:
            await store.close()

    asyncio.run(run())


def test_a_crawl_goes_on_over_a_line_that_is_cut_stalled_and_deaf(tmp_path: Path, place: Place, proxy: Proxy) -> None:
    """A real worker over a bad line: what was asked for is settled, once, and nothing is asked for twice."""
    with ToyWeb(seed=5, size=Size.SMALL, features=LIGHT, tls=False) as web:
        config = tmp_path / "settings.toml"
        config.write_text(tomli_w.dumps(nested(quick(web))))
        address = proxy.address(place.schema, place.shards)
        options = ["--dir", str(tmp_path / "crawl"), "--frontier", address, "--config", str(config), "-q"]
        options += ["-s", f"budget.pages={PAGES}"]
        proxy.judge = bad_line()
        ran = subprocess.run(
            [sys.executable, "-m", "crawlspace", "crawl", *web.seeds, *options],
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        proxy.judge = never
        assert ran.returncode == 4, ran.stderr
        assert proxy.broken > 3
        assert web.fetched_twice() == {}
    contradictions, fetches, left = asyncio.run(look(place))
    assert contradictions == []
    assert left == 0
    assert PAGES - 10 < fetches <= PAGES


def quick(web: ToyWeb) -> dict[str, Any]:
    return {
        "contact": "tests@crawlspace.test",
        "host.delay": 0.02,
        "retry.wait": 0.1,
        "network.resolve": dict(web.resolve),
        "network.allow": ["127.0.0.1"],
        "identity.hosts": [dict(rule) for rule in web.truth.own_folds],
    }


def bad_line() -> Judge:
    """Something happens every so many statements, in turn: more than a transaction has, or none would end."""
    number = 0
    turns = itertools.cycle([Break.CUT, Break.STALL, Break.LOSE])
    due: list[Break] = []

    def judge(sql: str) -> Break | None:
        nonlocal number
        number += 1
        if number % EVERY == 0 and not due:
            due.append(next(turns))
        if not due or (due[0] is Break.LOSE and sql != "COMMIT"):
            return None
        return due.pop()

    return judge


async def look(place: Place) -> tuple[list[str], int, int]:
    """What contradicts itself, how many requests were settled, and how many URLs somebody still holds."""
    store = await PostgresFrontier.open_beside(place, FrontierSettings(), SystemClock())
    try:
        counts = await store.counts()
        return await store.audit(), counts.fetches, counts.states[UrlState.LEASED]
    finally:
        await store.close()
