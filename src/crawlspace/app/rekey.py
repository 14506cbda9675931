"""Re-keying a crawl: its URLs under the URL rules of the settings, after a dry run says what that would change.

The store's own part is bounded, goes in transactions and can be killed at any moment. This module gives it the new
rules, and reads archived pages again where pages that were one may come apart: the merged spellings were never
stored, the pages that link to them were. Nothing is fetched, and the archive is only read. A crawl whose re-keying is
not finished is not opened for crawling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from crawlspace import __version__
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.rekeyers import Crawl, Rekeyer, look_at, open_rekeyer
from crawlspace.app.rules import (
    LEARNED,
    LEARNED_GOAL,
    NEW_RULES_TEXT,
    RULES,
    RULES_TEXT,
    goal_in,
    in_words,
    under,
    written,
)
from crawlspace.app.snapshot import reading_disk
from crawlspace.app.store import Store, open_beside, open_store, open_to_read, put_right
from crawlspace.archive.reader import Reader
from crawlspace.clock import Clock
from crawlspace.engine.intake import Intake
from crawlspace.engine.recent import Recent
from crawlspace.errors import CrawlDirError, StoreDamaged
from crawlspace.fetch.replay import result_of
from crawlspace.frontier.rekeying import (
    BATCH,
    DONE,
    EXAMPLES,
    LINKS,
    MERGED_LINKS,
    READY,
    UNFINISHED,
    Forecast,
    Named,
    Progress,
    Source,
    decoded,
    encoded,
)
from crawlspace.frontier.sqlite.rekey_survey import Survey, open_survey
from crawlspace.pages.links import read_page
from crawlspace.policy.scope import Scope
from crawlspace.settings import Settings
from crawlspace.states import UrlState
from crawlspace.types import Claim, Claimed, RequestSpec, Unusable
from crawlspace.urls import Identity, Policy, policy_from
from crawlspace.urls.difference import difference, may_part
from crawlspace.urls.variants import HostRule

SOFTWARE = f"crawlspace/{__version__}"
LONGEST = 65_536
"""No stored URL is longer; the setting's limit is for new ones."""
PAGES_AT_ONCE = 50
CLAIM_BATCH = 1_000
PAGES_LOOKED_AT = 1_000
"""Archived pages that a dry run reads."""
LINKS_LOOKED_AT = 200_000

PARTED = "parted"
"""The fact that counts re-keyings to finer rules, for workers that have archives of their own."""

Watch = Callable[[Progress], None]


@dataclass(slots=True)
class Parting:
    """What archived pages say of pages that would come apart."""

    pages: int = 0
    """Pages read."""
    whole: bool = True
    """All there are were read."""
    found: int = 0
    """URLs to be queued that are not known under the new rules."""
    examples: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Outlook:
    """A dry run's answer."""

    difference: list[str]
    forecast: Forecast
    parting: Parting | None
    """None when no pages can come apart."""


class _NewRules:
    """The new rules, as a store asks for them."""

    def __init__(self, identity: Identity, scope: Scope) -> None:
        self._identity = identity
        self._scope = scope

    def name(self, url: str, request: RequestSpec | None) -> Named | None:
        address = self._identity.identify(url, request=request)
        if isinstance(address, Unusable):
            return None
        return Named(address.key, address.host, self._scope.is_seed_host(address))

    def heir(self, host: str) -> Named:
        # A host named with port 80 is one of https: http's own port is never written.
        scheme = "https" if host.endswith(":80") else "http"
        named = self.name(f"{scheme}://{host}/", None)
        if named is None:
            raise StoreDamaged(f"the store has a host that is none: {host!r}")
        return named


