"""One URL and the robots.txt of its origin, without a crawl: fetched as the crawl does it, or read from a file."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from crawlspace.app.contact import require_contact
from crawlspace.clock import Clock, SystemClock
from crawlspace.engine.robots import Robots, ask_for_rules
from crawlspace.errors import UsageError
from crawlspace.exchange import FetchRequest, FetchResult, RobotsVerdict
from crawlspace.fetch.http import HttpFetcher
from crawlspace.observe.printable import printable
from crawlspace.pages.robots import RobotsDecision, RobotsRules, judge
from crawlspace.settings import Settings
from crawlspace.types import Address, Unusable
from crawlspace.urls import Identity, origin_of, policy_from


class Judged(Struct, frozen=True):
    """What robots.txt says of a URL."""

    url: str
    product: str
    """Who asks."""
    asked: tuple[str, ...]
    """Where the rules were looked for, in order: addresses, each of which sent us to the next, or one file."""
    robots: Robots

    @property
    def decision(self) -> RobotsDecision:
        """Whether the URL may be fetched, and by which rule."""
        return self.robots.check(self.url)


async def judge_url(text: str, settings: Settings, product: str | None = None, file: Path | None = None) -> Judged:
    """Ask the rules of a URL's origin, or those in a file; raises `UsageError` when one of them cannot be read."""
    address = Identity(policy_from(settings.identity)).identify(text)
    if isinstance(address, Unusable):
        raise UsageError(f"{printable(text)!r} is no URL that can be fetched ({address.reason})")
    clock = SystemClock()
    if file is None:
        require_contact(settings, [address])
        results = await _fetched(address, settings, clock)
    else:
        results = [_read(file, clock.now())]
    asker = product or settings.product()
    robots = robots_of(results[-1], origin_of(address.fetch_url), asker, settings, clock.now())
    return Judged(address.fetch_url, asker, tuple(result.url for result in results), robots)


def robots_of(result: FetchResult, origin: str, product: str, settings: Settings, now: int) -> Robots:
    """The rules that an answer comes to."""
    file = judge(result, origin, now, settings.robots)
    return Robots(file, RobotsRules(file.text, product) if file.verdict is RobotsVerdict.RULES else None)


async def _fetched(address: Address, settings: Settings, clock: Clock) -> list[FetchResult]:
    fetcher = HttpFetcher(
        settings.fetch, settings.network, clock, user_agent=settings.agent(), public=bool(settings.contact)
    )
    try:
        return await fetched_rules(fetcher, address.fetch_url, settings, clock)
    finally:
        await fetcher.close()


async def fetched_rules(fetcher: HttpFetcher, url: str, settings: Settings, clock: Clock) -> list[FetchResult]:
    """The answers to /robots.txt of the URL's origin, the last of them at the end of its redirects."""
    first = True

    async def fetch(target: str) -> FetchResult:
        nonlocal first
        if not first:
            await clock.sleep(settings.host.delay)
        first = False
        return await fetcher.fetch(FetchRequest(target))

    identity = Identity(policy_from(settings.identity))
    return await ask_for_rules(origin_of(url), fetch, identity, settings.robots.max_redirects)


def _read(file: Path, now: int) -> FetchResult:
    """A file as if an origin had answered with it."""
    try:
        body = file.read_bytes()
    except OSError as error:
        raise UsageError(f"the file {file} cannot be read: {(error.strerror or '').lower()}") from None
    return FetchResult(str(file), now, status=200, body=body)
