"""The plan of next visits: made for URLs that ended while none was wanted, and made anew under other settings."""

from __future__ import annotations

from crawlspace import events
from crawlspace.app.store import Store
from crawlspace.policy.recrawl import RecrawlSettings, plan

PLANNED = "visits_planned"
"""The fact that says under which settings all URLs that have ended well have their next visit."""

BATCH = 2000


async def plan_visits(frontier: Store, settings: RecrawlSettings, watch: events.Watcher) -> None:
    """Give every URL that has ended well its next visit, unless all have one already.

    What ends while visits are planned is given its own when it ends. A crawl that went on without planning visits
    is looked through again, in bounded steps that may be repeated.
    """
    by = plan(settings)
    wanted = f"{by.first} {by.shortest} {by.longest}" if settings.on else ""
    if (await frontier.notes()).get(PLANNED, "") == wanted:
        return
    if settings.on:
        planned, after = 0, 0
        while (reached := await frontier.plan_visits(after, BATCH, by)) is not None:
            planned, after = planned + BATCH, reached
        if planned > BATCH:
            watch(events.Warned("next visits were planned for all pages of before"))
    await frontier.note({PLANNED: wanted})
