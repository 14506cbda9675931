"""`crawlspace dlq`: the URLs that ended badly, and what a person makes of them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from crawlspace.cli.options import as_json, directory_argument, echo_json, reading, run
from crawlspace.cli.orders import carry_out, tell
from crawlspace.clock import SystemClock
from crawlspace.errors import UsageError
from crawlspace.observe.printable import printable
from crawlspace.observe.words import moment
from crawlspace.policy.commands import Drop, Letter, Requeue, Selection
from crawlspace.ports import Frontier
from crawlspace.types import DeadLetter

BATCH = 500
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Age(click.ParamType[int]):
    """A span of time such as `90s`, `30m`, `12h` or `7d`, as milliseconds."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"(\d{1,9})([smhd])", str(value))
        if found is None:
            self.fail(f"{value!r} is no age such as 90s, 30m, 12h or 7d", param, ctx)
        return int(found.group(1)) * _UNITS[found.group(2)] * 1000


_SELECTING = (
    click.option("--class", "error", help="Only those of this class, such as http_404."),
    click.option("--status", type=click.IntRange(100, 999), help="Only those whose last answer had this status."),
    click.option("--host", help="Only those of this host."),
    click.option("--pattern", help="Only those whose URL fits this pattern (RE2, or a glob behind `glob:`)."),
    click.option("--older", type=Age(), help="Only those that died longer ago than this, such as 12h or 7d."),
    click.option("--newer", type=Age(), help="Only those that died since, such as 30m."),
    click.option("--id", "ids", type=click.IntRange(min=1), multiple=True, help="Only these; may be repeated."),
)


def selecting(command: Decorated) -> Decorated:
    """The options that say which dead letters are meant."""
    for option in reversed(_SELECTING):
        command = option(command)
    return command


def selection_of(options: dict[str, Any]) -> Selection:
    """The selection that the options make; raises `ConfigError` for a pattern that cannot be read."""
    now = SystemClock().now()
    older, newer = options["older"], options["newer"]
    selection = Selection(
        error=options["error"],
        status=options["status"],
        host=options["host"],
        pattern=options["pattern"],
        before=None if older is None else now - older,
        since=None if newer is None else now - newer,
        ids=tuple(options["ids"]),
    )
    selection.patterns()
    return selection


@click.group("dlq")
def command() -> None:
    """The dead letters: URLs that ended badly."""


@command.command("list")
@directory_argument
@selecting
@click.option("--limit", type=click.IntRange(min=1), help="Show this many at most.")
@as_json
def list_command(directory: Path, limit: int | None, json_lines: bool, **options: Any) -> None:
    """List dead letters: number, class, attempts, when, and the URL."""
    selection = selection_of(options)

    async def main() -> int:
        shown = 0
        async with reading(directory) as (frontier, _):
            async for letter in _letters(frontier, selection):
                if limit is not None and shown >= limit:
                    break
                _show(letter, json_lines)
                shown += 1
        return shown

    if run(main) == 0 and not json_lines:
        click.echo("no dead letters" + ("" if selection == Selection() else " of that kind"))


@command.command("show")
@directory_argument
@click.argument("number", type=click.IntRange(min=1))
@as_json
def show_command(directory: Path, number: int, json_lines: bool) -> None:
    """Tell all that is known of one dead letter, by its number."""

    async def main() -> list[DeadLetter]:
        async with reading(directory) as (frontier, _):
            return await frontier.dead(number - 1, 1)

    found = [letter for letter in run(main) if letter.id == number]
    if not found:
        raise UsageError(f"there is no dead letter {number}", hint=f"see `crawlspace dlq list {directory}`")
    facts = _facts(found[0])
    if json_lines:
        echo_json(facts)
        return
    for name, value in facts.items():
        if name != "history" and value not in (None, ""):
            click.echo(f"{name:14}{printable(str(value))}")
    for attempt in facts["history"]:
        click.echo(f"{'tried':14}{attempt['at']}  {printable(attempt['error'])}")


@command.command("requeue")
@directory_argument
@selecting
@click.option("--all", "everything", is_flag=True, help="All of them: needed when nothing else is said.")
@as_json
def requeue_command(directory: Path, everything: bool, json_lines: bool, **options: Any) -> None:
    """Queue dead letters again with all their tries; scope and robots.txt are asked anew."""
    answers = carry_out(directory, Requeue(_chosen(options, everything)))
    tell(["requeue"], answers, json_lines)


@command.command("drop")
@directory_argument
@selecting
@click.option("--all", "everything", is_flag=True, help="All of them: needed when nothing else is said.")
@as_json
def drop_command(directory: Path, everything: bool, json_lines: bool, **options: Any) -> None:
    """Take dead letters off the list for good: they stay known and are not asked for again."""
    answers = carry_out(directory, Drop(_chosen(options, everything)))
    tell(["drop"], answers, json_lines)


def _chosen(options: dict[str, Any], everything: bool) -> Selection:
    selection = selection_of(options)
    if selection == Selection() and not everything:
        raise UsageError(
            "which dead letters? say --class, --status, --host, --pattern, --older, --newer, --id or --all"
        )
    return selection


async def _letters(frontier: Frontier, selection: Selection) -> AsyncIterator[DeadLetter]:
    patterns = selection.patterns()
    after = 0
    while batch := await frontier.dead(after, BATCH):
        for letter in batch:
            facts = Letter(letter.id, letter.error, letter.status, letter.host, letter.url, letter.died_at)
            if selection.takes(facts, patterns):
                yield letter
        after = batch[-1].id


def _show(letter: DeadLetter, json_lines: bool) -> None:
    if json_lines:
        echo_json(_facts(letter))
        return
    tries = f"{letter.attempts:2} tries  {moment(letter.died_at)}"
    click.echo(f"{letter.id:>8}  {letter.error:18} {tries}  {printable(letter.url)}")
    if letter.detail:
        click.echo(f"{'':28} {printable(letter.detail, 200)}")


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
