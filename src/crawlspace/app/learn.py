"""Learned rules of identity in a crawl's life: which are in effect, and how they come into effect and out of it.

A crawl is under the rules of its settings and, behind them, under the learned rules that a fact of its store names in
order. Another set of learned rules is another set of URL rules: the crawl is re-keyed to it like to any other, while
it rests. Killed on the way, the next start goes on with that by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from crawlspace import events
from crawlspace.app.compose import OpenCrawl, Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.rekey import apply, offer_own
from crawlspace.app.rules import LEARNED_GOAL, goal_in, rules_in, under, written
from crawlspace.app.store import Store, open_beside, open_store
from crawlspace.errors import OthersAtWork, Rekeyed
from crawlspace.events import Ending
from crawlspace.frontier.rekeying import UNFINISHED, Progress, decoded
from crawlspace.policy.evidence import IN_EFFECT, KnownRule, LearningSettings, Lesson, RuleState, is_sure
from crawlspace.policy.learning import Sighting
from crawlspace.ports import Learned
from crawlspace.settings import Settings
from crawlspace.urls import policy_from
from crawlspace.urls.variants import HostRule

Result = TypeVar("Result")
LOOK_SECONDS = 0.5
PATIENCE_SECONDS = 60.0
"""A re-keying that has not got on for so long has no process any more."""

Drive = Callable[[OpenCrawl], Awaitable[tuple[Ending, Result]]]


def goal_of(known: Iterable[KnownRule], now: Sequence[HostRule]) -> list[HostRule]:
    """The rules that should hold: those that do, in their order and without what is unwanted, then new ones."""
    wanted = [each.rule for each in known if each.state in IN_EFFECT]
    kept = [rule for rule in now if rule in wanted]
    return [*kept, *(rule for rule in wanted if rule not in kept)]


# -- a run that applies what it learns ----------------------------------------------------------------------


async def run_learning(place: CrawlDirectory, plan: Plan, drive: Drive[Result]) -> tuple[Ending, Result]:
    """Open the crawl and drive it; while that ends because rules are to be applied, apply them and go on."""
    rests = await _brought(place, plan)
    remembered: Sequence[Sighting] = ()
    while True:
        try:
            async with open_crawl(place, plan) as crawl:
                crawl.rests, crawl.remembered = rests, remembered
                ending, result = await drive(crawl)
                remembered = crawl.remembered
        except Rekeyed as rekeyed:
            plan.watch(events.Warned(f"{rekeyed.message} It goes on under the rules that hold now"))
            await _until_settled(place, plan)
            rests = await _brought(place, plan)
            continue
        if ending is not Ending.LEARNED:
            return ending, result
        rests = await _brought(place, plan)


async def _brought(place: CrawlDirectory, plan: Plan) -> bool:
    """Bring the crawl under its learned rules; False when that has to wait, since others are at the crawl."""
    while True:
        try:
            await take_effect(place, plan)
            found = await offer_own(place, plan.settings, plan.clock)
            if found:
                plan.watch(events.Warned(f"pages came apart by new URL rules: {found} links of them are queued"))
        except OthersAtWork as error:
            if await _until_settled(place, plan):
                continue  # another worker had the same rules in mind
            plan.watch(events.Warned(f"learned rules are applied at another start: {error.message}"))
            return False
        return True


async def _until_settled(place: CrawlDirectory, plan: Plan) -> bool:
    """Wait while another process re-keys the crawl and gets on with it; whether that has come to its end."""
    seen, waited = "", 0.0
    while waited < PATIENCE_SECONDS:
        store = await open_beside(place, plan.settings.frontier(), plan.clock)
        try:
            stands = (await store.notes()).get(UNFINISHED, "")
        finally:
            await store.close()
        if not stands:
            return bool(seen)
        waited = waited + LOOK_SECONDS if stands == seen else 0.0
        seen = stands
        await plan.clock.sleep(LOOK_SECONDS)
    return False


async def take_effect(place: CrawlDirectory, plan: Plan) -> bool:
    """Bring the crawl under the learned rules that should hold; whether that changed something.

    Also goes on with a re-keying to these rules that was cut short.
    """
    if not (place.database.exists() or place.shared.exists()):
        return False
    with place.locked():
        frontier = (await open_store(place, plan.settings.frontier(), plan.clock)).store
        try:
            goal = await _goal(frontier, plan.settings)
            if goal is None:
                return False
            now = rules_in(await frontier.notes())
            await frontier.note({LEARNED_GOAL: written(goal)})
        finally:
            await frontier.close()
    plan.watch(events.Warned(_told(now, goal)))
    # It takes the lock itself; whoever comes between finds a goal that was written down, and goes on with it.
    await apply(place, plan.settings, plan.clock, _silent)
    with place.locked():
        frontier = (await open_store(place, plan.settings.frontier(), plan.clock)).store
        try:
            await _call_applied(frontier, goal)
        finally:
            await frontier.close()
    return True


async def _goal(frontier: Store, settings: Settings) -> list[HostRule] | None:
    """The rules to which the crawl is to be taken; None when it is there, or on its way to others."""
    notes = await frontier.notes()
    now, goal = rules_in(notes), goal_in(notes)
    progress = decoded(notes.get(UNFINISHED))
    if progress is not None:
        leads_there = policy_from(under(settings, goal).identity).identifier == progress.rules
        return goal if leads_there else None
    if settings.learning.mode == "apply":
        await _accept_sure(frontier, settings.learning)
    known = await frontier.learned()
    await _call_applied(frontier, now)
    goal = goal_of(known, now)
    return None if goal == now and not notes.get(LEARNED_GOAL) else goal


async def _accept_sure(store: Learned, settings: LearningSettings) -> None:
    """Accept what was proposed, perhaps while nothing was to be applied, and is sure."""
    lessons = [
        Lesson(each.rule, was=each.state, state=RuleState.ACCEPTED)
        for each in await store.learned()
        if each.state is RuleState.PROPOSED and is_sure(each.rule, each.evidence, settings)
    ]
    if lessons:
        await store.learn(lessons)


async def _call_applied(store: Learned, holds: Sequence[HostRule]) -> None:
    """Say of the rules that hold that they are applied."""
    lessons = [
        Lesson(each.rule, was=each.state, state=RuleState.APPLIED)
        for each in await store.learned()
        if each.state is RuleState.ACCEPTED and each.rule in holds
    ]
    if lessons:
        await store.learn(lessons)


def _told(now: Sequence[HostRule], goal: Sequence[HostRule]) -> str:
    added = [str(rule) for rule in goal if rule not in now]
    removed = [str(rule) for rule in now if rule not in goal]
    told = [f"{what} {', '.join(rules)}" for what, rules in (("applying", added), ("undoing", removed)) if rules]
    return f"learned rules: {'; '.join(told) or 'going on with a re-keying that was cut short'}"


def _silent(_progress: Progress) -> None:
    """Nobody watches the steps."""
