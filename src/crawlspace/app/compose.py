"""Opening a crawl: its directory, its store, its archive and the parts that work on them."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice

import msgspec

from crawlspace import __version__, events
from crawlspace.app.contact import require_contact
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.judged import judge_again_if_changed
from crawlspace.app.learners import Lessons, learning
from crawlspace.app.parsing import put_records_right, recorded, running
from crawlspace.app.piping import piping
from crawlspace.app.raw import Writer, close_archive, open_archive
from crawlspace.app.rendering import browser_seconds, rendering_of
from crawlspace.app.revisits import plan_visits
from crawlspace.app.routes import longest_request, route_fetchers
from crawlspace.app.rules import RULES, RULES_TEXT, require_rules, rules_in, under
from crawlspace.app.store import Opened, Store, open_member, open_store, put_right
from crawlspace.archive.disk import Disk, RealDisk
from crawlspace.archive.warc import WarcArchive
from crawlspace.clock import Clock, SystemClock
from crawlspace.engine.commit import REMOTE, Basket, Committer
from crawlspace.engine.control import Controller, read_ignored
from crawlspace.engine.copies import Copies
from crawlspace.engine.crawl import Allowance, Crawl, CrawlSettings, urls_per_visit
from crawlspace.engine.documents import Documents
from crawlspace.engine.fingerprints import Fingerprinting
from crawlspace.engine.hooks import HookedFetcher, Hooks
from crawlspace.engine.intake import Intake, Request
from crawlspace.engine.page import Handler
from crawlspace.engine.reading import Reader
from crawlspace.engine.recent import Recent
from crawlspace.engine.robots import RobotsGate
from crawlspace.engine.routes import Ways
from crawlspace.engine.trial import Trial, Trials
from crawlspace.engine.turn import Turns
from crawlspace.engine.visit import Run
from crawlspace.engine.walls import Walls
from crawlspace.errors import UsageError
from crawlspace.fetch.http import HttpFetcher
from crawlspace.fetch.rendering.house import House
from crawlspace.fetch.routes import RoutedFetcher
from crawlspace.pages.links import PageSettings
from crawlspace.parsers import Parser
from crawlspace.policy.blocked import Detector
from crawlspace.policy.groups import Grouping
from crawlspace.policy.learning import Sighting
from crawlspace.policy.pace import Treatment
from crawlspace.policy.priority import Score
from crawlspace.policy.scope import Scope
from crawlspace.settings import Settings, as_toml
from crawlspace.types import Claimed, Unusable
from crawlspace.urls import Identity, policy_from

SOFTWARE = f"crawlspace/{__version__}"
CLAIM_BATCH = 1000
SETTINGS = "settings"
"""The fact that holds the settings of the latest start, for workers that come to a shared frontier."""


def _ignore(_event: events.Event) -> None:
    """Nobody watches."""


@dataclass(slots=True)
class Plan:
    """What a person asks of a crawl."""

    settings: Settings
    follow: bool | None = None
    """Whether links are followed; None: as the crawl has it, which a new one does."""
    handler: Handler | None = None
    hooks: Hooks = field(default_factory=Hooks)
    parsers: Sequence[Parser] = ()
    """Beside those of the settings."""
    score: Score | None = None
    watch: events.Watcher = _ignore
    clock: Clock = field(default_factory=SystemClock)
    disk: Disk = field(default_factory=RealDisk)
    """What the archive writes to; tests give one that fails."""
    trial: Callable[[PageSettings], Trial | None] = Trials
    """What tries suspect pages before they are read here; None where there are no processes, as in a simulation."""
    frontier: str | None = None
    """Address of a frontier that workers share, at the first start; None: as the directory has it."""
    joins: bool = False
    """Take part in a crawl that others lead: its own settings stay what they are."""
    member: Member | None = None
    """This process is one of several that another started, which owns the directory."""


class Member(msgspec.Struct, frozen=True):
    """One of several processes that crawl together on one machine."""

    number: int
    """From 1; 0 is who started them."""
    allowance: Allowance
    """Its share of the crawl's budgets."""


