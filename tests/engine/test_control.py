"""What a person asks of a crawl is done within a second while it runs, and at once when it does not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

import crawlspace
from crawlspace import events
from crawlspace.app.control import Answer, ask
from crawlspace.cli.options import reading, settings_used
from crawlspace.clock import SystemClock
from crawlspace.errors import CrawlDirError, UsageError
from crawlspace.events import Ending
from crawlspace.frontier.sqlite.store import SqliteFrontier
from crawlspace.policy.commands import (
    Block,
    Command,
    Drop,
    Heed,
    Ignore,
    Inject,
    Pause,
    Prioritize,
    Requeue,
    Resume,
    Seed,
    Selection,
)
from crawlspace.policy.traps import MONTHS
from crawlspace.settings import Settings
from crawlspace.states import UrlState
from crawlspace.types import HostFigures

SEED = "http://a.test/"
SLOW = {"host__delay": 30.0, "robots__obey": False}
"""A crawl that has asked for one page a host and goes on for a long time."""


def crawl_of(web: Any, *seeds: str, watch: events.Watcher | None = None, **settings: Any) -> crawlspace.Crawl:
    hosts = {"a.test", "b.test", "c.test"}
    values = {
        "contact": "tests@crawlspace.test",
        "host.delay": 0,
        "discovery.sitemaps": False,
        "network.allow": ["127.0.0.1"],
        "network.resolve": {f"{host}:80": f"127.0.0.1:{web.server.server_port}" for host in hosts},
        **{name.replace("__", "."): value for name, value in settings.items()},
    }
    return crawlspace.Crawl(web.directory, list(seeds), settings=values, watch=watch)


async def order(crawl: crawlspace.Crawl, *commands: Command) -> list[Answer]:
    return await ask(crawl.directory, settings_used(crawl.directory), commands)


def while_it_runs(crawl: crawlspace.Crawl, act: Callable[[], Awaitable[None]]) -> crawlspace.Result:
    """The result of a crawl during which something is asked of it, once its first page is done."""
    started = asyncio.Event()
    plan = crawl._plan
    told, plan.watch = plan.watch, lambda event: (started.set(), told(event))[1]

    async def main() -> crawlspace.Result:
        running = asyncio.create_task(crawl.run_async())
        await asyncio.wait_for(started.wait(), 20)
        await act()
        return await asyncio.wait_for(running, 20)

    return asyncio.run(main())


def many(web: Any, n: int = 20, host: str = "a.test") -> None:
    web.page(f"http://{host}/", *(f"/p{number}" for number in range(n)))
    for number in range(n):
        web.page(f"http://{host}/p{number}")


# -- while it runs ------------------------------------------------------------------------------------------


def test_a_host_is_blocked_within_a_second_and_its_queue_is_cleaned(web: Any) -> None:
    many(web)
    crawl = crawl_of(web, SEED, **SLOW)
    took: list[float] = []

    async def act() -> None:
        began = time.monotonic()
        await order(crawl, Block("a.test"))
        took.append(time.monotonic() - began)

    result = while_it_runs(crawl, act)
    assert took[0] < 1.5
    assert result.ending is Ending.FINISHED, "nothing is left to fetch"
    assert result.counts.states[UrlState.SKIPPED] == 20
    assert web.story("http://a.test/p7").reason == "blocked_host"


def test_a_paused_host_is_left_alone_until_it_is_resumed(web: Any) -> None:
    many(web)
    paused = crawl_of(web, SEED, host__delay=1.5, robots__obey=False)
    result = while_it_runs(paused, lambda: order(paused, Pause("A.test")))
    assert result.ending is Ending.BUDGET
    assert result.counts.states[UrlState.QUEUED] >= 18
    again = crawl_of(web)
    assert again.run().ending is Ending.BUDGET, "a pause outlives the run"
    [answer] = asyncio.run(order(again, Resume("a.test")))
    assert answer.done
    assert again.run().counts.states[UrlState.DONE] == 21


def test_what_a_block_had_skipped_is_queued_when_it_ends(web: Any) -> None:
    """Where scope still allows it; other refusals of the host stay."""
    many(web, 4)
    crawl_of(web, SEED, budget__pages=1).run()
    crawl = crawl_of(web, scope__exclude=["p3$"])
    asyncio.run(order(crawl, Block("a.test")))
    assert crawl.run().counts.states[UrlState.SKIPPED] == 4
    [answer] = asyncio.run(order(crawl, Resume("a.test")))
    assert answer.progress.tally["queued"] == 3
    assert crawl.run().counts.states[UrlState.DONE] == 4


def test_seeds_are_added_to_a_running_crawl(web: Any) -> None:
    many(web)
    many(web, 2, "b.test")
    crawl = crawl_of(web, SEED, **SLOW)

    async def act() -> None:
        seeds = [Seed(url="http://b.test/", label="new", meta={"a": 1}), Seed(url=SEED), Seed(url="nonsense:")]
        [answer] = await order(crawl, Inject(seeds))
        assert answer.progress.answer == {"new": 1, "known": 1, "refused": [["nonsense:", "scheme"]]}
        await order(crawl, Block("a.test"), Block("b.test"))

    while_it_runs(crawl, act)
    story = web.story("http://b.test/")
    assert (story.relation, story.label, story.meta) == ("seed", "new", '{"a":1}')
    assert web.story("http://b.test/p1") is None or web.story("http://b.test/p1").reason == "blocked_host"


def test_what_is_ignored_leaves_the_queue_and_the_workers_hands_too(web: Any) -> None:
    """The rest of the crawl goes on; what the pattern fits is asked for no more, though a lease held it."""
    many(web)
    crawl = crawl_of(web, SEED, host__delay=0.4, robots__obey=False)

    async def act() -> None:
        await order(crawl, Ignore(r"/p1?\d$"))

    result = while_it_runs(crawl, act)
    assert result.ending is Ending.FINISHED
    assert result.counts.states[UrlState.QUEUED] == result.counts.states[UrlState.LEASED] == 0
    assert result.counts.states[UrlState.SKIPPED] >= 15
    assert web.story("http://a.test/p19").reason == "excluded"


def test_ignored_patterns_stay_until_they_are_taken_back(web: Any) -> None:
    many(web, 3)
    crawl = crawl_of(web, SEED)
    crawl_of(web, SEED, budget__pages=0).run()
    asyncio.run(order(crawl, Ignore("/p1$"), Ignore("glob:http://*/p2")))
    assert crawl.run().counts.states[UrlState.DONE] == 2
    assert web.story("http://a.test/p1").reason == "excluded"
    [answer] = asyncio.run(order(crawl, Heed("/p1$")))
    assert answer.progress.tally == {"looked": 2, "queued": 1}
    assert crawl.run().counts.states[UrlState.DONE] == 3
    assert web.state("http://a.test/p2") is UrlState.SKIPPED


def test_a_pattern_gives_queued_urls_another_class(web: Any) -> None:
    many(web, 9)
    crawl_of(web, SEED, budget__pages=1).run()
    crawl = crawl_of(web, budget__pages=2, concurrency__hosts=1)
    [answer] = asyncio.run(order(crawl, Prioritize("/p7$", 0)))
    assert answer.progress.tally == {"looked": 9, "reclassed": 1}
    crawl.run()
    assert web.asked[-1] == "http://a.test/p7"


# -- dead letters -------------------------------------------------------------------------------------------


@pytest.fixture
def broken(web: Any) -> Any:
    """A crawl with five dead letters: four pages not found, one gone."""
    many(web, 5)
    for number in range(4):
        web.put(f"http://a.test/p{number}", status=404)
    web.put("http://a.test/p4", status=410)
    crawl_of(web, SEED).run()
    return web


def states_of(web: Any) -> list[str]:
    return [web.state(f"http://a.test/p{number}").name.lower() for number in range(5)]


@pytest.mark.parametrize(
    ("selection", "revived"),
    [
        (Selection(), [0, 1, 2, 3, 4]),
        (Selection(error="http_404"), [0, 1, 2, 3]),
        (Selection(status=410), [4]),
        (Selection(host="b.test"), []),
        (Selection(host="a.test", pattern="p[12]$"), [1, 2]),
        (Selection(pattern="glob:http://a.test/p3"), [3]),
        (Selection(before=1), []),
        (Selection(since=1, status=404), [0, 1, 2, 3]),
    ],
)
def test_dead_letters_are_queued_again_by_what_they_are(
    broken: Any, selection: Selection, revived: list[int]
) -> None:
    [answer] = asyncio.run(order(crawl_of(broken), Requeue(selection)))
    assert answer.done
    assert answer.progress.tally.get("queued", 0) == len(revived)
    assert states_of(broken) == ["queued" if number in revived else "dead" for number in range(5)]
    assert all(broken.story(f"http://a.test/p{number}").attempts == 0 for number in revived)


def test_a_dead_letter_is_named_by_its_number(broken: Any) -> None:
    number = broken.story("http://a.test/p2").id
    crawl = crawl_of(broken)
    asyncio.run(order(crawl, Requeue(Selection(ids=(number, number + 1000)))))
    assert states_of(broken) == ["dead", "dead", "queued", "dead", "dead"]


def test_a_letter_that_is_queued_again_asks_scope_and_robots_anew(broken: Any) -> None:
    crawl = crawl_of(broken, scope__exclude=["p1$"])
    crawl.run()
    [answer] = asyncio.run(order(crawl, Requeue(Selection())))
    assert answer.progress.tally == {"looked": 5, "queued": 4, "out of scope": 1}
    broken.page("http://a.test/p0")
    broken.robots("http://a.test", "User-agent: *", "Disallow: /p3")

    async def forget_robots() -> None:
        settings = settings_used(crawl.directory).frontier()
        frontier = await SqliteFrontier.open(crawl.directory.database, settings, SystemClock())
        [file] = await frontier.robots(["http://a.test"])
        assert file is not None
        await frontier.keep_robots([replace(file, expires_at=1)])
        await frontier.close()

    asyncio.run(forget_robots())
    crawl.run()
    assert states_of(broken) == ["done", "dead", "dead", "skipped", "dead"]
    assert broken.story("http://a.test/p3").reason == "robots"


def test_dropped_letters_are_off_the_list_and_are_not_asked_for_again(broken: Any) -> None:
    crawl = crawl_of(broken)
    [answer] = asyncio.run(order(crawl, Drop(Selection(status=404))))
    assert answer.progress.tally == {"looked": 5, "dropped": 4}
    [again] = asyncio.run(order(crawl, Requeue(Selection())))
    assert again.progress.tally == {"looked": 1, "queued": 1}
    asked = len(broken.asked)
    crawl.run()
    assert len(broken.asked) == asked + 1
    assert broken.story("http://a.test/p0").reason == "dropped"


# -- other settings -----------------------------------------------------------------------------------------


def test_wider_settings_queue_what_was_refused_and_say_so(web: Any) -> None:
    web.page(SEED, "/one", "http://b.test/")
    web.page("http://a.test/one", "/two")
    web.page("http://a.test/two")
    web.page("http://b.test/")
    crawl_of(web, SEED, scope__max_depth=1).run()
    assert web.story("http://a.test/two").reason == "depth"
    told: list[events.Event] = []
    crawl_of(web, scope__max_depth=3, scope__strategy="any", watch=told.append).run()
    assert web.state("http://a.test/two") is UrlState.DONE
    assert web.state("http://b.test/") is UrlState.DONE
    [done] = [event for event in told if isinstance(event, events.CarriedOut)]
    assert done.what == "judging again (changed: scope.max_depth, scope.strategy)"
    assert done.changed == {"looked": 2, "queued": 2}
    told.clear()
    crawl_of(web, scope__max_depth=3, scope__strategy="any", watch=told.append).run()
    assert [event for event in told if isinstance(event, events.CarriedOut)] == [], "the same settings change nothing"


def test_narrower_settings_skip_what_is_queued(web: Any) -> None:
    many(web, 6)
    crawl_of(web, SEED, budget__pages=1).run()
    told: list[events.Event] = []
    crawl_of(web, scope__exclude=["p[0-3]$"], watch=told.append).run()
    assert [web.state(f"http://a.test/p{number}").name for number in range(6)] == ["SKIPPED"] * 4 + ["DONE"] * 2
    assert not any(url.endswith(("p0", "p1", "p2", "p3")) for url in web.asked)


# -- what cannot be -----------------------------------------------------------------------------------------


def test_what_makes_no_sense_is_answered_and_hurts_no_crawl(web: Any) -> None:
    many(web, 2)
    crawl = crawl_of(web, SEED)
    crawl.run()
    for command, said in [
        (Ignore("(unclosed"), "pattern"),
        (Prioritize("[", 1), "pattern"),
        (Requeue(Selection(pattern="(")), "pattern"),
        (Block("no host at all"), "is no host"),
    ]:
        with pytest.raises(UsageError, match=said):
            asyncio.run(order(crawl, command))
    assert crawl.run().ending is Ending.FINISHED


@pytest.mark.parametrize(
    "text", ["", "{", '{"type":"sudo"}', '{"type":"pause"}', '{"type":"block","host":"a","x":1}']
)
def test_a_command_that_cannot_be_read_is_told_and_put_away(web: Any, text: str) -> None:
    many(web, 1)
    told: list[events.Event] = []
    crawl = crawl_of(web, SEED, watch=told.append)
    crawl.run()

    async def write() -> None:
        frontier = await SqliteFrontier.open(
            crawl.directory.database, settings_used(crawl.directory).frontier(), SystemClock()
        )
        await frontier.ask([text])
        await frontier.close()

    asyncio.run(write())
    assert crawl.run().ending is Ending.FINISHED
    assert any("cannot be read" in event.message for event in told if isinstance(event, events.Warned))


def test_a_crawl_that_is_not_there_is_asked_nothing(web: Any) -> None:
    with pytest.raises(CrawlDirError, match="no crawl"):
        asyncio.run(ask(crawl_of(web).directory, Settings(), [Pause("a.test")]))
    assert not web.directory.exists()


# -- what a crawl sees by itself ----------------------------------------------------------------------------


def test_a_calendar_is_told_while_it_is_crawled_and_marked_at_its_host(web: Any) -> None:
    """Nothing is refused for it."""
    months = [f"/{1980 + number // 12}/{1 + number % 12:02}" for number in range(MONTHS + 5)]
    web.page(SEED, *months)
    told: list[events.Event] = []
    result = crawl_of(web, SEED, watch=told.append, budget__pages=3).run()
    assert [(event.host, event.kind) for event in told if isinstance(event, events.TrapSeen)] == [
        ("a.test", "calendar")
    ]
    assert result.counts.states[UrlState.QUEUED] == len(months) - 2
    assert figures_of(web, "a.test").alarm == "calendar"


def figures_of(web: Any, host: str) -> HostFigures:
    async def main() -> HostFigures:
        async with reading(web.directory) as (frontier, _):
            return next(each for each in await frontier.hosts() if each.name == host)

    return asyncio.run(main())


def test_a_users_function_says_what_is_fetched_first(web: Any) -> None:
    many(web, 9)
    crawl = crawl_of(web, SEED, budget__pages=3, priority__rules=[{"pattern": "p5$", "class": 1}])

    @crawl.scorer
    def score(candidate: crawlspace.Candidate) -> int | None:
        return 0 if candidate.url.endswith("p7") else None

    crawl.run()
    assert [url[-2:] for url in web.asked if "/p" in url] == ["p7", "p5"]
    with pytest.raises(UsageError, match="a scorer already"):
        crawl.scorer(score)


def test_hosts_are_treated_as_their_rules_say(web: Any) -> None:
    """Hosts without a delay are done while the one that has one waits."""
    many(web, 3)
    many(web, 3, "b.test")
    rules = [{"host": "^a[.]test$", "delay": 0.5}, {"host": "glob:b.*", "concurrency": 3}]
    began = time.monotonic()
    crawl_of(web, SEED, "http://b.test/", host__rules=rules, host__jitter=0, robots__obey=False).run()
    assert time.monotonic() - began >= 1.5
    first, last = web.asked.index("http://b.test/p2"), [n for n, url in enumerate(web.asked) if "//a.test/p" in url]
    assert first < last[1]
    assert figures_of(web, "a.test").pace.delay_ms == 500
    assert figures_of(web, "b.test").pace.delay_ms == 0


def test_a_host_that_was_silent_is_probed_by_one_request(web: Any) -> None:
    """However many might be open to it."""
    many(web, 6)
    crawl = crawl_of(web, SEED, host__concurrency=4, host__failure_wait=0.2, robots__obey=False, retry__wait=0.05)
    crawl_of(web, SEED, budget__pages=1, robots__obey=False).run()
    web.server.shutdown()
    web.server.server_close()
    result = crawl.run()
    assert result.counts.states[UrlState.DEAD] >= 6
    assert result.counts.fetches <= 1 + 4 + 4, "the first visit opens four, each probe one"
    assert figures_of(web, "a.test").pace.failures >= 5
