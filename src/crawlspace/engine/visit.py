"""A worker spending a lease: the host's URLs fetched in turn, at the host's pace, robots first.

Rules: no request starts before the host's next allowed time, none without the robots.txt of its origin, none when
the lease could end before the request does. The visit ends early when the host asks to be left alone, does not
answer, or has to wait longer than a lease is worth holding; what is unspent then returns to the queue.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from crawlspace import events
from crawlspace.clock import Clock
from crawlspace.engine.asker import Asker
from crawlspace.engine.asking import set_cookies
from crawlspace.engine.commit import Basket, Item
from crawlspace.engine.reading import Reader, Spent, capture_of
from crawlspace.engine.robots import Robots, RobotsGate
from crawlspace.engine.routes import Way, Ways
from crawlspace.engine.turn import Turn, Turns, take_slot
from crawlspace.exchange import FetchError, FetchRequest, FetchResult
from crawlspace.pages.robots import RobotsSettings
from crawlspace.policy import pace as pacing
from crawlspace.policy.decide import robots_refusal, unroutable
from crawlspace.policy.groups import Grouping, GroupSettings
from crawlspace.policy.outcome import Kind, Outcome, classify
from crawlspace.policy.pace import Breaker, HostSettings, Treatment
from crawlspace.policy.recrawl import with_next_visit
from crawlspace.ports import Fetcher
from crawlspace.types import Lease, Pace, QueuedUrl, Refused, Released, Unusable
from crawlspace.urls import Identity, origin_of

HOLD_SECONDS = 5.0
"""A host that has to wait longer is released, and leased again when its time has come."""
FENCE_SECONDS = 5.0
"""Margin between a request's deadline and the end of the lease."""
SAME_PAGE_HOPS = 5
LONG_WAIT_MS = 10_000
ADDRESS_REFUSED_DETAIL = f"robots.txt: {FetchError.ADDRESS_REFUSED}"
ROBOTS_UNAVAILABLE = "robots_unavailable"
"""Class of the dead letters of a host that answers, but never with its robots.txt."""
GROUP_REQUESTS = 100_000
"""A group bounds its hosts, each host its own requests; together they are no more than this."""


class _TooLate(Exception):
    """The lease could end before the request does: the URL goes back untouched."""


@dataclass(slots=True)
class Run:
    """What the visits of one run share."""

    fetcher: Fetcher
    robots: RobotsGate
    reader: Reader
    basket: Basket
    identity: Identity
    turns: Turns
    clock: Clock
    watch: events.Watcher
    treatment: Treatment
    robots_settings: RobotsSettings
    request_seconds: float
    slots: asyncio.Semaphore
    """Requests under way in the whole crawl."""
    busy: int = 0
    """Lanes that fetch or are about to: while there are none, nothing is worth waiting for."""
    waiting: int = 0
    """Lanes that wait for their host's turn."""
    stopping: bool = False
    held: set[str] = field(default_factory=set)
    """Hosts that a person paused or blocked while the run goes on: their visits end."""
    grouping: Grouping = field(default_factory=lambda: Grouping.of(GroupSettings()))
    groups: Turns = field(init=False)
    """The turns of pace groups, by name. How many hosts of one are visited at once is the frontier's affair."""
    askers: Sequence[Asker] = ()
    ways: Ways = field(default_factory=Ways)
    """Knows by which routes URLs go, and when they are blocked."""
    address_of: Callable[[str], Awaitable[str | None]] | None = None
    """Where a URL's host leads to; None when that cannot be told, or nobody can be asked."""

    def __post_init__(self) -> None:
        self.groups = Turns(self.clock, lambda _: GROUP_REQUESTS)

    def is_idle(self) -> bool:
        """True when no fetch is ready or running."""
        return self.busy == 0