class _Target(msgspec.Struct, frozen=True):
    """Where a crawl is going."""

    settings: Settings
    """Those that hold then: with the learned rules."""
    rules: list[HostRule]
    """The learned ones among the rules."""
    policy: Policy
    identity: Identity
    """For new links, under the setting's limits."""
    scope: Scope
    naming: _NewRules
    parts: bool
    """Pages may come apart on the way there."""
    parted: int
    """How often they might before."""

    @classmethod
    def of(cls, settings: Settings, notes: Mapping[str, str]) -> _Target:
        rules = goal_in(notes)
        settings = under(settings, rules)
        policy = policy_from(settings.identity)
        key = bytes.fromhex(notes.get("hash_key", ""))
        identity = Identity(policy, key)
        anything = msgspec.structs.replace(settings.identity, max_length=LONGEST)
        widest = Identity(policy_from(anything), key)
        scope = _rescoped(settings, notes.get("scope"), widest)
        changes = notes.get(RULES) != policy.identifier
        parts = changes and may_part(notes.get(RULES_TEXT, ""), policy.text)
        parted = int(notes.get(PARTED, "0"))
        return cls(settings, rules, policy, identity, scope, _NewRules(widest, scope), parts, parted)

    def facts(self) -> dict[str, str]:
        """What a crawl is told when its store is ready."""
        learned = {LEARNED: written(self.rules), LEARNED_GOAL: ""}
        parted = {PARTED: str(self.parted + 1)} if self.parts else {}
        rules = {RULES: self.policy.identifier, RULES_TEXT: self.policy.text}
        return {**rules, "scope": self.scope.roots, **learned, **parted}


def _rescoped(settings: Settings, roots: str | None, identity: Identity) -> Scope:
    """The scope as it has grown, its seeds under the hosts they have now."""
    if roots is None:
        return Scope.of(settings.scope, ())
    Scope.restore(settings.scope, roots)  # says what is wrong with it
    origins = [origin for _, origin in msgspec.json.decode(roots)["seeds"]]
    addresses = [identity.identify(f"{origin}/") for origin in origins]
    return Scope.of(settings.scope, [each for each in addresses if not isinstance(each, Unusable)])


# -- the dry run --------------------------------------------------------------------------------------------


async def outlook(directory: CrawlDirectory, settings: Settings, clock: Clock) -> Outlook | None:
    """What re-keying to the rules of the settings would do; None when the crawl has them already.

    Changes nothing, also while the crawl runs. Raises `CrawlDirError` when a re-keying is under way.
    """
    directory.require()
    notes = await _notes(directory, settings, clock)
    target = _Target.of(settings, notes)
    if decoded(notes.get(UNFINISHED)) is not None:
        raise CrawlDirError(
            "a re-keying of this crawl is under way, so its URLs are under two sets of rules",
            hint=f"go on with it: crawlspace rekey {directory.path} --apply, with the settings that it began with",
        )
    if notes.get(RULES) == target.policy.identifier:
        return None
    old = notes.get(RULES_TEXT, "")
    with (
        look_at(Crawl(directory, settings.frontier(), clock), one_moment=True) as look,
        open_survey(look, target.naming) as survey,
    ):
        forecast = survey.forecast()
        parts = may_part(old, target.policy.text) and look.has_followed()
        parting = _look_at_pages(survey, target, _archive(directory, settings)) if parts else None
    return Outlook(difference(old, target.policy.text), forecast, parting)


async def _notes(directory: CrawlDirectory, settings: Settings, clock: Clock) -> Mapping[str, str]:
    frontier = await open_to_read(directory, settings.frontier(), clock)
    try:
        return await frontier.notes()
    finally:
        await frontier.close()


def _look_at_pages(survey: Survey, target: _Target, archive: Reader) -> Parting:
    """Count the links of archived pages that nobody has a key for."""
    told = Parting()
    new: set[bytes] = set()
    intake = _intake(target, follow=True)
    for source in survey.every_source(PAGES_AT_ONCE):
        if told.pages >= PAGES_LOOKED_AT or len(new) >= LINKS_LOOKED_AT:
            told.whole = False
            break
        told.pages += 1
        for claim in _claims_of(source, intake, archive, target.settings) or ():
            key = claim.address.key
            if claim.refusal is None and key not in new and not survey.plans(key):
                new.add(key)
                told.examples += [claim.address.fetch_url][: EXAMPLES - len(told.examples)]
    told.found = len(new)
    return told


# -- doing it -----------------------------------------------------------------------------------------------


