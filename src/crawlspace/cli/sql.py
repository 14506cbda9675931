"""`crawlspace sql`: questions to a crawl in SQL, or by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.output import STANDARD, output
from crawlspace.app.snapshot import reach_of
from crawlspace.app.sql import Answer, ask, named, plain, question
from crawlspace.cli.options import also_option, as_json, reading, run, settings_used
from crawlspace.errors import UsageError
from crawlspace.exports.tables import Form, table
from crawlspace.observe.printable import printable, printable_json

CELL = 60
"""Characters of a cell that are shown on a terminal."""
SHOWN = 1000
"""Rows that are shown on a terminal; -o and --json give all."""


@click.command("sql")
@click.argument("directory", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.argument("query", required=False)
@click.option("--query", "name", metavar="NAME", help="Ask the question of this name.")
@click.option("--list", "wants_list", is_flag=True, help="Tell the questions that have names.")
@click.option(
    "-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="For $NAME in the question."
)
@click.option("-o", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write .csv or .jsonl there.")
@click.option("--force", is_flag=True, help="Write over FILE.")
@click.option(
    "--memory", default="1GB", show_default=True, help="What the answer may take; the rest goes to the disk."
)
@also_option
@as_json
def command(
    directory: Path | None,
    query: str | None,
    name: str | None,
    wants_list: bool,
    parameters: tuple[str, ...],
    target: Path | None,
    force: bool,
    memory: str,
    also: tuple[Path, ...],
    json_lines: bool,
) -> None:
    """Ask a crawl in SQL (DuckDB), also while it runs. Nothing can be changed by a question.

    Tables: outcomes, captures, records, history, sightings, observations, parses, links, declared, twins.
    """
    if wants_list:
        for each, what in named().items():
            click.echo(f"{each:20} {what}")
        return
    if directory is None:
        raise UsageError("which crawl is asked?", hint="crawlspace sql DIR QUERY")
    place = CrawlDirectory(directory, also)
    settings = settings_used(place)
    asked = question(query, name, dict(_pair(each) for each in parameters))
    run(lambda: _warned(place))
    reach = reach_of(place, settings)
    with ask(place, settings, asked, reach, memory) as answer:
        if answer.caution:
            click.echo(printable(answer.caution), err=True)
        if target is not None:
            _write(answer, target, force=force)
        elif json_lines:
            _print_json(answer)
        else:
            _print(answer)


async def _warned(place: CrawlDirectory) -> None:
    async with reading(place.path):
        """It warns of a re-keying that is under way."""


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f"'-p {text}' has no value", hint="write it as -p name=value")
    return name, value


def _write(answer: Answer, target: Path, *, force: bool) -> None:
    form = next((form for form in Form if target.name.lower().endswith(f".{form.value}")), None)
    if target == STANDARD or form is None:
        raise UsageError(f"the name {target.name!r} tells no format", hint="end it in .csv or .jsonl")
    with output(target, force=force) as out, table(form, out, answer.columns) as add:
        for row in answer.rows:
            add([_cell(value, form) for value in row])


def _cell(value: Any, form: Form) -> Any:
    value = plain(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if form is Form.CSV and isinstance(value, float):
        return str(value)
    return msgspec.Raw(msgspec.json.encode(value))


def _print_json(answer: Answer) -> None:
    for row in answer.rows:
        facts = {name: plain(value) for name, value in zip(answer.columns, row, strict=True)}
        click.echo(printable_json(msgspec.json.encode(facts)))


def _print(answer: Answer) -> None:
    rows: list[list[str]] = []
    for row in answer.rows:
        if len(rows) == SHOWN:
            click.echo(f"the first {SHOWN} rows are shown; -o FILE and --json give all", err=True)
            break
        rows.append([_shown(value) for value in row])
    head = [printable(name) for name in answer.columns]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)] if head else []
    for line in _lines([head, *rows], widths):
        click.echo(line)
    if sys.stdout.isatty() and not rows:
        click.echo("no rows", err=True)


def _lines(rows: list[list[str]], widths: list[int]) -> Iterator[str]:
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _shown(value: Any) -> str:
    value = plain(value)
    text = "" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = printable(text)
    return text if len(text) <= CELL else f"{text[: CELL - 3]}..."
