"""One URL without a crawl: what `fetch` does, with the crawler's own parts and manners."""

from __future__ import annotations

from msgspec import Struct

from crawlspace.app.contact import require_contact
from crawlspace.app.robots import fetched_rules, robots_of
from crawlspace.clock import SystemClock
from crawlspace.errors import UsageError
from crawlspace.exchange import FetchRequest, FetchResult
from crawlspace.fetch.http import HttpFetcher
from crawlspace.observe.printable import printable
from crawlspace.pages.robots import RobotsDecision
from crawlspace.settings import Settings
from crawlspace.types import Unusable
from crawlspace.urls import Identity, origin_of, policy_from


class Answered(Struct, frozen=True):
    """What came of it."""

    url: str
    robots: str
    """The rule that allowed or forbade it."""
    result: FetchResult | None
    """None when robots.txt forbids it."""


async def fetch_one(text: str, settings: Settings) -> Answered:
    """Fetch one URL after asking its robots.txt; raises `UsageError` when it is no URL, or has no contact."""
    address = Identity(policy_from(settings.identity)).identify(text)
    if isinstance(address, Unusable):
        raise UsageError(f"{printable(text)!r} is no URL that can be fetched ({address.reason})")
    require_contact(settings, [address])
    clock = SystemClock()
    fetcher = HttpFetcher(
        settings.fetch, settings.network, clock, user_agent=settings.agent(), public=bool(settings.contact)
    )
    try:
        decision = RobotsDecision(True, "robots.obey is off")
        if settings.robots.obey:
            decision = await _ask_robots(fetcher, address.fetch_url, settings, clock)
        result = await fetcher.fetch(FetchRequest(address.fetch_url)) if decision.allowed else None
        return Answered(address.fetch_url, decision.rule, result)
    finally:
        await fetcher.close()


async def _ask_robots(fetcher: HttpFetcher, url: str, settings: Settings, clock: SystemClock) -> RobotsDecision:
    results = await fetched_rules(fetcher, url, settings, clock)
    return robots_of(results[-1], origin_of(url), settings.product(), settings, clock.now()).check(url)
