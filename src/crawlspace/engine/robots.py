"""robots.txt of the origins a crawl meets: fetched under the host's own lease, kept in the store until it expires.

A rule file is asked for once a day and origin, however many pages wait for it and however often the crawl is
restarted. Until it has answered, nothing of that origin is fetched (RFC 9309, section 2.3.1).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

from msgspec import Struct

from crawlspace.clock import Clock
from crawlspace.engine.intake import Intake
from crawlspace.errors import DiskFull
from crawlspace.exchange import FetchResult, RobotsFile, RobotsVerdict
from crawlspace.pages.robots import RobotsDecision, RobotsRules, RobotsSettings, judge
from crawlspace.ports import Ledger
from crawlspace.types import Claim, Reason, Unusable, host_id
from crawlspace.urls import Identity, origin_of

KEPT = 4096
KEPT_TEXT = 32 << 20
REJUDGED = 500
"""Refused URLs that are looked at in one batch when an origin's rules have changed."""

Fetch = Callable[[str], Awaitable[FetchResult]]
"""Fetches a URL at the pace of its host."""


class Robots(Struct, frozen=True):
    """One origin's rules, ready to be asked."""

    file: RobotsFile
    rules: RobotsRules | None
    changed: bool = False
    """The origin had other rules before: what those forbade may be allowed now."""

    @property
    def defers(self) -> bool:
        """True when nothing may be fetched until the origin answers."""
        return self.file.verdict is RobotsVerdict.DEFER

    @property
    def crawl_delay(self) -> float | None:
        """Seconds that the file asks for between requests."""
        return self.rules.crawl_delay if self.rules else None

    def check(self, url: str) -> RobotsDecision:
        """Whether this URL may be fetched, and by which rule."""
        if self.rules is not None:
            return self.rules.check(url)
        return RobotsDecision(not self.defers, self.file.detail or str(self.file.verdict))


class RobotsGate:
    """Rules by origin: a bounded cache over the store, with one fetch under way for each origin."""

    def __init__(
        self, ledger: Ledger, identity: Identity, settings: RobotsSettings, product: str, clock: Clock
    ) -> None:
        self._ledger = ledger
        self._identity = identity
        self._settings = settings
        self._product = product
        self._clock = clock
        self._cache: OrderedDict[str, Robots] = OrderedDict()
        self._text = 0
        self._locks: dict[str, asyncio.Lock] = {}

    def known(self, origin: str) -> Robots | None:
        """Rules at hand and not expired."""
        robots = self._cache.get(origin)
        if robots is None or robots.file.expires_at <= self._clock.now():
            return None
        self._cache.move_to_end(origin)
        return robots

    async def of(self, origin: str, fetch: Fetch) -> Robots:
        """The rules of an origin, from the cache, the store or the origin itself."""
        if not self._settings.obey:
            return Robots(RobotsFile(origin, 0, 0, RobotsVerdict.ALLOW_ALL, detail="robots.obey is off"), None)
        lock = self._locks.setdefault(origin, asyncio.Lock())
        try:
            async with lock:
                return self.known(origin) or await self._load(origin, fetch)
        finally:
            if not lock.locked():
                self._locks.pop(origin, None)

    async def _load(self, origin: str, fetch: Fetch) -> Robots:
        (stored,) = await self._ledger.robots([origin])
        file = stored
        if file is None or file.expires_at <= self._clock.now():
            results = await ask_for_rules(origin, fetch, self._identity, self._settings.max_redirects)
            file = judge(results[-1], origin, self._clock.now(), self._settings)
            # On a full disk the answer holds for this run alone.
            with suppress(DiskFull):
                await self._ledger.keep_robots([file])
        rules = RobotsRules(file.text, self._product) if file.verdict is RobotsVerdict.RULES else None
        changed = stored is not None and (stored.verdict, stored.text) != (file.verdict, file.text)
        robots = Robots(file, rules, changed)
        self._remember(origin, robots)
        return robots

    async def allowed_again(self, robots: Robots, intake: Intake) -> AsyncIterator[list[Claim]]:
        """Claims for URLs that the origin's former rules forbade and the new ones allow, in batches.

        Scope is asked again too: it may have changed since they were claimed.
        """
        origin = robots.file.origin
        front = self._identity.identify(f"{origin}/")
        if isinstance(front, Unusable):
            return
        after = 0
        while stories := await self._ledger.refused(host_id(front.key), Reason.ROBOTS, after, REJUDGED):
            after = stories[-1].id
            asked = (story for story in stories if origin_of(story.url) == origin)
            yield [
                claim
                for story in asked
                if robots.check(story.url).allowed and (claim := intake.lifted(story, Reason.ROBOTS)) is not None
            ]

    def _remember(self, origin: str, robots: Robots) -> None:
        before = self._cache.pop(origin, None)
        self._text += len(robots.file.text) - (len(before.file.text) if before else 0)
        self._cache[origin] = robots
        while len(self._cache) > KEPT or (self._text > KEPT_TEXT and len(self._cache) > 1):
            _, dropped = self._cache.popitem(last=False)
            self._text -= len(dropped.file.text)


async def ask_for_rules(origin: str, fetch: Fetch, identity: Identity, max_redirects: int) -> list[FetchResult]:
    """The answers to an origin's /robots.txt: each but the last is a redirect to the next."""
    results = [await fetch(f"{origin}/robots.txt")]
    for _ in range(max_redirects):
        result = results[-1]
        location = result.headers.get("location")
        if not (300 <= result.status < 400 and location):
            break
        target = identity.identify(location, result.url)
        if isinstance(target, Unusable):
            break
        results.append(await fetch(target.fetch_url))
    return results
