"""`crawlspace stats`: a crawl in numbers, read from totals that are kept, never from scans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crawlspace.cli.options import as_json, directory_argument, echo_json, reading, run
from crawlspace.observe.words import size
from crawlspace.states import UrlState
from crawlspace.types import Counts


@click.command("stats")
@directory_argument
@as_json
def command(directory: Path, json_lines: bool) -> None:
    """Totals of a crawl, running or not."""

    async def main() -> Counts:
        async with reading(directory) as (frontier, _):
            return await frontier.counts()

    facts = figures(run(main))
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