async def apply(
    directory: CrawlDirectory, settings: Settings, clock: Clock, watch: Watch, batch: int = BATCH
) -> Progress | None:
    """Take the crawl to the rules of the settings, or go on with that; None when it has them already.

    Raises `CrawlDirError` when a re-keying to other rules is under way, or somebody has the directory. Killed at any
    moment, the same call goes on and ends as if nothing had happened.
    """
    directory.require()
    with directory.locked():
        notes = await _made_ready(directory, settings, clock)
        target = _Target.of(settings, notes)
        progress = decoded(notes.get(UNFINISHED))
        if progress is None and notes.get(RULES) == target.policy.identifier:
            await _note(directory, target, clock)
            directory.write_effective(target.settings)
            return None
        _require_same_goal(progress, target.policy, notes, directory)
        crawl = Crawl(directory, settings.frontier(), clock)
        async with open_rekeyer(crawl, target.naming, batch) as rekeyer:
            if progress is None:
                progress = await _begun(rekeyer, target)
            progress = await _carried_out(rekeyer, progress, target, watch)
            directory.write_effective(target.settings)
            progress = await _Offering(directory, target, clock, watch).run(progress)
        if progress.parts:
            await _call_offered(directory, settings, clock)
        return progress


async def _call_offered(directory: CrawlDirectory, settings: Settings, clock: Clock) -> None:
    """Write down that the pages of this directory were read again."""
    opened = await open_store(directory, settings.frontier(), clock)
    try:
        parted = (await opened.store.notes()).get(PARTED, "")
        await opened.store.note({f"{PARTED} offered by {opened.worker}": parted})
    finally:
        await opened.store.close()


async def offer_own(directory: CrawlDirectory, settings: Settings, clock: Clock) -> int | None:
    """Offer the links of this directory's pages again, if another worker has re-keyed to finer rules and could not.

    How many URLs are queued by that; None when there was nothing to do. For the owner of the directory, before it
    crawls. Killed at any moment, the next start does it again: links that are known change nothing.
    """
    if not directory.shared.exists():
        return None
    with directory.locked():
        opened = await open_store(directory, settings.frontier(), clock)
        try:
            notes = await opened.store.notes()
        finally:
            await opened.store.close()
        target = _Target.of(settings, notes)
        is_offered = notes.get(PARTED, "") == notes.get(f"{PARTED} offered by {opened.worker}", "")
        if is_offered or notes.get(UNFINISHED) or notes.get(RULES) != target.policy.identifier:
            return None
        found = 0
        if directory.archive.is_dir() and any(directory.archive.iterdir()):
            progress = Progress(rules=target.policy.identifier, parts=True, urls=0, stage=LINKS, after=(0,))
            done = await _Offering(directory, target, clock, lambda _: None, noted=False).run(progress)
            found = done.found
        await _call_offered(directory, settings, clock)
    return found


async def _note(directory: CrawlDirectory, target: _Target, clock: Clock) -> None:
    """Write down which learned rules hold where that changes no URL's key."""
    frontier = await open_beside(directory, target.settings.frontier(), clock)
    try:
        await frontier.note(target.facts())
    finally:
        await frontier.close()


async def _begun(rekeyer: Rekeyer, target: _Target) -> Progress:
    policy = target.policy
    return await rekeyer.begin(policy.identifier, {NEW_RULES_TEXT: policy.text}, parts=target.parts)


async def _carried_out(rekeyer: Rekeyer, progress: Progress, target: _Target, watch: Watch) -> Progress:
    """The store under the new rules."""
    async for reached in rekeyer.run(progress):
        progress = reached
        watch(progress)
    if progress.stage == READY:
        progress = await rekeyer.finish(progress, target.facts())
        watch(progress)
    return progress


async def _made_ready(directory: CrawlDirectory, settings: Settings, clock: Clock) -> Mapping[str, str]:
    """Bring the store up to date and void the leases of dead processes, as at every start."""
    frontier = (await open_store(directory, settings.frontier(), clock)).store
    try:
        await put_right(directory, settings.frontier(), clock)
        await frontier.void_leases()
        return await frontier.notes()
    finally:
        await frontier.close()


