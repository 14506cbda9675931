"""`crawlspace stats`: a crawl in numbers, read from totals that are kept, never from scans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crawlspace.cli.options import as_json, directory_argument, echo_json, reading, run
from crawlspace.observe.words import size
from crawlspace.states import UrlState
from crawlspace.types import Counts, GenerationFigures


@click.command("stats")
@directory_argument
@as_json
def command(directory: Path, json_lines: bool) -> None:
    """Totals of a crawl, running or not."""

    async def main() -> tuple[Counts, list[GenerationFigures]]:
        async with reading(directory) as (frontier, _):
            return await frontier.counts(), await frontier.generations()

    counts, generations = run(main)
    facts = {**figures(counts), "generations": list(map(_generation, generations))}
    if json_lines:
        echo_json(facts)
        return
    for name, value in facts["states"].items():
        click.echo(f"{name:12}{value:>12}")
    click.echo(f"{'known':12}{facts['known']:>12}")
    for name in ("pages", "fetches", "duplicates", "hosts"):
        click.echo(f"{name:12}{facts[name]:>12}")
    click.echo(f"{'bytes':12}{size(facts['bytes']):>12}")
    if facts["refused_beyond_cap"]:
        click.echo(
            f"{facts['refused_beyond_cap']} more refusals were counted only: their host had too many of the kind"
        )
    if len(generations) > 1:
        for each in facts["generations"]:
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
