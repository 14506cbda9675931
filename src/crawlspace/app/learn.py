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
from crawlspace.app.rekey import apply
from crawlspace.app.rules import LEARNED_GOAL, goal_in, rules_in, under, written
from crawlspace.errors import UsageError
from crawlspace.events import Ending
from crawlspace.frontier.sqlite.rekey import UNFINISHED, Progress, decoded
from crawlspace.frontier.sqlite.store import SqliteFrontier
from crawlspace.policy.evidence import IN_EFFECT, KnownRule, LearningSettings, Lesson, RuleState, is_sure
from crawlspace.policy.learning import Sighting
from crawlspace.ports import Learned
from crawlspace.settings import Settings
from crawlspace.urls import policy_from
from crawlspace.urls.variants import HostRule

Result = TypeVar("Result")
Drive = Callable[[OpenCrawl], Awaitable[tuple[Ending, Result]]]


def goal_of(known: Iterable[KnownRule], now: Sequence[HostRule]) -> list[HostRule]:
    """The rules that should hold: those that do, in their order and without what is unwanted, then new ones."""
    wanted = [each.rule for each in known if each.state in IN_EFFECT]
    kept = [rule for rule in now if rule in wanted]
    return [*kept, *(rule for rule in wanted if rule not in kept)]


# -- a run that applies what it learns ----------------------------------------------------------------------


async def run_learning(place: CrawlDirectory, plan: Plan, drive: Drive[Result]) -> tuple[Ending, Result]:
    """Open the crawl and drive it; while that ends because rules are to be applied, apply them and go on."""
    await take_effect(place, plan)
    remembered: Sequence[Sighting] = ()
    while True:
        async with open_crawl(place, plan) as crawl:
            crawl.rests, crawl.remembered = True, remembered
            ending, result = await drive(crawl)
            remembered = crawl.remembered
        if ending is not Ending.LEARNED:
            return ending, result
        await take_effect(place, plan)


async def take_effect(place: CrawlDirectory, plan: Plan) -> bool:
    """Bring the crawl under the learned rules that should hold; whether that changed something.

    Also goes on with a re-keying to these rules that was cut short.
    """
    if not place.database.exists():
        _require_alone(place, plan)
        return False
    with place.locked():
        frontier = await SqliteFrontier.open(place.database, plan.settings.frontier(), plan.clock)
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
        frontier = await SqliteFrontier.open(place.database, plan.settings.frontier(), plan.clock)
        try:
            await _call_applied(frontier, goal)
        finally:
            await frontier.close()
    return True


async def _goal(frontier: SqliteFrontier, settings: Settings) -> list[HostRule] | None:
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


def _require_alone(place: CrawlDirectory, plan: Plan) -> None:
    if plan.settings.learning.mode == "apply" and (place.shared.exists() or plan.frontier is not None):
        raise UsageError(
            "learned rules cannot be applied to a crawl whose frontier is shared: it cannot be re-keyed",
            hint="learning.mode=suggest shows the same rules: write those you want into the settings of a new crawl",
        )


def _told(now: Sequence[HostRule], goal: Sequence[HostRule]) -> str:
    added = [str(rule) for rule in goal if rule not in now]
    removed = [str(rule) for rule in now if rule not in goal]
    told = [f"{what} {', '.join(rules)}" for what, rules in (("applying", added), ("undoing", removed)) if rules]
    return f"learned rules: {'; '.join(told) or 'going on with a re-keying that was cut short'}"


def _silent(_progress: Progress) -> None:
    """Nobody watches the steps."""
