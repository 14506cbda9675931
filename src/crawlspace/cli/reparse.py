"""`crawlspace reparse`: parse again what the archive has. No request is ever sent."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import msgspec

from crawlspace.app.compose import Plan
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.parsing import load_parser
from crawlspace.app.piping import REASONS_TOLD
from crawlspace.app.reparse import Order, Reparsed, finish_stored, reparse
from crawlspace.app.reparsing.pools import pool_of
from crawlspace.app.reparsing.selection import Chosen
from crawlspace.cli.options import as_json, directory_argument, echo_json, run, settings_used, tell_warnings
from crawlspace.clock import SystemClock
from crawlspace.errors import LeftOut, StoreDamaged, UsageError
from crawlspace.observe.printable import printable
from crawlspace.pages.timestamps import read_time
from crawlspace.parsers.maintext import EXTRA, is_there

TOLD_EVERY = 2.0
"""Seconds between two lines of progress."""


@click.command("reparse")
@directory_argument
@click.option(
    "--parser", "name", required=True, help="page, links, markdown, or yours as module:name or file.py:name."
)
@click.option("--host", help="Only captures of this host.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only of this type, as text/html or image/*.")
@click.option("--status", "statuses", type=int, multiple=True, help="Only with this status; may be repeated.")
@click.option("--since", metavar="DATE", help="Only fetched at this time or later.")
@click.option("--until", metavar="DATE", help="Only fetched before this time.")
@click.option("--where", "condition", metavar="SQL", help="Only those of which this is true on the table captures.")
@click.option("--again", is_flag=True, help="Also what this version of the parser has read.")
@click.option("--failed", is_flag=True, help="Also what this version of the parser has failed on.")
@click.option("--processes", type=click.IntRange(1, 256), help="Default: one for each core.")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", help="Who parses.")
@click.option("--address", metavar="ADDRESS", help="Of a running Ray cluster; default: one on this machine.")
@as_json
def command(
    directory: Path,
    name: str,
    host: str | None,
    types: tuple[str, ...],
    statuses: tuple[int, ...],
    since: str | None,
    until: str | None,
    condition: str | None,
    again: bool,
    failed: bool,
    processes: int | None,
    engine: str,
    address: str | None,
    json_lines: bool,
) -> None:
    """Parse again what the archive has: what the parser has not read, or an older version of it.

    New records replace those of the older version, capture by capture. Killed, the same command goes on. URLs in
    state stored are read again first. The crawl must not run; no request is sent.
    """
    place = CrawlDirectory(directory)
    settings = settings_used(place)
    parser = load_parser(name, place.path)
    if parser.name == "page" and not is_there():
        click.echo(f"main text is left out: pip install 'crawlspace[{EXTRA}]'", err=True)
    chosen = Chosen(
        host=None if host is None else host.lower(),
        types=tuple(each.lower() for each in types),
        statuses=statuses,
        since=_time(since),
        until=_time(until),
        condition=condition,
        again=again,
        failed=failed,
    )
    count = processes or os.cpu_count() or 1
    pool = pool_of(parser, count, engine, address)
    done = Reparsed()
    plan = Plan(settings=settings, watch=tell_warnings, joins=place.shared.exists())
    run(lambda: finish_stored(place, plan, SystemClock(), done))
    try:
        reparse(place, settings, Order(parser, name, chosen, pool), _progress(), done)
    except KeyboardInterrupt:
        _tell(done, json_lines=json_lines)
        click.echo("interrupted; the same command goes on", err=True)
        sys.exit(3)
    _tell(done, json_lines=json_lines)
    if done.damaged:
        sys.exit(StoreDamaged.exit_code)
    if done.elsewhere:
        sys.exit(LeftOut.exit_code)


def _time(text: str | None) -> int | None:
    found = None if text is None else read_time(text)
    if text is not None and found is None:
        raise UsageError(f"{text!r} is no time", hint="write it as 2026-11-30 or 2026-11-30T12:00:00Z")
    return found


def _progress() -> Callable[[Reparsed], None]:
    began = told = time.monotonic()

    def watch(done: Reparsed) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= TOLD_EVERY:
            told = now
            rate = done.parsed / (now - began)
            click.echo(f"{done.parsed} captures parsed, {done.records} records, {rate:.0f} captures/s", err=True)

    return watch


def _tell(done: Reparsed, *, json_lines: bool) -> None:
    if json_lines:
        echo_json(msgspec.to_builtins(done))
        return
    click.echo(f"{done.parsed} captures parsed: {done.records} records, {done.failed} failures")
    for count, what in (
        (done.current, "captures were read by this version before"),
        (done.newer, "captures were read by a newer version, and are left alone"),
        (done.finished, "URLs were stored and are done"),
        (done.unfinished, "URLs are stored still"),
        (done.damaged, "captures could not be read"),
    ):
        if count:
            click.echo(f"{count} {what}")
    for reason, count in done.dropped.most_common(REASONS_TOLD):
        click.echo(f"{count} records were dropped by the pipeline: {printable(reason)}")
    if done.elsewhere:
        click.echo(printable(done.elsewhere.told()), err=True)
        click.echo("parse them again in the directories of those workers", err=True)
    for damage in done.damages:
        click.echo(printable(damage), err=True)
