"""robots.txt in a crawl: asked once, asked again when it has expired, and what changed rules allow comes back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import crawlspace
from crawlspace.clock import SystemClock
from crawlspace.engine.robots import Robots, RobotsGate
from crawlspace.events import Ending, HostWaits
from crawlspace.exchange import RobotsFile, RobotsVerdict
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite.store import SqliteFrontier
from crawlspace.pages.robots import RobotsSettings
from crawlspace.states import UrlState
from crawlspace.urls import Identity, IdentitySettings, policy_from

SEED = "http://a.test/"


def expire(web: Any) -> None:
    """Let the stored rules be a day old."""

    async def main() -> None:
        frontier = await SqliteFrontier.open(web.directory / "frontier.db", FrontierSettings(), SystemClock())
        (file,) = await frontier.robots(["http://a.test"])
        assert file is not None
        old = RobotsFile(file.origin, 0, 1, file.verdict, file.text, file.detail)
        await frontier.keep_robots([old])
        await frontier.close()

    asyncio.run(main())


def test_urls_that_were_disallowed_come_back_when_the_rules_change(web: Any) -> None:
    web.page(SEED, "/open", "/shut", "/still")
    for name in ("open", "shut", "still", "new"):
        web.page(f"http://a.test/{name}")
    web.robots("http://a.test", "User-agent: *", "Disallow: /s")
    web.crawl(SEED)
    assert web.state("http://a.test/shut") is web.state("http://a.test/still") is UrlState.SKIPPED
    web.robots("http://a.test", "User-agent: *", "Disallow: /still")
    expire(web)
    web.crawl("http://a.test/new")
    assert web.state("http://a.test/shut") is UrlState.DONE
    assert web.state("http://a.test/still") is UrlState.SKIPPED
    assert web.asked.count("http://a.test/robots.txt") == 2


def test_rules_that_are_the_same_again_move_nothing(web: Any) -> None:
    web.page(SEED, "/shut")
    web.page("http://a.test/new")
    web.robots("http://a.test", "User-agent: *", "Disallow: /shut")
    web.crawl(SEED)
    expire(web)
    web.crawl("http://a.test/new")
    story = web.story("http://a.test/shut")
    assert (story.state, story.reason) == (UrlState.SKIPPED, "robots")


def test_a_proxy_that_fails_is_named_where_its_host_has_to_wait(web: Any, tmp_path: Path) -> None:
    settings = {**web.quick(), "network.proxy": "http://127.0.0.1:9", "network.proxy_allow": ["127.0.0.1"]}
    crawl = crawlspace.Crawl(tmp_path / "crawl", [SEED], settings=settings)
    waits: list[HostWaits] = []

    @crawl.on(HostWaits)
    def stop(event: HostWaits) -> None:
        waits.append(event)
        crawl.stop()

    assert crawl.run().ending is Ending.INTERRUPTED
    assert "no rules yet" in waits[0].why
    assert "proxy http://127.0.0.1:9" in waits[0].why


def test_what_scope_refuses_now_does_not_come_back_with_the_rules(web: Any) -> None:
    web.page(SEED, "/shut")
    web.page("http://a.test/new")
    web.robots("http://a.test", "User-agent: *", "Disallow: /shut")
    web.crawl(SEED)
    web.robots("http://a.test", "User-agent: *", "Disallow:")
    expire(web)
    web.crawl("http://a.test/new", scope__exclude=["/shut"])
    assert web.state("http://a.test/shut") is UrlState.SKIPPED


def test_an_origin_that_is_none_brings_nothing_back() -> None:
    async def main() -> list[Any]:
        frontier = await SqliteFrontier.open(":memory:", FrontierSettings(), SystemClock(), threaded=False)
        identity = Identity(policy_from(IdentitySettings()), bytes(32))
        gate = RobotsGate(frontier, identity, RobotsSettings(), "crawlspace", SystemClock())
        robots = Robots(RobotsFile("nowhere", 0, 1, RobotsVerdict.ALLOW_ALL), None, changed=True)
        found: list[Any] = [batch async for batch in gate.allowed_again(robots, None)]  # type: ignore[arg-type]
        await frontier.close()
        return found

    assert asyncio.run(main()) == []


# -- what a page says ---------------------------------------------------------------------------------------


def test_links_of_a_page_that_asks_for_it_are_not_followed_until_another_page_gives_them(web: Any) -> None:
    web.page(SEED, "/hidden", "/door")
    web.page("http://a.test/hidden", "/1", "/2", head='<meta name="robots" content="noindex, nofollow">')
    web.page("http://a.test/door", "/2")
    web.page("http://a.test/1")
    web.page("http://a.test/2")
    web.crawl(SEED)
    assert web.state("http://a.test/hidden") is UrlState.DONE
    assert web.story("http://a.test/1").reason == "nofollow"
    assert web.state("http://a.test/2") is UrlState.DONE


def test_the_wish_of_a_page_is_passed_over_when_the_setting_is_off(web: Any) -> None:
    web.put(SEED, '<a href="/1">x</a>', X_Robots_Tag="none")
    web.page("http://a.test/1")
    web.crawl(SEED, robots__meta=False)
    assert web.state("http://a.test/1") is UrlState.DONE
