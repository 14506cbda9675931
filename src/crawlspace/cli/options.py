"""Options that verbs share, and what they all do with a crawl directory."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from crawlspace import events
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.merged import under_way
from crawlspace.app.snapshot import Elsewhere
from crawlspace.app.store import Store, open_to_read
from crawlspace.clock import SystemClock
from crawlspace.observe.printable import printable, printable_json
from crawlspace.settings import Settings, load
from crawlspace.urls import Identity, policy_from

Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., Any])

DAMAGES_TOLD = 20
"""Damages that are named to people, of those of one command."""

as_json = click.option("--json", "json_lines", is_flag=True, help="Print JSON, one object a line.")


def directory_argument(command: Command) -> Command:
    """The crawl directory as the first argument."""
    kind = click.Path(path_type=Path, file_okay=False)
    return click.argument("directory", type=kind)(command)


def overrides(command: Command) -> Command:
    """`-s key=value`, any number of times."""
    return click.option(
        "-s", "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Set a setting, such as host.delay=2."
    )(command)


def also_option(command: Command) -> Command:
    """`--also DIR`, for what other workers of the crawl have."""
    return click.option(
        "--also",
        "also",
        multiple=True,
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        metavar="DIR",
        help="Read the archive and the records of this other worker of the crawl too; may be repeated.",
    )(command)


def config_file(command: Command) -> Command:
    """`--config FILE`, for settings that lie elsewhere."""
    kind = click.Path(path_type=Path, dir_okay=False, exists=True)
    return click.option("--config", type=kind, help="Settings file; default: crawl.toml in the crawl directory.")(
        command
    )


def settings_of(directory: CrawlDirectory | None, config: Path | None, overrides: Sequence[str]) -> Settings:
    """The settings in effect for a directory."""
    file = config or (directory.config if directory else None)
    return load(file, os.environ, overrides)


def settings_used(directory: CrawlDirectory) -> Settings:
    """The settings of the crawl's latest run: what its store and its captures were made with."""
    directory.require()
    return load(directory.effective, {})


@asynccontextmanager
async def reading(path: Path, settings: Settings | None = None) -> AsyncIterator[tuple[Store, Identity]]:
    """A crawl's store for looking only, also while it runs, and the identity it was made with."""
    directory = CrawlDirectory(path)
    directory.require()
    settings = settings or settings_used(directory)
    frontier = await open_to_read(directory, settings.frontier(), SystemClock())
    try:
        notes = await frontier.notes()
        key = notes.get("hash_key", "")
        if (warning := under_way(notes)) is not None:
            click.echo(f"crawlspace: {warning}", err=True)
        yield frontier, Identity(policy_from(settings.identity), bytes.fromhex(key) or bytes(32))
    finally:
        await frontier.close()


def run(main: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a verb's coroutine."""
    from crawlspace.app.loop import run_loop

    return run_loop(main)


@contextmanager
def unread() -> Iterator[None]:
    """Say what is left to say; when nobody reads it any more, the exit code is the answer all the same."""
    try:
        yield
    except BrokenPipeError:
        # What Python would still flush at exit goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def echo_json(value: object, *, err: bool = False) -> None:
    """One JSON object on one line, with what could mislead a terminal escaped."""
    click.echo(printable_json(msgspec.json.encode(value)), err=err)


def tell_warnings(event: events.Event) -> None:
    """Tell people what they should know; of all else that a crawl tells, nothing."""
    if isinstance(event, events.Warned):
        click.echo(printable(event.message), err=True)


def tell_elsewhere(elsewhere: Elsewhere) -> None:
    """Tell people what was left out since it lies with other workers, and how it can be had."""
    if elsewhere:
        click.echo(printable(elsewhere.told()), err=True)
        click.echo("name the directories of those workers: --also DIR", err=True)


def tell_damages(damages: Sequence[str], total: int) -> None:
    """Name what could not be read, to people: some of it, and how much there is."""
    for damage in damages[:DAMAGES_TOLD]:
        click.echo(printable(damage), err=True)
    if total > DAMAGES_TOLD:
        click.echo(f"and {total - DAMAGES_TOLD} more; --json names up to 1000", err=True)
