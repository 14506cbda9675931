"""`crawlspace stats`: a crawl in numbers, read from totals that are kept, never from scans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from crawlspace.app import rendering
from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli.brought import hour_facts, part, rule_in_words, shape_facts, suspect_in_words, suspects
from crawlspace.cli.options import as_json, directory_argument, echo_json, reading, run, settings_used
from crawlspace.cli.routes import route_facts, routes_in_words
from crawlspace.errors import UsageError
from crawlspace.observe.printable import printable
from crawlspace.observe.words import size
from crawlspace.states import UrlState
from crawlspace.types import Counts, GenerationFigures, Unusable, host_id
from crawlspace.urls import Identity

SHAPES = 50
"""Shapes that are told: those with the longest runs of pages without anything new first, then the largest."""


class _Asked(Struct, frozen=True):
    """What is to be told beside the totals."""

    directory: Path
    host: str | None
    hours: bool
    shapes: bool


@click.command("stats")
@directory_argument
@click.option("--host", metavar="NAME", help="With --hours or --shapes: of this host alone.")
@click.option("--hours", is_flag=True, help="Also what the pages of each hour brought.")
@click.option("--shapes", is_flag=True, help="Also what the pages of each shape of address brought.")
@as_json
def command(directory: Path, host: str | None, hours: bool, shapes: bool, json_lines: bool) -> None:
    """Totals of a crawl, running or not."""
    facts = run(lambda: _facts(_Asked(directory, host, hours, shapes)))
    if json_lines:
        echo_json(facts)
        return
    _show_totals(facts)
    _show_rendering(facts["rendering"])
    _show_generations(facts["generations"])
    for line in routes_in_words(facts["routes"]):
        click.echo(printable(line))
    for suspect in facts["suspects"]:
        click.echo(printable(suspect_in_words(suspect)))
        click.echo(printable(rule_in_words(suspect)))
    _table(facts.get("hours", ()), "hour")
    _table(facts.get("shapes", ()), "shape")


async def _facts(asked: _Asked) -> dict[str, Any]:
    settings = settings_used(CrawlDirectory(asked.directory))
    async with reading(asked.directory, settings) as (frontier, identity):
        totals = await frontier.content_totals()
        counts = await frontier.counts()
        facts = {
            **figures(counts),
            "same_text": totals["exact"],
            "near_duplicates": totals["near"],
            "links_not_followed": totals["stopped"],
            "links": totals["links"],
            "known_links": totals["known"],
            "rates": {
                "known_links": part(totals["known"], totals["links"]),
                "same_bytes": part(counts.duplicates, counts.pages),
                "same_text": part(totals["exact"], counts.pages),
                "near_duplicates": part(totals["near"], counts.pages),
            },
            "routes": route_facts(settings, await frontier.route_figures(), counts),
            "generations": list(map(_generation, await frontier.generations())),
            "suspects": await suspects(frontier, settings.traps),
            "rendering": rendering.figures(await frontier.notes()),
        }
        hid = None if asked.host is None else _host(identity, asked.host)
        if asked.hours:
            facts["hours"] = list(map(hour_facts, await frontier.yields(hid)))
        if asked.shapes:
            facts["shapes"] = list(map(shape_facts, await frontier.shapes(hid, 0, SHAPES)))
    return facts


def _host(identity: Identity, name: str) -> int:
    address = identity.identify(f"http://{name}/")
    if isinstance(address, Unusable):
        raise UsageError(f"{printable(name)!r} is no name of a host", hint="hosts are told by: crawlspace hosts DIR")
    return host_id(address.key)


def _table(rows: Sequence[dict[str, Any]], name: str) -> None:
    """What pages brought, a line for each hour or shape."""
    if rows:
        click.echo(f"{'pages':>8} {'new':>8} {'same text':>10} {'near':>8} {'known links':>12}  {name}")
    for row in rows:
        told = f"{row['pages']:8} {row['new']:8} {row['same_text']:10} {row['near_duplicates']:8} {_known(row):>12}  "
        click.echo(told + printable(f"{row.get('host', '')}{row[name]}"))


def _known(row: dict[str, Any]) -> str:
    return "" if row.get("known_link_rate") is None else f"{row['known_link_rate']:.1%}"


def _show_totals(facts: dict[str, Any]) -> None:
    for name, value in facts["states"].items():
        click.echo(f"{name:12}{value:>12}")
    click.echo(f"{'known':12}{facts['known']:>12}")
    for name in ("pages", "fetches", "duplicates", "hosts"):
        click.echo(f"{name:12}{facts[name]:>12}")
    for name in ("same_text", "near_duplicates", "links_not_followed"):
        if facts[name]:
            click.echo(f"{name.replace('_', ' '):18}{facts[name]:>6}")
    if facts["links"]:
        click.echo(f"{'links':12}{facts['links']:>12}, {facts['rates']['known_links']:.1%} of them known already")
    click.echo(f"{'bytes':12}{size(facts['bytes']):>12}")
    if facts["refused_beyond_cap"]:
        click.echo(
            f"{facts['refused_beyond_cap']} more refusals were counted only: their host had too many of the kind"
        )


def _show_rendering(done: dict[str, int] | None) -> None:
    if done is not None:
        failed = f", {done['failed']} failed" if done["failed"] else ""
        beside = f"{done['requests']} requests and {size(done['bytes'])} for that"
        click.echo(f"{'rendered':12}{done['pages']:>12}{failed}; {beside}")


def _show_generations(generations: Sequence[dict[str, int]]) -> None:
    if len(generations) > 1:
        for each in generations:
            told = ", ".join(f"{n} {name}" for name, n in each.items() if n and name != "generation")
            click.echo(f"generation {each['generation']}: {told}")


def _generation(one: GenerationFigures) -> dict[str, int]:
    ended = {state.name.lower(): n for state, n in one.ended.items()}
    own = {"generation": one.generation, "begun": one.begun, "waiting": one.waiting}
    return {**own, **ended, "changed": one.changed, "unchanged": one.unchanged}


def figures(counts: Counts) -> dict[str, Any]:
    """Totals under the names that scripts rely on."""
    return {
        "known": counts.known,
        "states": {state.name.lower(): counts.states.get(state, 0) for state in UrlState},
        "pages": counts.pages,
        "fetches": counts.fetches,
        "bytes": counts.bytes,
        "duplicates": counts.duplicates,
        "hosts": counts.hosts,
        "refused_beyond_cap": counts.refused_beyond_cap,
    }