@dataclass(slots=True)
class Visit:
    """One lease being spent."""

    lease: Lease
    run: Run
    fence: float
    """Monotonic time at which the lease ends."""
    lost: bool = False
    _next: int = 0
    _over: bool = False
    _pace: Pace = field(init=False)
    _host: HostSettings = field(init=False)
    _condemned: str | None = None
    _why_condemned: str | None = None
    _why_later: str | None = None
    _address: str | None = None
    _hosts: dict[str, str] = field(default_factory=dict)
    """The host of each origin that was asked, of which a visit has few."""

    def __post_init__(self) -> None:
        self._host = self.run.treatment.host(self.lease.host.name)
        self._pace = pacing.begin(self.lease.host.pace, self._host)

    @property
    def is_over(self) -> bool:
        """Whether it begins no further request."""
        return self._over

    @property
    def unspent(self) -> int:
        """URLs that it has not come to yet."""
        return len(self.lease.urls) - self._next

    def give_back(self) -> None:
        """End with the request under way, for another worker to go on."""
        self._over = True

    async def spend(self) -> None:
        """Fetch until the URLs, the time or the host's patience are used up, then release the host."""
        if await self._may_begin():
            await self._fetch_all()
        group = self._group_turn()
        released = Released(
            self.lease.token,
            self.lease.host.hid,
            self._kept_pace(),
            self._condemned,
            self._address,
            0 if group is None else self.run.clock.now() + math.ceil(group.wait() * 1000),
        )
        self._tell_wait()
        await self.run.basket.put(Item(settlement=released))

    async def _may_begin(self) -> bool:
        """Find out where the host's name leads to, if nobody did; False when that needs another turn."""
        host, run = self.lease.host, self.run
        if host.address is not None or run.address_of is None:
            return True
        self._address = await run.address_of(self.lease.urls[0].url)
        return self._address is None or host.group is not None or not run.grouping.wants_address(host.name)

    async def _fetch_all(self) -> None:
        self._hold_turn()
        # A host that has not answered is probed by one request; the others wait for what comes of it.
        probing = pacing.breaker(self._pace, self.run.clock.now()) is not Breaker.CLOSED
        lanes = 1 if probing else min(self._host.concurrency, len(self.lease.urls))
        if lanes == 1:
            await self._lane()
        else:
            async with asyncio.TaskGroup() as group:
                for _ in range(lanes):
                    group.create_task(self._lane())

    def _kept_pace(self) -> Pace:
        """The host's clock as it is stored: not before its turn here, which a step of the wall clock does not move.

        Otherwise the host would be leased and given back without end until its turn has come.
        """
        wait = self.run.turns.of(self.lease.host.name).wait()
        return replace(self._pace, next_at=max(self._pace.next_at, self.run.clock.now() + math.ceil(wait * 1000)))

    async def _lane(self) -> None:
        self.run.busy += 1
        try:
            while (url := self._take()) is not None:
                await self._spend(url)
            await self._ask()
        except _TooLate:
            self._over = True
        finally:
            self.run.busy -= 1
            self.run.basket.nudge()

    def _goes_on(self) -> bool:
        if self._over or self.lost or self.run.stopping or self.lease.host.name in self.run.held:
            return False
        return self._has_time() and all(turn.wait() <= HOLD_SECONDS for turn in self._turns())

    def _take(self) -> QueuedUrl | None:
        if self._next >= len(self.lease.urls) or not self._goes_on():
            return None
        url = self.lease.urls[self._next]
        self._next += 1
        return url

    def _has_time(self) -> bool:
        """Whether the host is ours for longer than a request can take, whatever this one had to wait for."""
        ends = self.run.clock.monotonic() + self.run.request_seconds + FENCE_SECONDS
        return not self.lost and ends <= self.fence

    async def _spend(self, url: QueuedUrl) -> None:
        refusal = self.run.reader.intake.refusal(url, self.lease.host.traps)
        if refusal is not None:
            refused = Refused(self.lease.token, self.lease.host.hid, url, refusal)
            await self.run.basket.put(Item(settlement=refused))
            return
        robots = await self._robots(url.url)
        if robots is None:
            return
        decision = robots.check(url.url)
        if not decision.allowed:
            refused = robots_refusal(self.lease.token, self.lease.host.hid, url, decision.rule)
            await self.run.basket.put(Item(settlement=refused))
            return
        way = await self._way(url)
        if way is None:
            return
        try:
            results, outcome = await self._fetch(await self.run.reader.request(url, way.route), url)
        except _TooLate:
            await self.run.ways.unused(way)
            raise
        spent = Spent(self.lease.token, self.lease.host.hid, url, results, outcome, way.gone)
        async for item in self.run.reader.items(spent):
            await self.run.basket.put(item)

    async def _way(self, url: QueuedUrl) -> Way | None:
        """How to ask for it; None when no route takes it any more, which settles it."""
        way = await self.run.ways.way(url)
        if way.none_left:
            ended = unroutable(self.lease.token, self.lease.host.hid, url, way.none_left, self.run.clock.now())
            await self.run.basket.put(Item(settlement=with_next_visit(ended, self.run.reader.recrawl)))
        return None if way.none_left else way

    async def _ask(self) -> None:
        """Questions of the crawl's own: asked and kept like pages, and no URLs of the frontier."""
        for asker in self.run.askers:
            url = asker.question(self.lease.host.name) if self._goes_on() else None
            robots = None if url is None else await self._robots(url)
            if url and robots is not None and robots.check(url).allowed:
                asker.answered(url, await self._fetch_beside(url, is_robots=False))

    # -- robots ---------------------------------------------------------------------------------------------

    async def _robots(self, url: str) -> Robots | None:
        """The rules of the URL's origin; None when they cannot be had now, which ends the visit."""
        origin = origin_of(url)
        robots = self.run.robots.known(origin)
        if robots is None:
            robots = await self.run.robots.of(origin, self._fetch_beside)
            self._adopt_crawl_delay(robots)
            await self._announce_sitemaps(origin, robots)
            await self._admit_again(robots)
        elif self._pace.crawl_delay_ms is None:  # whoever learned it lost the host before its clock was stored
            self._adopt_crawl_delay(robots)
        if not robots.defers:
            return robots
        if not self._over:
            self._defer(robots)
        return None

    async def _announce_sitemaps(self, origin: str, robots: Robots) -> None:
        """Claim the sitemaps of an origin whose rules have just come; a repeat finds them known."""
        pages, intake = self.run.reader.pages, self.run.reader.intake
        if pages.sitemaps and not robots.defers:
            named = robots.rules.sitemaps if robots.rules is not None else ()
            claims = intake.sitemap_files((*named, *pages.sitemap_paths), f"{origin}/robots.txt")
            if claims:
                await self.run.basket.put(Item(claims=claims))

    async def _admit_again(self, robots: Robots) -> None:
        """Queue what rules that have changed forbade and no longer do."""
        if robots.changed and not robots.defers:
            async for claims in self.run.robots.allowed_again(robots, self.run.reader.intake):
                if claims:
                    await self.run.basket.put(Item(claims=claims))

    def _adopt_crawl_delay(self, robots: Robots) -> None:
        """A delay that is news to the host's clock counts from now: the last start may not be known any more."""
        if robots.crawl_delay is None:
            return
        before = self._pace
        self._pace = pacing.with_crawl_delay(before, robots.crawl_delay, self.run.robots_settings.crawl_delay_max)
        if self._pace.crawl_delay_ms != before.crawl_delay_ms:
            start = self.run.clock.monotonic() + self._pace.delay_ms / 1000
            self.run.turns.of(self.lease.host.name).hold_until(start)

    def _defer(self, robots: Robots) -> None:
        self._over = True
        self._why_later = f"has no rules yet ({robots.file.detail})"
        wait = max(self._pace.next_at, robots.file.expires_at)
        self._pace = replace(self._pace, next_at=wait)
        self._judge_host()
        if robots.file.detail == ADDRESS_REFUSED_DETAIL:
            # The guard will not change its mind: neither the robots file nor a page of this host can be asked for.
            self._condemned = str(FetchError.ADDRESS_REFUSED)

    async def _fetch_beside(self, url: str, *, is_robots: bool = True) -> FetchResult:
        result = await self._request(FetchRequest(url))
        self._follow_pace(classify(result, self.run.clock.now()), result, is_robots=is_robots)
        if result.response_head:
            await self.run.basket.put(Item([capture_of(result)]))
        return result

    # -- requests -------------------------------------------------------------------------------------------

    async def _fetch(self, request: FetchRequest, url: QueuedUrl) -> tuple[list[FetchResult], Outcome]:
        """The answer, and those before it where the same page sent us on to itself."""
        results: list[FetchResult] = []
        cookies: dict[str, str] = {}
        while True:
            result = await self._request(request)
            results.append(result)
            outcome = self.run.ways.judge(url, classify(result, self.run.clock.now()), result)
            self._follow_pace(outcome, result)
            onward = await self._same_page(outcome, result, url, len(results))
            if onward is None:
                return results, outcome
            if origin_of(onward) != origin_of(result.url):
                cookies.clear()
            else:
                cookies.update(set_cookies(result))
            jar = "; ".join(f"{name}={value}" for name, value in cookies.items())
            headers = (("Cookie", jar),) if jar else ()
            request = FetchRequest(onward, headers=headers, by_type=request.by_type, route=request.route)

    async def _same_page(self, outcome: Outcome, result: FetchResult, url: QueuedUrl, hops: int) -> str | None:
        """Where a redirect to the page's own key leads, if it may be followed in place."""
        if outcome.kind is not Kind.REDIRECT or hops > SAME_PAGE_HOPS or url.request is not None:
            return None
        target = self.run.identity.identify(outcome.location or "", result.url)
        if isinstance(target, Unusable) or target.key != url.key:
            return None
        robots = await self._robots(target.fetch_url)
        if robots is None or not robots.check(target.fetch_url).allowed:
            return None
        return target.fetch_url

    async def _request(self, request: FetchRequest) -> FetchResult:
        """One request in the turn of its host, and of the lease's pace group."""
        run = self.run
        delay = self._pace.delay_ms / 1000
        turns = {run.turns.of(self._host_of(request.url)): delay}
        group = self._group_turn()
        if group is not None:
            turns[group] = self._group_delay()
        taken: list[Turn] = []
        try:
            for turn, wait in turns.items():
                await self._take_turn(turn, wait)
                taken.append(turn)
            if not await take_slot(run.slots, turns, self._has_time, HOLD_SECONDS):
                raise _TooLate
            try:
                result = await run.fetcher.fetch(request)
            finally:
                run.slots.release()
            if group is not None:
                # As with a host: what counts is when it was sent, however long the connection took.
                late = (result.started_at - run.clock.now()) / 1000
                group.hold_until(run.clock.monotonic() + late + turns[group])
            return result
        finally:
            for turn in taken:
                turn.give_back()

    async def _take_turn(self, turn: Turn, delay: float) -> None:
        """Wait for a turn; meanwhile nothing is under way here."""
        run = self.run
        if turn.wait() <= 0:
            await turn.take(delay)
            return
        run.busy -= 1
        run.waiting += 1
        run.basket.nudge()
        try:
            await turn.take(delay)
        finally:
            run.waiting -= 1
            run.busy += 1

    def _turns(self) -> list[Turn]:
        """The clocks that bind this visit."""
        group = self._group_turn()
        host = self.run.turns.of(self.lease.host.name)
        return [host] if group is None else [host, group]

    def _group_turn(self) -> Turn | None:
        group = self.lease.host.group
        return None if group is None else self.run.groups.of(group)

    def _group_delay(self) -> float:
        named = self.run.grouping.named(self.lease.host.group or "")
        return 0.0 if named is None else named.delay_ms / 1000

    def _host_of(self, url: str) -> str:
        origin = origin_of(url)
        host = self._hosts.get(origin)
        if host is None:
            address = self.run.identity.identify(url)
            if isinstance(address, Unusable):
                return self.lease.host.name
            host = self._hosts[origin] = address.host
        return host

    # -- pace -----------------------------------------------------------------------------------------------

    def _follow_pace(self, outcome: Outcome, result: FetchResult, *, is_robots: bool = False) -> None:
        if self._host_of(result.url) != self.lease.host.name:
            return
        ended_at = result.started_at + (0 if result.route else result.elapsed_ms)  # others' time is not the host's
        before = self._pace
        paced = pacing.after(before, outcome, result.started_at, ended_at, self._host)
        self._pace = pacing.with_jitter(paced, self.run.reader.chance, self._host)
        if is_robots and outcome.kind is Kind.TRANSIENT and not outcome.no_answer:
            # Without its rules the host gives us nothing, however quick it is to say so.
            self._pace = replace(self._pace, failures=before.failures + 1)
            self._why_condemned = ROBOTS_UNAVAILABLE
        self._judge_host()
        self._hold_turn()
        if outcome.slow_down or outcome.no_answer:
            self._over = True

    def _hold_turn(self) -> None:
        """No request of this process before the host's next time."""
        wait = (self._pace.next_at - self.run.clock.now()) / 1000
        self.run.turns.of(self.lease.host.name).hold_until(self.run.clock.monotonic() + wait)

    def _judge_host(self) -> None:
        given_up = pacing.condemned(self._pace, self._host)
        self._condemned = given_up and (self._why_condemned or given_up)

    def _tell_wait(self) -> None:
        wait = self._pace.next_at - self.run.clock.now()
        if self._condemned is not None:
            self.run.watch(events.HostWaits(self.lease.host.name, self._condemned, 0))
        elif wait > max(LONG_WAIT_MS, self._pace.delay_ms):
            why = self._why_later or ("does not answer" if self._pace.failures else "asked us to slow down")
            self.run.watch(events.HostWaits(self.lease.host.name, why, self._pace.next_at))
