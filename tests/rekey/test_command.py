"""`crawlspace rekey`, and how a crawl meets other URL rules."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crawlspace.app.compose import OpenCrawl, Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.rekey import apply
from crawlspace.cli.options import reading
from crawlspace.engine.intake import Request
from crawlspace.exchange import Capture, Headers
from crawlspace.pages.links import read_page
from crawlspace.settings import load
from crawlspace.states import UrlState
from crawlspace.testing.clock import ManualClock
from crawlspace.types import Address, Claim, Evidence, Finished, Lease, Pace, Released, Settlement, WasRedirect, Wish

Command = Callable[..., Any]
Built = Callable[..., CrawlDirectory]

T0 = 1_700_000_000_000
USAGE = 2
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
SEED = "http://127.0.0.1/"
LINKS = ["x?ref=1", "x?ref=2", "y", "mailto:me@example.com", "x?ref=1#part", "moved?ref=1", "http://elsewhere.test/"]
STRIPPED = 'identity.strip=["ref"]'
CAP = "store.refusals_kept=7"


def page_of(links: list[str]) -> bytes:
    return "".join(f"<a href='{link}'>a</a>" for link in links).encode()


async def answer(crawl: OpenCrawl, lease: Lease) -> tuple[list[Settlement], list[Claim]]:
    """The seed has links, /moved redirects, all else is empty."""
    settlements: list[Settlement] = []
    claims: list[Claim] = []
    for url in lease.urls:
        where = (lease.token, lease.host.hid, url)
        if "moved" in url.url:
            target = crawl.identity.identify("/z?ref=2", url.url)
            assert isinstance(target, Address)
            claims.append(crawl.intake.redirect(target, url))
            settlements.append(WasRedirect(*where, Evidence(T0, 301), target.fetch_url))
            continue
        body = page_of(LINKS if url.url == SEED else [])
        pointer = await crawl.archive.append(Capture(url.url, T0, 200, b"GET / HTTP/1.1\r\n\r\n", b"", HEAD, body))
        claims += crawl.intake.page(read_page(body, url.url, Headers(((b"content-type", b"text/html"),))), url)
        settlements.append(Finished(*where, Evidence(T0, 200, pointer=pointer)))
    await crawl.archive.flush()
    return [*settlements, Released(lease.token, lease.host.hid, Pace(T0))], claims


def crawled(path: Path, *overrides: str, follow: bool = True) -> CrawlDirectory:
    """A finished crawl of one small site, under these settings."""
    place = CrawlDirectory(path)

    async def run() -> None:
        plan = Plan(load(None, {}, overrides), follow=follow, clock=ManualClock(T0))
        async with open_crawl(place, plan) as crawl:
            await crawl.inject([Request(SEED)])
            while leases := await crawl.frontier.lease(Wish(1, 1, 10, 60_000, 10**6), T0):
                settlements, claims = await answer(crawl, leases[0])
                await crawl.frontier.settle(settlements, claims, T0)

    asyncio.run(run())
    return place


def states_of(place: CrawlDirectory, *urls: str) -> list[UrlState | None]:
    async def run() -> list[UrlState | None]:
        async with reading(place.path) as (frontier, identity):
            addresses = [identity.identify(url, SEED) for url in urls]
            stories = await frontier.find([each.key for each in addresses if isinstance(each, Address)])
        return [story and story.state for story in stories]

    return asyncio.run(run())


def test_other_rules_are_told_in_words_with_the_two_ways_out(crawlspace: Command, tmp_path: Path) -> None:
    crawled(tmp_path / "c")
    effective = (tmp_path / "c" / "effective.toml").read_text()
    ran = crawlspace("inject", tmp_path / "c", SEED, "-s", "identity.fold_www=true", "-s", STRIPPED)
    assert ran.code == USAGE
    assert "fold_www: no -> yes; strip: with ref" in ran.err
    assert f"crawlspace rekey {tmp_path / 'c'}" in ran.err
    assert "set the rules back" in ran.err
    assert (tmp_path / "c" / "effective.toml").read_text() == effective


def test_without_apply_it_says_what_would_be_and_changes_nothing(crawlspace: Command, tmp_path: Path) -> None:
    place = crawled(tmp_path / "c")
    ran = crawlspace("rekey", place.path, "-s", STRIPPED)
    assert (ran.code, ran.err) == (0, "")
    assert "strip: with ref" in ran.out
    assert "7 URLs, 4 keys change, 1 URLs merge into others, 0 merged before" in ran.out
    assert "http://127.0.0.1/x?ref=2 (done)\n    becomes one with http://127.0.0.1/x?ref=1 (done)" in ran.out
    assert "nothing was changed" in ran.out
    assert crawlspace("inject", place.path, SEED).code == 0


def test_applied_the_crawl_opens_under_the_new_rules_and_no_longer_under_the_old(
    crawlspace: Command, tmp_path: Path
) -> None:
    place = crawled(tmp_path / "c")
    ran = crawlspace("rekey", place.path, "--apply", "-s", STRIPPED)
    assert ran.code == 0
    assert "re-keyed: 7 URLs, 4 keys change, 1 URLs merge" in ran.out
    assert f"write the same identity settings into {place.config}" in ran.out
    assert states_of(place, "x?ref=17", "x") == [UrlState.DONE, UrlState.DONE]
    assert crawlspace("inject", place.path, SEED, "-s", STRIPPED).code == 0
    assert "strip: without ref" in crawlspace("inject", place.path, SEED, "-s", "identity.strip=[]").err


def test_finer_rules_find_merged_spellings_again_in_the_archive(crawlspace: Command, tmp_path: Path) -> None:
    """Pages that were one are two: the one that was fetched, and one that is queued now."""
    place = crawled(tmp_path / "c", STRIPPED)
    assert states_of(place, "x?ref=1", "x?ref=2", "z?ref=2") == [UrlState.DONE] * 3
    ran = crawlspace("rekey", place.path)
    assert "pages may come apart: all 5 archived pages and redirects lead to 1 URLs that would be new" in ran.out
    assert f"{SEED}x?ref=2" in ran.out
    split = json.loads(crawlspace("rekey", place.path, "--json").out)["split"]
    assert split == {"pages_read": 5, "all_pages": True, "new_urls": 1, "examples": [f"{SEED}x?ref=2"]}
    told = json.loads(crawlspace("rekey", place.path, "--apply", "--json").out)
    assert (told["applied"], told["pages"], told["unreadable"], told["found"]) == (True, 5, 0, 1)
    assert states_of(place, "x?ref=1", "x?ref=2", "z?ref=2") == [UrlState.DONE, UrlState.QUEUED, UrlState.DONE]
    assert states_of(place, "http://elsewhere.test/") == [UrlState.SKIPPED]


def test_captures_that_cannot_be_read_are_counted_and_stop_nothing(crawlspace: Command, tmp_path: Path) -> None:
    place = crawled(tmp_path / "c", STRIPPED)
    for file in place.archive.iterdir():
        file.write_bytes(b"")
    ran = crawlspace("rekey", place.path, "--apply")
    assert ran.code == 0
    assert "0 URLs are new; 4 pages could not be read" in ran.out


def test_a_crawl_of_a_list_follows_no_link_then_either(crawlspace: Command, tmp_path: Path) -> None:
    place = crawled(tmp_path / "c", STRIPPED, follow=False)
    assert "pages may come apart" not in crawlspace("rekey", place.path).out
    told = json.loads(crawlspace("rekey", place.path, "--apply", "--json").out)
    assert (told["urls"], told["found"]) == (1, 0)


def test_rules_that_hold_already_need_nothing(crawlspace: Command, tmp_path: Path) -> None:
    place = crawled(tmp_path / "c")
    assert "has these URL rules already" in crawlspace("rekey", place.path).out
    assert "has these URL rules already" in crawlspace("rekey", place.path, "--apply").out
    assert json.loads(crawlspace("rekey", place.path, "--json").out) == {"difference": []}
    assert json.loads(crawlspace("rekey", place.path, "--apply", "--json").out) == {"applied": False}


def test_a_dry_run_as_json_has_all_figures(crawlspace: Command, tmp_path: Path) -> None:
    place = crawled(tmp_path / "c")
    told = json.loads(crawlspace("rekey", place.path, "--json", "-s", STRIPPED).out)
    assert told["difference"] == ["strip: with ref"]
    assert (told["urls"], told["changed"], told["merged"], told["restored"], told["split"]) == (7, 4, 1, 0, None)
    assert told["merges"] == [
        {"url": f"{SEED}x?ref=2", "state": "done", "into": f"{SEED}x?ref=1", "into_state": "done"}
    ]
    assert sorted(told["changes"]) == [f"{SEED}{name}" for name in ("moved?ref=1", "x?ref=1", "z?ref=2")]


class Fell(Exception):
    """The program is gone."""


def test_a_crawl_whose_rekeying_is_not_finished_refuses_to_crawl(crawlspace: Command, tmp_path: Path) -> None:
    place = crawled(tmp_path / "c")

    def watch(_: object) -> None:
        raise Fell

    with pytest.raises(Fell):
        asyncio.run(apply(place, load(None, {}, [STRIPPED]), ManualClock(T0), watch))
    for rules in ("identity.strip=[]", STRIPPED):
        ran = crawlspace("inject", place.path, SEED, "-s", rules)
        assert (ran.code, "is not finished" in ran.err) == (USAGE, True)
        assert f"crawlspace rekey {place.path} --apply" in ran.err
    assert "under way" in crawlspace("rekey", place.path, "-s", STRIPPED).err
    assert crawlspace("rekey", place.path, "--apply", "-s", STRIPPED).code == 0
    assert crawlspace("inject", place.path, SEED, "-s", STRIPPED).code == 0


@pytest.mark.parametrize("arguments", [["--apply"], []], ids=["applied", "dry"])
def test_a_place_without_a_crawl_is_refused(crawlspace: Command, tmp_path: Path, arguments: list[str]) -> None:
    ran = crawlspace("rekey", tmp_path / "nothing", *arguments)
    assert (ran.code, "there is no crawl directory" in ran.err) == (USAGE, True)


def test_a_big_crawl_is_told_of_while_it_goes(crawlspace: Command, tmp_path: Path, built: Built) -> None:
    place = built(tmp_path / "c")
    anywhere = ("-s", CAP, "-s", "scope.strategy=any")
    ran = crawlspace("rekey", place.path, "--apply", "-s", "identity.policy=aggressive", *anywhere)
    assert ran.code == 0
    assert "plan outcome: " in ran.err
    assert "move: " in ran.err
    back = crawlspace("rekey", place.path, "--apply", "-s", "identity.policy=conservative", *anywhere)
    assert "links: 0 pages read again" in back.err
