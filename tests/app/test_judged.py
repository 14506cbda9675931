"""What is judged again at a start."""

from __future__ import annotations

import asyncio
from pathlib import Path

from crawlspace.app.compose import Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.judged import several_judge
from crawlspace.engine.intake import Request
from crawlspace.settings import load
from crawlspace.types import Unusable

PLAN = Plan(load(None, {}, values={"contact": "t@crawlspace.test"}))


def test_a_scope_that_grew_while_several_judged_is_judged_again_once(tmp_path: Path) -> None:
    """It was killed before the others had heard. Where one process alone judged, nothing is to be done."""
    assert asyncio.run(asked_after_growth(CrawlDirectory(tmp_path / "several"), several=True)) == [0, 1, 1]
    assert asyncio.run(asked_after_growth(CrawlDirectory(tmp_path / "one"), several=False)) == [0, 0, 0]


async def asked_after_growth(place: CrawlDirectory, *, several: bool) -> list[int]:
    """How many commands wait: before a seed moved to another host for good, and after each of two starts."""
    async with open_crawl(place, PLAN) as crawl:
        await crawl.inject([Request("http://a.test/")])
        if several:
            await several_judge(crawl.frontier)
        found = [len(await crawl.frontier.asked())]
        target = crawl.identity.identify("http://b.test/")
        assert not isinstance(target, Unusable)
        await crawl.intake.widen(crawl.frontier, target)
    for _ in range(2):
        async with open_crawl(place, PLAN) as crawl:
            commands = await crawl.frontier.asked()
            assert all("the scope has grown" in each.command for each in commands)
            found.append(len(commands))
    return found
