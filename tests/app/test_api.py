"""The Python API: seeds, handlers, labels, forms, lists, and what goes wrong, over the toy web."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import crawlspace
from crawlspace.app.compose import Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.clock import SystemClock
from crawlspace.engine.intake import META_LIMIT
from crawlspace.errors import ConfigError, CrawlDirError, DiskFull, UsageError
from crawlspace.events import Ending, Event, Paused, Resumed
from crawlspace.settings import load
from crawlspace.states import UrlState
from crawlspace.testing.disk import Fault, FaultyDisk
from crawlspace.testing.toyweb import LIGHT, ToyWeb


@pytest.fixture(scope="module")
def web() -> Iterator[ToyWeb]:
    with ToyWeb(seed=2, features=LIGHT, tls=False) as web:
        yield web


@pytest.fixture
def settings(web: ToyWeb) -> dict[str, Any]:
    return {
        "contact": "tests@crawlspace.test",
        "host.delay": 0,
        "retry.wait": 0.05,
        "network.resolve": dict(web.resolve),
        "network.allow": ["127.0.0.1"],
        "identity.hosts": [dict(rule) for rule in web.truth.own_folds],
    }


class HastyClock(SystemClock):
    """Real time, in which nobody waits long."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.01))


def test_a_handler_gets_every_page_and_may_follow_more(tmp_path: Path, web: ToyWeb, settings: dict[str, Any]) -> None:
    crawl = crawlspace.Crawl(tmp_path / "crawl", [web.seeds[0]], settings={**settings, "scope.max_depth": 0})
    seen: list[crawlspace.Page] = []

    @crawl.handler
    def first(page: crawlspace.Page) -> None:
        seen.append(page)
        page.follow(page.links[0], label="second", meta={"from": page.url})

    labelled: list[crawlspace.Page] = []

    @crawl.handler(label="second")
    async def second(page: crawlspace.Page) -> None:
        await asyncio.sleep(0)
        labelled.append(page)

    result = crawl.run()
    assert result.ending is Ending.FINISHED
    assert len(seen) == 1, "depth 0 lets nothing below the seeds in, links of a handler neither"
    assert labelled == []
    wider = crawlspace.Crawl(tmp_path / "wider", [web.seeds[0]], settings={**settings, "scope.max_depth": 1})
    wider.handler(first)
    wider.handler(second, label="second")
    wider.run()
    assert labelled
    page = labelled[0]
    assert page.label == "second"
    assert page.meta["from"] == seen[0].url
    assert page.depth == 1
    assert page.status == 200
    assert page.title
    assert page.text.startswith("<")
    assert "text/html" in page.headers["content-type"]
    assert str(page.url) in repr(page)
    assert page.fetched_at > 1_600_000_000_000


def test_a_handler_that_fails_leaves_the_page_stored_with_the_error(
    tmp_path: Path, web: ToyWeb, settings: dict[str, Any]
) -> None:
    crawl = crawlspace.Crawl(tmp_path / "crawl", [web.seeds[0]], settings={**settings, "scope.max_depth": 1})

    @crawl.handler
    def fails(page: crawlspace.Page) -> None:
        if page.depth == 1:
            raise ValueError("a bug of mine")

    result = crawl.run()
    assert result.ending is Ending.FINISHED
    assert result.counts.states[UrlState.STORED] > 3
    assert result.counts.states[UrlState.DONE] == 1


def test_a_form_is_sent_and_is_another_page_than_its_get(
    tmp_path: Path, web: ToyWeb, settings: dict[str, Any]
) -> None:
    bodies: list[bytes] = []
    seeds = [crawlspace.Request(web.form, method="post", body=f"q={word}".encode()) for word in ("one", "two", "one")]
    crawl = crawlspace.Crawl(tmp_path / "crawl", seeds, settings=settings, follow=False)

    @crawl.handler
    def keep(page: crawlspace.Page) -> None:
        bodies.append(page.body)

    result = crawl.run()
    assert result.injected.new == 2
    assert result.injected.known == 1
    assert len(bodies) == 2
    assert bodies[0] != bodies[1]


def test_a_list_is_fetched_and_nothing_is_followed(tmp_path: Path, web: ToyWeb, settings: dict[str, Any]) -> None:
    urls = sorted(web.truth.pages)[:7]
    result = crawlspace.Crawl(tmp_path / "crawl", urls, settings=settings, follow=False).run()
    assert result.counts.known == result.counts.states[UrlState.DONE] == 7


def test_a_handler_may_stop_the_crawl_and_it_goes_on(tmp_path: Path, web: ToyWeb, settings: dict[str, Any]) -> None:
    crawl = crawlspace.Crawl(tmp_path / "crawl", web.seeds, settings=settings)
    seen: list[str] = []

    @crawl.handler
    def stop_early(page: crawlspace.Page) -> None:
        seen.append(page.url)
        if len(seen) == 10:
            crawl.stop()

    assert crawl.run().ending is Ending.INTERRUPTED
    again = crawlspace.Crawl(tmp_path / "crawl", settings=settings)
    again.handler(lambda page: seen.append(page.url))
    assert again.run().ending is Ending.FINISHED
    assert not web.truth.compare(seen).missing
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize(
    ("budget", "value"),
    [("budget.pages", 20), ("budget.bytes", 30_000), ("budget.pages_per_seed_host", 5), ("budget.seconds", 0)],
)
def test_a_budget_ends_the_run_and_a_larger_one_goes_on(
    tmp_path: Path, web: ToyWeb, settings: dict[str, Any], budget: str, value: int
) -> None:
    limited = crawlspace.Crawl(tmp_path / "crawl", web.seeds[:1], settings={**settings, budget: value}).run()
    assert limited.ending is Ending.BUDGET
    if budget == "budget.pages":
        assert limited.counts.fetches == 20
    assert limited.counts.states[UrlState.LEASED] == 0
    more = crawlspace.Crawl(tmp_path / "crawl", settings=settings).run()
    assert more.ending is Ending.FINISHED


