"""`crawlspace crawl`: start a crawl, or go on with one. Nothing is ever purged."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import click

from crawlspace.app.compose import Injected, OpenCrawl, Plan
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.fleet import Fleet, driven
from crawlspace.app.learn import run_learning
from crawlspace.app.seeds import read_seeds
from crawlspace.cli.leaving import ENDING, undisturbed
from crawlspace.cli.options import config_file, overrides, run, settings_of, unread
from crawlspace.cli.progress import Display
from crawlspace.engine.crawl import Crawl
from crawlspace.engine.intake import Request
from crawlspace.errors import UsageError
from crawlspace.events import Ending
from crawlspace.observe.counters import Counters
from crawlspace.observe.printable import printable
from crawlspace.observe.words import moment, size
from crawlspace.policy.evidence import RuleState
from crawlspace.settings import Settings, chosen, template
from crawlspace.states import UrlState
from crawlspace.types import Counts, Unusable
from crawlspace.urls import Identity, host_name, policy_from

EXIT = {Ending.FINISHED: 0, Ending.INTERRUPTED: 3, Ending.BUDGET: 4, Ending.DISK_FULL: 5}
FAILED = 6
"""Finished, with more dead letters than were allowed, or with nothing else."""
TOLD_REFUSALS = 10
ARCHIVE = ("discovery.requisites=true", "discovery.css=true")
"""What an archive needs so that its pages can be shown again."""

ENDINGS = {
    Ending.FINISHED: "Finished: nothing is left to fetch.",
    Ending.INTERRUPTED: "Interrupted; the same command goes on.",
    Ending.BUDGET: "Stopped by a budget or limit; raise it and the same command goes on.",
    Ending.DISK_FULL: "Stopped while the disk was full; free space and the same command goes on.",
}


@click.command("crawl")
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option("--dir", "directory", type=click.Path(path_type=Path, file_okay=False), help="Crawl directory.")
@click.option("--seeds", metavar="FILE", help="Also start from the URLs in FILE ('-': standard input).")
@click.option("--list", "listed", metavar="FILE", help="Fetch the URLs in FILE and follow no link.")
@click.option(
    "--frontier",
    metavar="URL",
    help="Share the frontier in a PostgreSQL schema with workers: postgresql://user@host/database?schema=name.",
)
@click.option("--workers", type=click.IntRange(1, 256), help="Processes that crawl together on this machine.")
@click.option("--archive", is_flag=True, help="Fetch pictures, style sheets and scripts of the pages too.")
@click.option("--recrawl", is_flag=True, help="Visit pages again that are due.")
@click.option("--quiet", "-q", is_flag=True, help="No progress, only what goes wrong.")
@config_file
@overrides
def command(
    urls: Sequence[str],
    directory: Path | None,
    seeds: str | None,
    listed: str | None,
    frontier: str | None,
    workers: int | None,
    archive: bool,
    recrawl: bool,
    quiet: bool,
    config: Path | None,
    overrides: Sequence[str],
) -> None:
    """Crawl from the given URLs, or go on with the crawl in --dir."""
    if archive:
        overrides = (*ARCHIVE, *overrides)
    if recrawl:
        overrides = (*overrides, "recrawl.on=true")
    if workers is not None:
        overrides = (*overrides, f"concurrency.workers={workers}")
    place = CrawlDirectory(directory or _default_directory(urls))
    settings = settings_of(place, config, overrides)
    if not (urls or seeds or listed or place.exists):
        raise UsageError("no seed: a new crawl needs a URL, --seeds FILE or --list FILE")
    place.create()
    place.write_config(template(chosen(overrides)))
    if listed and (urls or seeds):
        raise UsageError("--list follows no link, seeds are there to be followed: give one or the other")
    follow = False if listed else (True if urls or seeds else None)
    requests = chain(map(Request, urls), _read(seeds), _read(listed))
    sys.exit(run_crawl(place, Plan(settings, follow=follow, frontier=frontier), requests, quiet=quiet))


def run_crawl(place: CrawlDirectory, plan: Plan, requests: Iterable[Request], *, quiet: bool = False) -> int:
    """Crawl with progress on the terminal; the exit code."""
    counters = Counters(time.monotonic)
    display = Display.choose(counters, quiet=quiet)

    def watch(event: object) -> None:
        line = counters.see(event)  # type: ignore[arg-type] # the engine sends events only
        if line is not None:
            display.tell(line)

    plan.watch = watch

    signals = _Signals(display)

    proposed = 0
    next_visit: int | None = None

    async def drive(crawl: OpenCrawl) -> tuple[Ending, Counts]:
        nonlocal proposed, next_visit
        _tell_refused(await crawl.inject(requests), display)
        await crawl.require_work()
        async with driven(crawl) as engine, display.showing(crawl.frontier.counts):
            signals.end(engine)
            ending = await engine.run()
        proposed = sum(known.state is RuleState.PROPOSED for known in await crawl.frontier.learned())
        next_visit = await crawl.frontier.next_visit() if plan.settings.recrawl.on else None
        return ending, await crawl.frontier.counts()

    ending, counts = run(lambda: run_learning(place, plan, drive))
    undisturbed()
    if not quiet:
        with unread():
            _close(place, ending, counts)
            if proposed:
                learned = f"crawlspace rules learned {place.path}"
                click.echo(f"Rules of which URLs are one: {proposed} proposed, see {learned}")
            if next_visit is not None:
                click.echo(f"The first page is due for another visit at {moment(next_visit)}")
    if ending is Ending.FINISHED and _failed(counts, plan.settings.budget.dead_letters):
        return FAILED
    return EXIT[ending]


def _failed(counts: Counts, limit: int | None) -> bool:
    """Whether too much of a finished crawl is dead: more than the limit, or something and no page came."""
    dead, pages = counts.states[UrlState.DEAD], counts.states[UrlState.DONE] + counts.states[UrlState.STORED]
    return dead > 0 and (pages == 0 or (limit is not None and dead > limit))


def _read(file: str | None) -> Iterator[Request]:
    return read_seeds(file) if file is not None else iter(())


def _default_directory(urls: Sequence[str]) -> Path:
    """A directory named after the first seed's host, so that two crawls never share one by accident."""
    if not urls:
        raise UsageError("which crawl? give a URL to start one, or --dir to go on with one")
    address = Identity(policy_from(Settings().identity)).identify(urls[0])
    if isinstance(address, Unusable):
        raise UsageError(
            f"{urls[0]!r} is no URL that can be crawled ({address.reason})", hint="such as https://example.com/"
        )
    return Path(
        "crawl-" + "".join(sign if sign.isalnum() or sign in ".-" else "-" for sign in host_name(address.host))
    )