@dataclass(slots=True)
class Injected:
    """What became of seeds."""

    new: int = 0
    known: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Text and reason of those that were not taken."""


@dataclass(slots=True)
class OpenCrawl:
    """A crawl that this process owns, ready to run."""

    directory: CrawlDirectory
    frontier: Store
    archive: WarcArchive
    identity: Identity
    intake: Intake
    plan: Plan
    worker: int = 0
    """This process's number among those that share the frontier."""
    in_company: bool = False
    """Others may work on the crawl at the same time."""
    lock: int | None = None
    """Descriptor of the directory's lock; None in a process that its owner has started."""
    rests: bool = False
    """Whoever opened it applies rules that were learned, when the crawl stops for that."""
    remembered: Sequence[Sighting] = ()
    """What was seen of pages before that, and in the end what is to be remembered of them."""

    async def inject(self, requests: Iterable[Request]) -> Injected:
        """Claim seeds and draw the scope around them; known ones change nothing. Any number, in bounded memory."""
        done = Injected()
        waiting = iter(requests)
        while batch := list(islice(waiting, CLAIM_BATCH)):
            await self._inject(batch, done)
        return done

    async def _inject(self, batch: list[Request], done: Injected) -> None:
        addresses = [self.identity.identify(request.url, request=request.spec()) for request in batch]
        usable = [address for address in addresses if not isinstance(address, Unusable)]
        require_contact(self.plan.settings, usable)
        await self.intake.widen(self.frontier, *usable)
        claims, unusable = self.intake.seeds(batch)
        done.refused += [(each.text, each.reason) for each in unusable]
        for claim, answer in zip(claims, await self.frontier.claim(claims), strict=True):
            if claim.refusal is not None:
                done.refused.append((claim.address.fetch_url, claim.refusal))
            elif answer is Claimed.NEW:
                done.new += 1
            else:
                done.known += 1

    def controller(self, changed: asyncio.Event | None = None) -> Controller:
        """What carries out commands; `changed` is set after each step."""
        return Controller(
            control=self.frontier,
            ledger=self.frontier,
            intake=self.intake,
            inject=self._inject_asked,
            clock=self.plan.clock,
            watch=self.plan.watch,
            changed=changed or asyncio.Event(),
        )

    async def _inject_asked(self, requests: Sequence[Request]) -> dict[str, object]:
        return asdict(await self.inject(requests))

    async def require_work(self) -> None:
        """Raise `UsageError` when there is nothing to crawl and never was."""
        if (await self.frontier.counts()).known == 0:
            raise UsageError(
                "no seed could be used, and the crawl is empty", hint="give a URL such as https://example.com/"
            )

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Crawl]:
        """The loop with all its parts; connections are closed at the end."""
        plan, settings = self.plan, self.plan.settings
        plain = HttpFetcher(
            settings.fetch, settings.network, plan.clock, user_agent=settings.agent(), public=bool(settings.contact)
        )
        house = House(settings.browser)
        routes = route_fetchers(settings, plan.clock, self.directory.path, house)
        fetcher = RoutedFetcher(plain, routes, plan.clock, plan.watch)
        recent = self.intake.recent
        committer = Committer(self.frontier, self.archive, recent, plan.clock, plan.watch)
        if settings.archive.revisits:
            committer.captures = self.frontier
        if settings.content.fingerprints and settings.content.stop_copies:
            committer.prepare = Copies(self.frontier).stop
        run = _run(self, fetcher, plain)
        rendering = rendering_of(settings, house, self.identity, self.frontier, (plan.watch, plan.clock))
        run.reader.rendering = rendering
        committer.tells_refused = plan.hooks.refused
        controller = self.controller(committer.progress)
        run.held = controller.held
        member = self.plan.member
        allowance = None if member is None else member.allowance
        urls = urls_per_visit(settings.priority.order, settings.host)
        loop_settings = CrawlSettings(settings.concurrency, settings.budget, self.worker, allowance, urls)
        try:
            in_effect = under(settings, rules_in(await self.frontier.notes()))
            pipeline = piping(run.reader, settings.parsers, self.directory.path, self.plan.watch)
            async with pipeline, recorded(self.directory, in_effect, run.reader.parsers) as records:
                committer.records = records
                loop = Crawl(self.frontier, committer, run, loop_settings, controller)
                if self.in_company:
                    loop.share_hosts(self.frontier)
                lessons = Lessons(settings, self.frontier, self.identity, self.intake, self.rests, self.remembered)
                async with learning(lessons, committer, run, loop) as learner:
                    yield loop
                    self.remembered = () if learner is None else tuple(learner.learning.pages())
        finally:
            if rendering is not None:
                await rendering.close()
            await fetcher.close()
            if run.reader.trial is not None:
                await run.reader.trial.close()


