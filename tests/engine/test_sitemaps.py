"""Sitemaps are found, fetched like any URL, and what they announce is claimed by the rules that hold for links."""

from __future__ import annotations

import asyncio
import gzip
import random
from dataclasses import dataclass
from typing import Any

import pytest

from crawlspace.clock import SystemClock
from crawlspace.engine.commit import Item
from crawlspace.engine.intake import Intake
from crawlspace.engine.reading import Reader, Spent
from crawlspace.engine.recent import Recent
from crawlspace.engine.sitemaps import BATCH, STRANGERS, Announced
from crawlspace.errors import StoreError
from crawlspace.exchange import FetchResult, Headers, RobotsFile, RobotsVerdict
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite.store import SqliteFrontier
from crawlspace.pages.links import PageSettings
from crawlspace.policy.outcome import classify
from crawlspace.policy.priority import PrioritySettings
from crawlspace.policy.retry import RetrySettings
from crawlspace.policy.scope import Scope, ScopeSettings
from crawlspace.states import UrlState
from crawlspace.types import Claim, ProcessingFailed, QueuedUrl, Reason, Relation
from crawlspace.urls import Identity, IdentitySettings, policy_from

SEED = "http://a.test/"
MAP = "http://a.test/map.xml"


# -- whole crawls -------------------------------------------------------------------------------------------


def test_pages_that_only_a_sitemap_names_are_crawled(web: Any) -> None:
    web.page(SEED)
    web.robots("http://a.test", "User-agent: *", "Disallow: /closed", "Sitemap: /map.xml")
    web.urlset(MAP, "http://a.test/only", "http://a.test/closed", "http://a.test/%7Ejoe")
    web.page("http://a.test/only", "/further")
    web.page("http://a.test/further")
    web.page("http://a.test/%7Ejoe")
    web.crawl(SEED)
    found = web.story("http://a.test/only")
    assert (found.state, found.relation, found.parent, found.depth) == (UrlState.DONE, Relation.SITEMAP, MAP, 1)
    assert web.state("http://a.test/further") is UrlState.DONE
    assert web.story("http://a.test/closed").reason == "robots"
    file = web.story(MAP)
    assert (file.state, file.relation) == (UrlState.DONE, Relation.SITEMAP_FILE)
    assert file.detail == "urlset with 3 addresses"
    assert file.evidence.pointer is not None, "a sitemap is archived like any answer"
    assert web.asked.index("http://a.test/robots.txt") == 0


def test_no_sitemap_is_read_when_the_setting_is_off(web: Any) -> None:
    web.page(SEED, "/map.xml")
    web.robots("http://a.test", "Sitemap: http://a.test/map.xml")
    web.urlset(MAP, "http://a.test/only")
    web.crawl(SEED, discovery__sitemaps=False, discovery__sitemap_paths=["/other.xml"])
    assert web.state("http://a.test/only") is None
    assert web.state("http://a.test/other.xml") is None


def test_well_known_places_are_tried_when_they_are_set(web: Any) -> None:
    web.page(SEED)
    web.put("http://a.test/sitemap.txt", "http://a.test/only\nnothing\n", "text/plain")
    web.page("http://a.test/only")
    web.crawl(SEED, discovery__sitemap_paths=["/sitemap.txt", "/sitemap.xml"])
    assert web.state("http://a.test/only") is UrlState.DONE
    assert web.story("http://a.test/sitemap.xml").reason == "http_404"


def test_indexes_are_followed_three_files_deep_and_in_circles_once(web: Any) -> None:
    web.page(SEED)
    web.robots("http://a.test", "Sitemap: http://a.test/1.xml")
    web.index("http://a.test/1.xml", "http://a.test/2.xml", "http://a.test/1.xml")
    web.index("http://a.test/2.xml", "http://a.test/3.xml", "http://a.test/3b.xml")
    web.urlset("http://a.test/3.xml", "http://a.test/only")
    web.index("http://a.test/3b.xml", "http://a.test/4.xml")
    web.page("http://a.test/only")
    web.crawl(SEED, scope__max_depth=1)
    assert web.state("http://a.test/only") is UrlState.DONE, "files above one another are no depth of the page"
    assert web.state("http://a.test/4.xml") is None
    assert "too many indexes" in web.story("http://a.test/3b.xml").detail
    assert len(web.asked) == len(set(web.asked))


def test_a_sitemap_behind_a_redirect_is_still_one(web: Any) -> None:
    web.page(SEED)
    web.robots("http://a.test", "Sitemap: http://a.test/old.txt")
    web.put("http://a.test/old.txt", status=301, Location="/new.txt")
    web.put("http://a.test/new.txt", "http://a.test/only", "text/plain")
    web.page("http://a.test/only")
    web.crawl(SEED)
    assert web.state("http://a.test/only") is UrlState.DONE
    assert web.story("http://a.test/new.txt").relation is Relation.SITEMAP_FILE


