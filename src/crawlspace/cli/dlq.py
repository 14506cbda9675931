"""`crawlspace dlq`: the URLs that ended badly."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click

from crawlspace.cli.options import as_json, directory_argument, echo_json, reading, run
from crawlspace.observe.printable import printable
from crawlspace.observe.words import moment
from crawlspace.ports import Frontier
from crawlspace.types import DeadLetter

BATCH = 500


@click.group("dlq")
def command() -> None:
    """The dead letters: URLs that ended badly."""


@command.command("list")
@directory_argument
@click.option("--class", "error", help="Only those of this class, such as http_404.")
@click.option("--host", help="Only those of this host.")
@click.option("--limit", type=click.IntRange(min=1), help="Show this many at most.")
@as_json
def list_command(directory: Path, error: str | None, host: str | None, limit: int | None, json_lines: bool) -> None:
    """List dead letters: class, attempts, when, and the URL."""

    async def main() -> int:
        shown = 0
        async with reading(directory) as (frontier, _):
            async for letter in _letters(frontier, error, host):
                if limit is not None and shown >= limit:
                    break
                _show(letter, json_lines)
                shown += 1
        return shown

    if run(main) == 0 and not json_lines:
        click.echo("no dead letters" + (" of that kind" if error or host else ""))


async def _letters(frontier: Frontier, error: str | None, host: str | None) -> AsyncIterator[DeadLetter]:
    after = 0
    while batch := await frontier.dead(after, BATCH):
        for letter in batch:
            if error in (None, letter.error) and host in (None, letter.host):
                yield letter
        after = batch[-1].id


def _show(letter: DeadLetter, json_lines: bool) -> None:
    if json_lines:
        echo_json(_facts(letter))
        return
    click.echo(f"{letter.error:18} {letter.attempts:2} tries  {moment(letter.died_at)}  {printable(letter.url)}")
    if letter.detail:
        click.echo(f"{'':18} {printable(letter.detail, 200)}")


def _facts(letter: DeadLetter) -> dict[str, Any]:
    return {
        "id": letter.id,
        "url": letter.url,
        "host": letter.host,
        "class": letter.error,
        "status": letter.status,
        "detail": letter.detail,
        "attempts": letter.attempts,
        "depth": letter.depth,
        "parent": letter.parent,
        "found_at": moment(letter.found_at),
        "died_at": moment(letter.died_at),
        "history": [{"at": moment(each.at), "error": each.error, "status": each.status} for each in letter.history],
    }
