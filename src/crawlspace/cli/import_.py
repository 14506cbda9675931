"""`crawlspace import`: what others have crawled becomes known, so that a crawl goes on from there."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import click

from crawlspace.app.compose import Plan
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.importing.imported import Imported
from crawlspace.app.importing.kinds import Kind
from crawlspace.app.importing.lists import Fields
from crawlspace.app.importing.run import Ways, import_sources
from crawlspace.cli.options import (
    as_json,
    directory_argument,
    echo_json,
    overrides,
    run,
    settings_of,
    tell_damages,
    tell_warnings,
)
from crawlspace.errors import StoreDamaged, UsageError
from crawlspace.observe.printable import printable
from crawlspace.pages.timestamps import read_time
from crawlspace.settings import chosen, template

TOLD_EVERY = 5.0
"""Seconds between two lines about how far an import is."""


@click.command("import")
@directory_argument
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SOURCE...")
@click.option("--as", "kind", type=click.Choice([each.value for each in Kind]), help="What each SOURCE is.")
@click.option(
    "--seed", "seeds", multiple=True, metavar="URL", help="Draw the scope around it first; may be repeated."
)
@click.option("--since", metavar="DATE", help="Fetch again what was visited before.")
@click.option("--link", "links", is_flag=True, help="Link archive files into the crawl instead of copying them.")
@click.option("--url-field", default="url", show_default=True, help="Where items of a feed have their URL.")
@click.option("--date-field", help="Where they have the date of the visit; default: date, timestamp and the like.")
@as_json
@overrides
def command(
    directory: Path,
    sources: Sequence[Path],
    kind: str | None,
    seeds: Sequence[str],
    since: str | None,
    links: bool,
    url_field: str,
    date_field: str | None,
    json_lines: bool,
    overrides: Sequence[str],
) -> None:
    """Make known what SOURCE holds: WARC or ARC files, CDXJ, a Scrapy job, a feed (.jsonl, .json, .csv) or a list.

    Captures become the crawl's own, and their links are queued as if the pages had just been read. URLs that were
    visited and have no capture are not fetched again either. A folder is searched for archive files and indexes.
    """
    place = CrawlDirectory(directory)
    settings = settings_of(place, None, overrides)
    ways = Ways(
        kind=None if kind is None else Kind(kind),
        fields=Fields(url_field, date_field),
        since=_time(since),
        links=links,
        widen=seeds,
    )
    place.create()
    place.write_config(template(chosen(overrides)))
    done = Imported()

    async def work() -> None:
        async with _progress(done):
            await import_sources(place, Plan(settings, watch=tell_warnings), sources, ways, done)

    try:
        run(work)
    except KeyboardInterrupt:
        _tell(done, json_lines=json_lines)
        click.echo("interrupted; the same command goes on", err=True)
        sys.exit(3)
    _tell(done, json_lines=json_lines)
    if done.damaged:
        sys.exit(StoreDamaged.exit_code)


def _time(text: str | None) -> int | None:
    at = None if text is None else read_time(text)
    if text is not None and at is None:
        raise UsageError(f"{text!r} is no date", hint="write it like 2026-01-31")
    return at


@asynccontextmanager
async def _progress(done: Imported) -> AsyncIterator[None]:
    """Tell people now and then how far it is."""

    async def tell() -> None:
        while True:
            await asyncio.sleep(TOLD_EVERY)
            click.echo(
                f"{done.captures} captures, {done.visited} visited, {done.queued} to be fetched so far", err=True
            )

    telling = asyncio.create_task(tell())
    try:
        yield
    finally:
        telling.cancel()


def _tell(done: Imported, *, json_lines: bool) -> None:
    if json_lines:
        facts = {
            "captures": done.captures,
            "visited": done.visited,
            "queued": done.queued,
            "known": done.known,
            "passed": dict(done.passed),
            "damaged": done.damaged,
            "damages": done.damages,
        }
        echo_json(facts)
        return
    click.echo(
        f"{done.captures} captures, {done.visited} visited without one, {done.queued} to be fetched, "
        f"{done.known} known before"
    )
    for reason, n in done.passed.most_common():
        click.echo(f"passed over {n}: {printable(reason)}", err=True)
    tell_damages(done.damages, done.damaged)
