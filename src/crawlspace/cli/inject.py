"""`crawlspace inject`: add seeds to a crawl, also while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import click
import msgspec

from crawlspace.app.compose import Injected, Plan, open_crawl
from crawlspace.app.control import ask
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.seeds import read_seeds
from crawlspace.cli.options import as_json, directory_argument, echo_json, overrides, run, settings_of
from crawlspace.engine.intake import Request
from crawlspace.errors import CrawlDirInUse, StoreError, UsageError
from crawlspace.observe.printable import printable
from crawlspace.policy.commands import SEEDS_AT_ONCE, Inject, Seed
from crawlspace.settings import Settings, chosen, template


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

    def requests() -> Iterator[Request]:
        return chain(map(Request, urls), read_seeds(seeds) if seeds else ())

    async def main() -> Injected:
        try:
            async with open_crawl(place, Plan(settings)) as crawl:
                return await crawl.inject(requests())
        except CrawlDirInUse:
            if not place.exists:
                raise
            return await _inject_running(place, settings, requests())

    injected = run(main)
    if json_lines:
        refused = [{"input": text, "reason": reason} for text, reason in injected.refused]
        echo_json({"new": injected.new, "known": injected.known, "refused": refused})
        return
    click.echo(f"{injected.new} new, {injected.known} known before, {len(injected.refused)} refused")
    for text, reason in injected.refused:
        click.echo(f"refused ({reason}): {printable(text)}", err=True)


async def _inject_running(place: CrawlDirectory, settings: Settings, requests: Iterator[Request]) -> Injected:
    """Hand the seeds to the running crawl, so many at a time, each time waiting for its answer."""
    done = Injected()
    while batch := list(islice(requests, SEEDS_AT_ONCE)):
        [answer] = await ask(place, settings, [Inject([_seed(request) for request in batch])])
        if not answer.done:
            raise StoreError(
                "the running crawl does not answer", hint="the seeds are written down; it may take them yet"
            )
        part = msgspec.convert(answer.progress.answer, Injected)
        done.new += part.new
        done.known += part.known
        done.refused += part.refused
    return done


def _seed(request: Request) -> Seed:
    return Seed(
        url=request.url,
        label=request.label,
        meta=dict(request.meta),
        method=request.method,
        body=request.body,
        content_type=request.content_type,
    )
