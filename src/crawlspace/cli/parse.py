"""`crawlspace parse`: a captured page read again from the archive, as the crawl reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.parsing import load_parser
from crawlspace.app.replay import replay
from crawlspace.cli.options import as_json, directory_argument, echo_json, reading, run, settings_used
from crawlspace.errors import CrawlspaceError, UsageError
from crawlspace.exchange import FetchResult
from crawlspace.observe.printable import printable, printable_json
from crawlspace.pages.links import Page, read_page
from crawlspace.parsers import Document, Way
from crawlspace.policy.scope import Scope
from crawlspace.settings import Settings
from crawlspace.types import Link, Reason, Story, Unusable
from crawlspace.urls import Identity


class _Read(Struct, frozen=True):
    url: str
    page: Page
    identity: Identity
    scope: Scope
    depth: int
    barred: bool
    """The page asks that none of its links be followed, and is obeyed."""


class _Captured(Struct, frozen=True):
    story: Story
    result: FetchResult


@click.command("parse")
@directory_argument
@click.argument("url")
@click.option("--parser", "name", help="Show the records of this parser instead, as `reparse` names it.")
@as_json
def command(directory: Path, url: str, name: str | None, json_lines: bool) -> None:
    """Show what the crawl reads in a captured page: title, declared canonical, links and their verdicts."""
    place = CrawlDirectory(directory)
    settings = settings_used(place)
    if name is not None:
        _show_records(place, url, name, settings)
        return
    read = run(lambda: _read(place, url, settings))
    links = [_link(link, read) for link in read.page.links]
    facts: dict[str, Any] = {
        "url": read.url,
        "title": read.page.title,
        "charset": read.page.charset,
        "canonical": read.page.canonical,
        "noindex": read.page.noindex,
        "nofollow": read.page.nofollow,
        "noai": read.page.noai,
        "noimageai": read.page.noimageai,
        "tdm_reserved": read.page.mining.reserved,
        "tdm_policy": read.page.mining.policy,
    }
    if json_lines:
        echo_json({**facts, "links": links})
        return
    for name, value in facts.items():
        if value not in (None, "", False):
            click.echo(f"{name:12} {printable(str(value))}")
    for link in links:
        click.echo(f"{link['verdict']:14} {link['relation']:10} {printable(link.get('canonical') or link['text'])}")


def _show_records(place: CrawlDirectory, url: str, name: str, settings: Settings) -> None:
    """What a parser makes of a capture, one record a line; nothing is written."""
    parser = load_parser(name, place.path)
    found = run(lambda: _captured(place, url, settings))
    way = Way(found.story.label, found.story.meta, found.story.depth)
    parsed = parser.run(Document(found.result, way, settings.discovery))
    if parsed is None:
        raise UsageError(f"{name} is not for this page", hint="its match rule does not fit")
    if parsed.error is not None:
        raise CrawlspaceError(f"{name} failed: {parsed.error}")
    for record in parsed.records:
        click.echo(printable_json(record.data))


async def _captured(place: CrawlDirectory, url: str, settings: Settings) -> _Captured:
    async with reading(place.path, settings) as (frontier, identity):
        address = identity.identify(url)
        found = [None] if isinstance(address, Unusable) else await frontier.find([address.key])
    story = found[0]
    if story is None or story.evidence is None or story.evidence.pointer is None:
        raise UsageError(f"there is no capture of {printable(url)}", hint=f"see: crawlspace explain {place.path} URL")
    return _Captured(story, replay(place, story.evidence.pointer, settings))


async def _read(place: CrawlDirectory, url: str, settings: Settings) -> _Read:
    async with reading(place.path, settings) as (frontier, identity):
        address = identity.identify(url)
        if isinstance(address, Unusable):
            raise UsageError(f"{printable(url)!r} is no URL that can be crawled ({address.reason})")
        (story,) = await frontier.find([address.key])
        scope = Scope.restore(settings.scope, (await frontier.notes()).get("scope"))
    if story is None or story.evidence is None or story.evidence.pointer is None:
        raise UsageError(f"there is no capture of {printable(url)}", hint=f"see: crawlspace explain {place.path} URL")
    result = replay(place, story.evidence.pointer, settings)
    page = read_page(result.body, result.url, result.headers, settings.discovery)
    return _Read(story.url, page, identity, scope, story.depth, page.nofollow and settings.robots.meta)


def _link(link: Link, read: _Read) -> dict[str, Any]:
    address = read.identity.identify(link.url, read.page.base_url, encoding=read.page.charset)
    facts: dict[str, Any] = {"text": link.url, "relation": str(link.relation)}
    if isinstance(address, Unusable):
        return {**facts, "verdict": address.reason}
    refusal = read.scope.judge(
        address, depth=read.depth + 1, hops=0, relation=link.relation, nofollow=link.nofollow or read.page.nofollow
    )
    if refusal is None and read.barred:
        refusal = Reason.NOFOLLOW
    return {**facts, "canonical": address.canonical, "verdict": str(refusal) if refusal else "followed"}