def reader_of(crawl: OpenCrawl) -> Reader:
    """What reads the answers of a crawl."""
    plan, settings = crawl.plan, crawl.plan.settings
    context = settings.discovery.context or settings.priority.reads_text
    pages = msgspec.structs.replace(settings.discovery, product=settings.product(), context=context)
    return Reader(
        intake=crawl.intake,
        ledger=crawl.frontier,
        pages=pages,
        retry=settings.retry,
        clock=plan.clock,
        chance=random.Random(),
        watch=plan.watch,
        handler=plan.handler,
        parsers=running(settings.parsers, crawl.directory, plan.parsers),
        recrawl=settings.recrawl,
        trial=plan.trial(pages),
        documents=Documents(pages.max_links) if pages.pdf else None,
        facts=settings.archive.metadata or settings.archive.table,
        fingerprinting=Fingerprinting(settings.content, settings.scope.max_depth),
        walls=_walls(crawl, pages),
        ways=_ways(crawl),
    )


def _ways(crawl: OpenCrawl) -> Ways:
    """What knows blocked pages, and where they go."""
    settings = crawl.plan.settings
    detector = Detector(settings.routing.signatures, settings.routing.ignore)
    return Ways(settings.lanes(), crawl.frontier, detector)


def _walls(crawl: OpenCrawl, pages: PageSettings) -> Walls | None:
    """What knows soft 404s; None when hosts are not to be asked for what they do not have."""
    settings = crawl.plan.settings.content
    if not (settings.fingerprints and settings.probe_after):
        return None
    return Walls(crawl.frontier, crawl.identity, settings.probe_after, pages, random.Random())


def _run(crawl: OpenCrawl, fetcher: RoutedFetcher, plain: HttpFetcher) -> Run:
    plan, settings = crawl.plan, crawl.plan.settings
    treatment = Treatment.of(settings.host)
    reader = reader_of(crawl)
    run = Run(
        fetcher=HookedFetcher(fetcher, plan.hooks, plan.watch) if plan.hooks else fetcher,
        robots=RobotsGate(crawl.frontier, crawl.identity, settings.robots, settings.product(), plan.clock),
        reader=reader,
        basket=_basket(settings, lambda: run),
        identity=crawl.identity,
        turns=Turns(plan.clock, lambda host: treatment.host(host).concurrency),
        clock=plan.clock,
        watch=plan.watch,
        treatment=treatment,
        robots_settings=settings.robots,
        request_seconds=max(longest_request(settings), browser_seconds(settings)),
        slots=asyncio.Semaphore(settings.concurrency.total),
        grouping=Grouping.of(settings.group),
        address_of=plain.address_of,
        ways=reader.ways,
        askers=() if reader.walls is None else (reader.walls,),
    )
    return run


def _basket(settings: Settings, run: Callable[[], Run]) -> Basket:
    """Groups of pages; larger ones where each becomes an object, which does not hurry while a lane waits its turn."""
    if settings.archive.store:
        return Basket(lambda: run().is_idle() and not run().waiting, REMOTE)
    return Basket(lambda: run().is_idle())


