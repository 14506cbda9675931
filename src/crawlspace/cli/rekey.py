"""`crawlspace rekey`: a crawl under other URL rules; a dry run unless it is told to go."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.rekey import Outlook, Parting, apply, outlook
from crawlspace.cli.options import (
    also_option,
    as_json,
    config_file,
    directory_argument,
    echo_json,
    overrides,
    run,
    settings_of,
)
from crawlspace.clock import SystemClock
from crawlspace.frontier.rekeying import DONE, Forecast, Progress
from crawlspace.observe.printable import printable

TELL_SECONDS = 5.0


@click.command("rekey")
@directory_argument
@click.option("--apply", "go", is_flag=True, help="Do it. Killed at any moment, the same command goes on.")
@also_option
@as_json
@config_file
@overrides
def command(
    directory: Path,
    go: bool,
    also: tuple[Path, ...],
    json_lines: bool,
    config: Path | None,
    overrides: Sequence[str],
) -> None:
    """Take a crawl to the URL rules of the settings; without --apply, say what that would do.

    URLs that become one keep the best state and the histories of both; nothing is fetched, and captures are not
    touched. Where pages may come apart, the links of archived pages are offered again.
    """
    place = CrawlDirectory(directory, also)
    settings = settings_of(place, config, overrides)
    if not go:
        _tell_outlook(run(lambda: outlook(place, settings, SystemClock())), directory, json_lines)
        return
    teller = _Teller()
    done = run(lambda: apply(place, settings, SystemClock(), teller.see))
    if json_lines:
        echo_json({"applied": done is not None, **({} if done is None else _figures(done))})
        return
    if done is None:
        click.echo("the crawl has these URL rules already")
        return
    click.echo(f"re-keyed: {_summary(done)}")
    elsewhere = " here: workers read those of their own archives when they start" if place.shared.exists() else ""
    if done.parts:
        click.echo(
            f"{done.pages} archived pages and redirects were read again: {done.found} URLs are new"
            + (f"; {done.unreadable} pages could not be read{elsewhere}" if done.unreadable else "")
        )
    if any(override.startswith("identity.") for override in overrides):
        click.echo(f"write the same identity settings into {place.config}, or give them at each start")


class _Teller:
    """A line on standard error now and then."""

    def __init__(self) -> None:
        self._stage = ""
        self._told = 0.0

    def see(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.stage == DONE or (progress.stage == self._stage and now - self._told < TELL_SECONDS):
            return
        self._stage, self._told = progress.stage, now
        click.echo(f"{progress.stage}: {_where(progress)}", err=True)


def _where(progress: Progress) -> str:
    if progress.stage.startswith("links"):
        return f"{progress.pages} pages read again, {progress.found} new URLs"
    if progress.stage.startswith("plan"):
        return f"{progress.planned} of {progress.urls} URLs looked at, {progress.changed} keys change"
    return f"{progress.moved} of {progress.planned} URLs settled, {progress.merged} merged"


def _summary(figures: Progress | Forecast) -> str:
    return (
        f"{figures.urls} URLs, {figures.changed} keys change, {figures.merged} URLs merge into others, "
        f"{figures.restored} merged before stand for themselves again"
    )


def _figures(figures: Progress | Forecast) -> dict[str, Any]:
    told = {name: getattr(figures, name) for name in ("urls", "changed", "merged", "restored")}
    if isinstance(figures, Progress):
        told |= {name: getattr(figures, name) for name in ("pages", "unreadable", "found")}
    return told


def _tell_outlook(found: Outlook | None, directory: Path, json_lines: bool) -> None:
    if json_lines:
        echo_json(_as_json(found))
    elif found is None:
        click.echo("the crawl has these URL rules already")
    else:
        _print(found, directory)


def _as_json(found: Outlook | None) -> dict[str, Any]:
    if found is None:
        return {"difference": []}
    merges = [
        {
            "url": merge.goes,
            "state": merge.state.name.lower(),
            "into": merge.stays,
            "into_state": merge.stays_state.name.lower(),
        }
        for merge in found.forecast.merges
    ]
    return {
        "difference": found.difference,
        **_figures(found.forecast),
        "merges": merges,
        "changes": found.forecast.changes,
        "split": None if found.parting is None else _parting(found.parting),
    }


def _parting(parting: Parting) -> dict[str, Any]:
    return {
        "pages_read": parting.pages,
        "all_pages": parting.whole,
        "new_urls": parting.found,
        "examples": parting.examples,
    }


def _print(found: Outlook, directory: Path) -> None:
    for line in found.difference:
        click.echo(printable(line))
    click.echo(_summary(found.forecast))
    for merge in found.forecast.merges:
        click.echo(f"  {printable(merge.goes)} ({merge.state.name.lower()})")
        click.echo(f"    becomes one with {printable(merge.stays)} ({merge.stays_state.name.lower()})")
    for url in found.forecast.changes:
        click.echo(f"  {printable(url)} gets another key")
    if found.parting is not None:
        read = f"{'all' if found.parting.whole else 'the first'} {found.parting.pages} archived pages and redirects"
        click.echo(f"pages may come apart: {read} lead to {found.parting.found} URLs that would be new")
        for url in found.parting.examples:
            click.echo(f"  {printable(url)}")
    click.echo(f"nothing was changed; to do it: crawlspace rekey {directory} --apply, with the same settings")