def test_a_packed_sitemap_is_unpacked_and_a_feed_is_read(web: Any) -> None:
    web.page(SEED)
    web.robots("http://a.test", "Sitemap: /map.xml.gz", "Sitemap: /feed")
    packed = gzip.compress(b"<urlset><url><loc>http://a.test/packed</loc></url></urlset>")
    web.put("http://a.test/map.xml.gz", packed, "application/x-gzip")
    web.put("http://a.test/feed", "<rss><item><link>/news</link></item></rss>", "application/rss+xml")
    web.page("http://a.test/packed")
    web.page("http://a.test/news")
    web.crawl(SEED)
    assert web.state("http://a.test/packed") is web.state("http://a.test/news") is UrlState.DONE


def test_a_sitemap_that_is_met_as_a_link_or_given_as_a_seed_is_read_too(web: Any) -> None:
    web.urlset(MAP, "http://a.test/only")
    web.page("http://a.test/only")
    web.crawl(MAP)
    assert web.state("http://a.test/only") is UrlState.DONE


def test_what_is_no_sitemap_ends_done_and_says_so(web: Any) -> None:
    web.page(SEED)
    web.robots("http://a.test", "Sitemap: /html", "Sitemap: /bomb.xml", "Sitemap: /empty.xml")
    web.page("http://a.test/html", "/strange")
    web.put(
        "http://a.test/bomb.xml",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><urlset><url><loc>http://a.test/x</loc></url></urlset>",
    )
    web.put("http://a.test/empty.xml", "<urlset></urlset>")
    web.crawl(SEED)
    told = {name: web.story(f"http://a.test/{name}") for name in ("html", "bomb.xml", "empty.xml")}
    assert {story.state for story in told.values()} == {UrlState.DONE}
    assert told["html"].detail == "no sitemap and no feed"
    assert told["bomb.xml"].detail == "a document type declaration"
    assert told["empty.xml"].detail == "urlset without addresses"
    assert web.state("http://a.test/strange") is None, "a file that was wanted as a sitemap is no page"


def test_includes_speak_of_pages_and_not_of_sitemaps(web: Any) -> None:
    web.page(SEED)
    web.robots("http://a.test", "Sitemap: /map.xml")
    web.urlset(MAP, "http://a.test/docs/1", "http://a.test/other")
    web.page("http://a.test/docs/1")
    web.crawl(SEED, scope__include=["/docs/"])
    assert web.state("http://a.test/docs/1") is UrlState.DONE
    assert web.story("http://a.test/other").reason == Reason.NOT_INCLUDED


def test_a_list_that_is_not_followed_looks_for_no_sitemap() -> None:
    assert intake(follow=False).sitemap_files(["/map.xml"], SEED) == []


# -- one file -----------------------------------------------------------------------------------------------


def intake(*seeds: str, follow: bool = True, strategy: str = "any") -> Intake:
    identity = Identity(policy_from(IdentitySettings()), bytes(32))
    addresses: list[Any] = [identity.identify(seed) for seed in seeds]
    scope = Scope.of(ScopeSettings(strategy=strategy), addresses)  # type: ignore[arg-type]
    return Intake(identity, scope, PrioritySettings(), Recent(), follow)


@dataclass
class Read:
    """What a file came to."""

    batches: list[list[Claim]]
    detail: str

    @property
    def urls(self) -> list[str]:
        return [claim.address.fetch_url for batch in self.batches for claim in batch]


def read(body: bytes, *robots: tuple[str, str], depth: int = 1, at: Intake | None = None, url: str = MAP) -> Read:
    """Read a file under these robots.txt, by origin."""
    source = QueuedUrl(7, b"", url, 2, depth, relation=Relation.SITEMAP_FILE)
    result = FetchResult(url, 0, status=200, headers=Headers(), body=body)

    async def main() -> Read:
        frontier = await SqliteFrontier.open(":memory:", FrontierSettings(), SystemClock(), threaded=False)
        await frontier.keep_robots([RobotsFile(origin, 0, 1, RobotsVerdict.RULES, text) for origin, text in robots])
        announced = Announced(at or intake(), frontier, source, result, now=10**12)
        batches = [batch async for batch in announced.claims()]
        await frontier.close()
        return Read(batches, announced.detail)

    return asyncio.run(main())


def urlset(*urls: str) -> bytes:
    return b"<urlset>" + b"".join(b"<url><loc>%s</loc></url>" % url.encode() for url in urls) + b"</urlset>"


def test_a_large_file_comes_in_bounded_batches() -> None:
    found = read(urlset(*(f"http://a.test/{number}" for number in range(2 * BATCH + 10))))
    assert [len(batch) for batch in found.batches] == [BATCH, BATCH, 10]


def test_batches_that_were_claimed_before_a_crash_are_not_claimed_again() -> None:
    at = intake()
    body = urlset(*(f"http://a.test/{number}" for number in range(BATCH + 10)))
    at.recent.commit(read(body, at=at).batches[0])
    assert [len(batch) for batch in read(body, at=at).batches] == [0, 10]