def _tell_refused(injected: Injected, display: Display) -> None:
    for text, reason in injected.refused[:TOLD_REFUSALS]:
        display.tell(f"seed refused ({reason}): {printable(text, 200)}")
    more = len(injected.refused) - TOLD_REFUSALS
    if more > 0:
        display.tell(f"and {more} more seeds refused")


class _Signals:
    """The first signal ends cleanly, the second at once: whatever is lost then is fetched again."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._asked = False
        self._engine: Crawl | Fleet | None = None

    def end(self, engine: Crawl | Fleet) -> None:
        """End this engine from now on; at once, if that was asked for while the crawl rested."""
        self._engine = engine
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, self._stop)
        if self._asked:
            engine.stop()

    def _stop(self) -> None:
        if self._asked:
            os._exit(EXIT[Ending.INTERRUPTED])
        self._asked = True
        self._display.tell("stopping: requests under way are finished and stored (again to stop at once)")
        if self._engine is not None:
            self._engine.stop()


def _close(place: CrawlDirectory, ending: Ending, counts: Counts) -> None:
    states = counts.states
    click.echo(ENDINGS[ending])
    if ending is Ending.FINISHED and _failed(counts, None):
        click.echo(
            f"Not one page came: see crawlspace dlq list {place.path}\n"
            f"Once the reason is gone, crawlspace dlq requeue {place.path} --all and the same command try again."
        )
    click.echo(
        f"{counts.known} URLs known: {states[UrlState.DONE]} done, {states[UrlState.REDIRECTED]} redirected, "
        f"{states[UrlState.SKIPPED]} skipped, {states[UrlState.DEAD]} dead, {states[UrlState.QUEUED]} queued"
        + (f", {states[UrlState.STORED]} stored but not read" if states[UrlState.STORED] else "")
    )
    click.echo(
        f"{counts.fetches} requests on {counts.hosts} hosts, {size(counts.bytes)}, {counts.duplicates} duplicates"
    )
    click.echo(f"Captures: {place.archive}")
