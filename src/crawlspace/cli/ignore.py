"""`crawlspace ignore`: refuse what fits a pattern, and clean the queue of it, also while the crawl runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from crawlspace.cli.options import as_json, directory_argument, echo_json, reading, run
from crawlspace.cli.orders import carry_out, tell
from crawlspace.engine.control import read_ignored
from crawlspace.observe.printable import printable
from crawlspace.policy.commands import Heed, Ignore
from crawlspace.policy.patterns import Patterns


@click.command("ignore")
@directory_argument
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@click.option("--remove", is_flag=True, help="Ignore these no longer, and queue what only they had refused.")
@as_json
def command(directory: Path, patterns: Sequence[str], remove: bool, json_lines: bool) -> None:
    """Skip URLs that fit a PATTERN (RE2, or a glob behind `glob:`); without one, list what is ignored."""
    if not patterns:
        _list(directory, json_lines)
        return
    if remove:
        tell(
            [f"ignored no longer: {each}" for each in patterns],
            carry_out(directory, *map(Heed, patterns)),
            json_lines,
        )
        return
    Patterns.of(patterns, "ignore")
    tell([f"ignored: {each}" for each in patterns], carry_out(directory, *map(Ignore, patterns)), json_lines)


def _list(directory: Path, json_lines: bool) -> None:
    async def main() -> tuple[str, ...]:
        async with reading(directory) as (frontier, _):
            return read_ignored(await frontier.notes())

    for pattern in run(main):
        if json_lines:
            echo_json({"pattern": pattern})
        else:
            click.echo(printable(pattern))