@asynccontextmanager
async def open_crawl(directory: CrawlDirectory, plan: Plan) -> AsyncIterator[OpenCrawl]:
    """Own a crawl directory, new or resumed; raises `CrawlDirError`, `ConfigError` or `StoreError`.

    After a crash this is where everything is put right: leases of the dead process are void, and what the archive
    holds past its last settled byte is cut.
    """
    directory.create()
    with directory.locked() as lock:
        opened = await open_store(directory, plan.settings.frontier(), plan.clock, plan.frontier)
        async with _parts(directory, plan, opened) as crawl:
            crawl.lock = lock
            directory.write_effective(under(plan.settings, rules_in(await opened.store.notes())))
            members = await put_right(directory, plan.settings.frontier(), plan.clock)
            _recover(crawl, await opened.store.segments() | members)
            await opened.store.void_leases()
            await judge_again_if_changed(opened.store, plan.settings)
            await plan_visits(opened.store, plan.settings.recrawl, plan.watch)
            if opened.shared and not plan.joins:
                await opened.store.note({SETTINGS: as_toml(plan.settings)})
            yield crawl


@asynccontextmanager
async def join_crawl(directory: CrawlDirectory, plan: Plan) -> AsyncIterator[OpenCrawl]:
    """Take part in a crawl as one of the processes that its directory's owner has started: the plan's member.

    What a process of the same number left behind when it died is put right here.
    """
    assert plan.member is not None, "the owner says which one this is"
    opened = await open_member(directory, plan.settings.frontier(), plan.clock, plan.member.number)
    async with _parts(directory, plan, opened) as crawl:
        _recover(crawl, await opened.store.segments(), worker=opened.worker)
        await opened.store.void_leases()
        yield crawl


def _recover(crawl: OpenCrawl, flushed: dict[str, int], worker: int | None = None) -> None:
    put_records_right(crawl.directory, flushed, worker)
    for repair in crawl.archive.recover(flushed, worker):
        crawl.plan.watch(events.Warned(str(repair)))


@asynccontextmanager
async def _parts(directory: CrawlDirectory, plan: Plan, opened: Opened) -> AsyncIterator[OpenCrawl]:
    """What works on an open store; that is closed in the end."""
    frontier = opened.store
    try:
        identity = await _identity(frontier, plan.settings, directory)
        scope = await _scope(frontier, plan.settings)
        writer = Writer(SOFTWARE, opened.worker, plan.watch, plan.disk)
        archive = open_archive(directory, plan.settings, plan.clock, writer)
        follow = await _follow(frontier, plan.follow)
        intake = Intake(
            identity, scope, plan.settings.priority, Recent(), follow, plan.settings.robots.meta, plan.score
        )
        intake.revisits = plan.settings.recrawl.on
        try:
            in_company = opened.shared or plan.member is not None
            yield OpenCrawl(directory, frontier, archive, identity, intake, plan, opened.worker, in_company)
        finally:
            await close_archive(archive, writer)
    finally:
        await frontier.close()


async def _identity(frontier: Store, settings: Settings, directory: CrawlDirectory) -> Identity:
    notes = await frontier.notes()
    policy = policy_from(under(settings, rules_in(notes)).identity)
    if "hash_key" not in notes:
        key = secrets.token_hex(32)
        await frontier.note({"hash_key": key, RULES: policy.identifier, RULES_TEXT: policy.text})
        # Where workers share the frontier another may have been first, and the first key stays.
        notes = await frontier.notes()
    require_rules(notes, policy, directory.path)
    return Identity(policy, bytes.fromhex(notes["hash_key"]))


async def _follow(frontier: Store, asked: bool | None) -> bool:
    """Kept with the crawl, so that a list that was interrupted goes on as a list."""
    if asked is not None:
        await frontier.note({"follow": "yes" if asked else "no"})
        return asked
    return (await frontier.notes()).get("follow", "yes") == "yes"


async def _scope(frontier: Store, settings: Settings) -> Scope:
    notes = await frontier.notes()
    roots = notes.get("scope")
    scope = Scope.of(settings.scope, ()) if roots is None else Scope.restore(settings.scope, roots)
    return scope.ignoring(read_ignored(notes))