def _require_same_goal(
    progress: Progress | None, policy: Policy, notes: Mapping[str, str], directory: CrawlDirectory
) -> None:
    if progress is not None and progress.rules != policy.identifier:
        raise CrawlDirError(
            "a re-keying to other URL rules than these is under way; what these change of its goal: "
            f"{in_words(notes.get(NEW_RULES_TEXT, ''), policy.text)}",
            hint=f"finish that one first, with the settings that it began with: crawlspace rekey {directory.path}",
        )


@dataclass(slots=True)
class _Offering:
    """Reads archived pages again and offers their links under the new rules; links that are known change nothing."""

    directory: CrawlDirectory
    target: _Target
    clock: Clock
    watch: Watch
    noted: bool = True
    """How far it is, is written down: no worker crawls meanwhile."""

    async def run(self, progress: Progress) -> Progress:
        """Until all pages were read; the last word of the re-keying."""
        if progress.stage == DONE:
            return progress
        settings = self.target.settings
        archive = _archive(self.directory, settings)
        frontier = await open_beside(self.directory, settings.frontier(), self.clock)
        try:
            with look_at(self._crawl) as look:
                intake = _intake(self.target, follow=look.has_followed())
            while progress.stage != DONE:
                batch = self._batch(progress)
                progress = await self._offer(progress, batch, frontier, (intake, archive))
                if self.noted:
                    await frontier.note({UNFINISHED: "" if progress.stage == DONE else encoded(progress)})
                self.watch(progress)
        finally:
            await frontier.close()
        return progress

    @property
    def _crawl(self) -> Crawl:
        return Crawl(self.directory, self.target.settings.frontier(), self.clock)

    def _batch(self, progress: Progress) -> list[Source]:
        with look_at(self._crawl) as look:
            read = look.sources if progress.stage == LINKS else look.merged_sources
            return read(int(progress.after[0]), PAGES_AT_ONCE)

    async def _offer(
        self,
        progress: Progress,
        batch: list[Source],
        frontier: Store,
        readers: tuple[Intake, Reader],
    ) -> Progress:
        if not batch:
            stage = MERGED_LINKS if progress.stage == LINKS else DONE
            return msgspec.structs.replace(progress, stage=stage, after=(0,))
        intake, archive = readers
        waiting: list[Claim] = []
        unreadable = found = 0
        for source in batch:
            claims = _claims_of(source, intake, archive, self.target.settings)
            unreadable += claims is None
            waiting += claims or ()
            if len(waiting) >= CLAIM_BATCH:
                found += await _claim(waiting, frontier, intake)
                waiting = []
        found += await _claim(waiting, frontier, intake)
        return msgspec.structs.replace(
            progress,
            after=(batch[-1].cursor,),
            pages=progress.pages + len(batch),
            unreadable=progress.unreadable + unreadable,
            found=progress.found + found,
        )


async def _claim(claims: list[Claim], frontier: Store, intake: Intake) -> int:
    """Claim these; how many are queued that were not known."""
    if not claims:
        return 0
    answers = await frontier.claim(claims)
    intake.recent.commit(claims)
    return sum(answer is Claimed.NEW and claim.refusal is None for claim, answer in zip(claims, answers, strict=True))


def _intake(target: _Target, *, follow: bool) -> Intake:
    return Intake(target.identity, target.scope, target.settings.priority, Recent(), follow)


def _archive(directory: CrawlDirectory, settings: Settings) -> Reader:
    """The archives of the directory and of those that were named beside it."""
    return Reader(reading_disk(directory, settings), directory.archive, settings.archive.max_record)


def _claims_of(source: Source, intake: Intake, archive: Reader, settings: Settings) -> list[Claim] | None:
    """What a stored answer leads to under the new rules; None when its capture cannot be read."""
    if source.state is UrlState.REDIRECTED:
        address = intake.identity.identify(source.target or "", source.url.url)
        if isinstance(address, Unusable) or address.key == source.url.key:
            return []
        return [intake.redirect(address, source.url)]
    if source.pointer is None or not intake.follow:
        return []
    try:
        result = result_of(archive.open(source.pointer), settings.fetch)
    except StoreDamaged:
        return None
    return intake.page(read_page(result.body, result.url, result.headers, settings.discovery), source.url)