def test_a_full_disk_pauses_the_crawl_which_resumes_by_itself(
    tmp_path: Path, web: ToyWeb, settings: dict[str, Any]
) -> None:
    disk = FaultyDisk()
    events: list[Event] = []

    def watch(event: Event) -> None:
        events.append(event)
        if isinstance(event, Paused):
            disk.fault = None

    async def main() -> tuple[Ending, int]:
        plan = Plan(load(None, {}, values=settings), watch=watch, clock=HastyClock(), disk=disk)
        async with open_crawl(CrawlDirectory(tmp_path / "crawl"), plan) as crawl:
            await crawl.inject([crawlspace.Request(url) for url in web.seeds])
            disk.fault = Fault(disk.steps + 9, errno.ENOSPC, taken=3, lasting=True)
            async with crawl.engine() as engine:
                ending = await engine.run()
            counts = await crawl.frontier.counts()
        return ending, counts.pages

    ending, pages = asyncio.run(main())
    assert ending is Ending.FINISHED
    assert pages >= len(web.truth.pages)
    assert [type(event) for event in events if isinstance(event, Paused | Resumed)] == [Paused, Resumed]


def test_a_disk_that_stays_full_lets_the_crawl_be_stopped_and_marks_nothing_done(
    tmp_path: Path, web: ToyWeb, settings: dict[str, Any]
) -> None:
    disk = FaultyDisk()

    async def main() -> int:
        plan = Plan(load(None, {}, values=settings), clock=HastyClock(), disk=disk)
        async with open_crawl(CrawlDirectory(tmp_path / "crawl"), plan) as crawl:
            await crawl.inject([crawlspace.Request(url) for url in web.seeds])
            disk.fault = Fault(1, errno.ENOSPC, lasting=True)
            async with crawl.engine() as engine:
                stopper = asyncio.get_running_loop().call_later(0.5, engine.stop)
                with pytest.raises(DiskFull):
                    await engine.run()
                stopper.cancel()
            disk.fault = None
            return (await crawl.frontier.counts()).states[UrlState.DONE]

    assert asyncio.run(main()) == 0


def test_a_disk_that_is_nearly_full_is_not_filled(tmp_path: Path, web: ToyWeb, settings: dict[str, Any]) -> None:
    paused: list[Event] = []
    crawl = crawlspace.Crawl(
        tmp_path / "crawl",
        web.seeds,
        settings={**settings, "archive.min_free": 1 << 50},
        watch=lambda event: (paused.append(event), crawl.stop()) if isinstance(event, Paused) else None,  # type: ignore[func-returns-value]
    )
    with pytest.raises(DiskFull, match="no space"):
        crawl.run()
    assert len(paused) == 1


def test_what_a_person_gets_wrong_is_said_at_once(tmp_path: Path, web: ToyWeb, settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"unknown setting host\.dealy"):
        crawlspace.Crawl(tmp_path, settings={"host.dealy": 1})
    with pytest.raises(ConfigError, match="contact"):
        crawlspace.Crawl(tmp_path / "public", ["https://example.com/"]).run()
    with pytest.raises(UsageError, match="no seed"):
        crawlspace.Crawl(tmp_path / "empty", settings=settings).run()
    with pytest.raises(UsageError, match=f"{META_LIMIT} is the most"):
        crawlspace.Crawl(
            tmp_path / "meta", [crawlspace.Request(web.seeds[0], meta={"a": "x" * 2000})], settings=settings
        ).run()
    with pytest.raises(UsageError, match="not JSON"):
        crawlspace.Crawl(
            tmp_path / "meta2", [crawlspace.Request(web.seeds[0], meta={"a": object()})], settings=settings
        ).run()
    crawl = crawlspace.Crawl(tmp_path / "twice", settings=settings)
    crawl.handler(print)
    with pytest.raises(UsageError, match="already"):
        crawl.handler(print)


def test_one_process_owns_a_crawl_directory(tmp_path: Path, settings: dict[str, Any]) -> None:
    place = CrawlDirectory(tmp_path)
    with place.locked(), pytest.raises(CrawlDirError, match="in use by process"):
        crawlspace.Crawl(tmp_path, ["http://127.0.0.1/"], settings=settings).run()


def test_plans_are_values(settings: dict[str, Any]) -> None:
    plan = Plan(load(None, {}, values=settings))
    assert replace(plan, follow=False).follow is False
    assert plan.follow is None


def test_a_list_that_was_interrupted_goes_on_as_a_list(tmp_path: Path, web: ToyWeb, settings: dict[str, Any]) -> None:
    urls = sorted(web.truth.pages)[:9]
    limited = {**settings, "budget.pages": 3}
    assert crawlspace.Crawl(tmp_path / "crawl", urls, settings=limited, follow=False).run().ending is Ending.BUDGET
    result = crawlspace.Crawl(tmp_path / "crawl", settings=settings).run()
    assert result.ending is Ending.FINISHED
    assert result.counts.known == 9
