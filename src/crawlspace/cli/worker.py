"""`crawlspace worker`: take part in a crawl whose frontier is shared, with an archive of one's own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from crawlspace.app.compose import SETTINGS, Plan
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.store import facts_at
from crawlspace.cli.crawl import run_crawl
from crawlspace.cli.options import config_file, directory_argument, overrides, run, settings_of
from crawlspace.clock import SystemClock
from crawlspace.errors import UsageError


@click.command("worker")
@directory_argument
@click.option("--frontier", metavar="URL", help="Where the frontier lies; needed at the first start only.")
@click.option("--quiet", "-q", is_flag=True, help="No progress, only what goes wrong.")
@config_file
@overrides
def command(
    directory: Path, frontier: str | None, quiet: bool, config: Path | None, overrides: Sequence[str]
) -> None:
    """Work on a crawl that was started with `crawl --frontier`, until nothing is left.

    DIRECTORY is this worker's own: its captures lie there. The crawl's settings are copied there at the first start.
    """
    place = CrawlDirectory(directory)
    if frontier is not None:
        place.create()
        place.write_config(_settings_at(frontier))
    elif not place.shared.exists():
        raise UsageError(f"{directory} has no shared frontier", hint="name it: --frontier postgresql://...")
    plan = Plan(settings_of(place, config, overrides), frontier=frontier, joins=True)
    sys.exit(run_crawl(place, plan, (), quiet=quiet))


def _settings_at(address: str) -> str:
    """The settings of the crawl, as a file; raises `UsageError` when no crawl was started there."""
    facts = run(lambda: facts_at(address, SystemClock()))
    if SETTINGS not in facts:
        raise UsageError("no crawl was started there yet", hint="start one with: crawlspace crawl URL --frontier ...")
    return "# The settings of the crawl when this worker first came to it.\n\n" + facts[SETTINGS]