@pytest.mark.parametrize(
    ("robots", "url", "taken"),
    [
        ("", "http://a.test/1", True),
        ("", "http://www.a.test/1", True),
        ("", "https://b.test/1", False),
        ("User-agent: *", "https://b.test/1", False),
        ("Sitemap: http://a.test/map.xml", "https://b.test/1", True),
        ("Sitemap: http://a.test/index.xml", "https://b.test/1", True),
        ("Sitemap: http://c.test/map.xml", "https://b.test/1", False),
        ("Sitemap: mailto:x", "https://b.test/1", False),
    ],
)
def test_a_file_speaks_for_its_own_site_and_for_hosts_whose_robots_name_it(
    robots: str, url: str, taken: bool
) -> None:
    found = read(urlset(url), *([("https://b.test", robots)] if robots else []))
    assert found.urls == ([url] if taken else [])
    assert ("1 of other sites passed over" in found.detail) is not taken


def test_the_robots_of_no_more_than_so_many_strangers_are_looked_at() -> None:
    urls = [f"http://h{number}.test/" for number in range(STRANGERS)] + ["http://b.test/", "mailto:x"]
    found = read(urlset(*urls), ("http://b.test", "Sitemap: http://a.test/map.xml"))
    assert found.urls == []


def test_an_address_that_is_announced_twice_is_claimed_once_with_its_other_languages() -> None:
    body = (
        b'<urlset><url><loc>/1</loc><xhtml:link rel="alternate" hreflang="de" href="/de"/></url>'
        b"<url><loc>/1</loc></url></urlset>"
    )
    assert read(body).urls == ["http://a.test/1", "http://a.test/de"]


def test_what_the_site_says_of_a_page_moves_it_by_one_class() -> None:
    body = (
        b"<urlset><url><loc>/1</loc></url><url><loc>/2</loc><priority>0.9</priority></url>"
        b"<url><loc>/3</loc><lastmod>1990-01-01</lastmod></url></urlset>"
    )
    assert [claim.front_class for claim in read(body).batches[0]] == [5, 4, 6]


def test_an_index_gives_files_one_level_further_and_none_beyond_the_third() -> None:
    body = b"<sitemapindex><sitemap><loc>/2.xml</loc></sitemap></sitemapindex>"
    (claim,) = read(body, depth=2).batches[0]
    assert (claim.relation, claim.depth, claim.parent) == (Relation.SITEMAP_FILE, 3, 7)
    assert read(body, depth=3).urls == []


def test_a_file_with_too_many_addresses_says_that_the_rest_was_left_out() -> None:
    body = b"\n".join(b"http://a.test/%d" % number for number in range(50_001))
    found = read(body, at=intake("http://c.test/", strategy="host"))
    assert found.detail == "text with 50000 addresses, the rest was left out"
    assert {claim.refusal for batch in found.batches for claim in batch} == {Reason.OUT_OF_SCOPE}


def test_a_file_that_stops_in_the_middle_gives_what_came_before() -> None:
    found = read(b"<urlset><url><loc>/1</loc></url><!DOCTYPE x><url><loc>/2</loc></url></urlset>")
    assert found.urls == ["http://a.test/1"]
    assert found.detail.endswith("stopped by a document type declaration")


def test_a_file_under_an_address_that_is_none_speaks_for_nobody() -> None:
    assert read(urlset("http://a.test/1"), url="nowhere").urls == []


# -- what goes wrong ----------------------------------------------------------------------------------------


class BrokenLedger:
    """A store that fails when robots.txt files are asked for."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def robots(self, _origins: list[str]) -> list[RobotsFile | None]:
        raise self.error


def settled(error: Exception) -> Item:
    """The last item of a file that speaks of a stranger, under such a store."""
    clock = SystemClock()
    reader = Reader(
        intake=intake(),
        ledger=BrokenLedger(error),  # type: ignore[arg-type]
        pages=PageSettings(),
        retry=RetrySettings(),
        clock=clock,
        chance=random.Random(1),
        watch=lambda _event: None,
    )
    url = QueuedUrl(7, b"", MAP, 2, 1, relation=Relation.SITEMAP_FILE)
    result = FetchResult(MAP, 0, status=200, body=urlset("http://b.test/"), response_head=b"HTTP/1.1 200 OK\r\n\r\n")

    async def main() -> list[Item]:
        return [item async for item in reader.items(Spent(1, 2, url, [result], classify(result, clock.now())))]

    return asyncio.run(main())[-1]


def test_a_file_that_breaks_its_reader_is_stored_with_the_error() -> None:
    settlement = settled(ValueError("no such host")).settlement
    assert isinstance(settlement, ProcessingFailed)
    assert settlement.evidence.detail.startswith("ValueError: no such host")


def test_a_store_that_fails_meanwhile_is_no_fault_of_the_file() -> None:
    with pytest.raises(StoreError):
        settled(StoreError("gone"))
