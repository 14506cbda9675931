"""`crawlspace inject`: add seeds to a crawl that is not running."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import click

from crawlspace.app.compose import Injected, Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.seeds import read_seeds
from crawlspace.cli.options import as_json, directory_argument, echo_json, overrides, run, settings_of
from crawlspace.engine.intake import Request
from crawlspace.errors import UsageError
from crawlspace.observe.printable import printable
from crawlspace.settings import chosen, template


@click.command("inject")
@directory_argument
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option("--seeds", metavar="FILE", help="Take the URLs in FILE ('-': standard input).")
@as_json
@overrides
def command(
    directory: Path, urls: Sequence[str], seeds: str | None, json_lines: bool, overrides: Sequence[str]
) -> None:
    """Add seeds; known ones change nothing."""
    if not urls and seeds is None:
        raise UsageError("no seed: give URLs or --seeds FILE")
    place = CrawlDirectory(directory)
    settings = settings_of(place, None, overrides)
    place.create()
    place.write_config(template(chosen(overrides)))

    async def main() -> Injected:
        async with open_crawl(place, Plan(settings)) as crawl:
            return await crawl.inject(chain(map(Request, urls), read_seeds(seeds) if seeds else ()))

    injected = run(main)
    if json_lines:
        refused = [{"input": text, "reason": reason} for text, reason in injected.refused]
        echo_json({"new": injected.new, "known": injected.known, "refused": refused})
        return
    click.echo(f"{injected.new} new, {injected.known} known before, {len(injected.refused)} refused")
    for text, reason in injected.refused:
        click.echo(f"refused ({reason}): {printable(text)}", err=True)
