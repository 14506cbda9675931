"""Asking a crawl to change something, whether it runs or not.

A command is written down first. When nobody owns the crawl's directory we take it for a moment and carry the
command out ourselves; otherwise its owner does, within a second, and we wait for the answer. Whoever ends between
the two loses nothing: the next to own the directory finds the command.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from crawlspace.app.compose import Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.store import Store, open_beside, open_store
from crawlspace.clock import Clock, SystemClock
from crawlspace.engine.control import Progress, read_progress
from crawlspace.errors import CrawlDirInUse, UsageError
from crawlspace.policy.commands import Asked, Command, encode
from crawlspace.settings import Settings

LOOK_SECONDS = 0.1
PATIENCE_SECONDS = 60.0
"""Without progress for so long, nobody waits any more: the command stays and is carried out later."""


class Answer(Struct, frozen=True):
    """What became of a command."""

    progress: Progress
    done: bool
    """False when it is written down, and not carried out yet."""


async def ask(
    directory: CrawlDirectory, settings: Settings, commands: Sequence[Command], clock: Clock | None = None
) -> list[Answer]:
    """Have commands carried out; raises `UsageError` for one that was refused, `CrawlDirError` without a crawl."""
    directory.require()
    clock = clock or SystemClock()
    await _bring_up_to_date(directory, settings, clock)
    frontier = await open_beside(directory, settings.frontier(), clock)
    try:
        numbers = await frontier.ask([encode(command) for command in commands])
        return [_answer(asked) for asked in await _answers(frontier, numbers, directory, (settings, clock))]
    finally:
        await frontier.close()


async def _bring_up_to_date(directory: CrawlDirectory, settings: Settings, clock: Clock) -> None:
    """A store of an older format is brought up to date by its owner only: us, when there is no other."""
    try:
        with directory.locked():
            await (await open_store(directory, settings.frontier(), clock)).store.close()
    except CrawlDirInUse:
        return


async def _answers(
    frontier: Store, numbers: list[int], directory: CrawlDirectory, ways: tuple[Settings, Clock]
) -> list[Asked]:
    settings, clock = ways
    latest: list[Asked | None] = []
    patience = clock.monotonic() + PATIENCE_SECONDS
    while True:
        asked = await frontier.answers(numbers)
        if asked != latest:
            latest, patience = asked, clock.monotonic() + PATIENCE_SECONDS
        if all(each is not None and each.done for each in asked) or clock.monotonic() > patience:
            return [each for each in asked if each is not None]
        try:
            async with open_crawl(directory, Plan(settings, clock=clock)) as crawl:
                await crawl.controller().finish()
        except CrawlDirInUse:
            await clock.sleep(LOOK_SECONDS)


def _answer(asked: Asked) -> Answer:
    progress = read_progress(asked)
    if progress.error is not None:
        raise UsageError(progress.error)
    return Answer(progress, asked.done)
