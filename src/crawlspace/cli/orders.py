"""Asking a crawl for a change, whether it runs or not, and telling what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from crawlspace.app.control import Answer, ask
from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli.options import echo_json, run, settings_used
from crawlspace.observe.printable import printable
from crawlspace.policy.commands import Command


def carry_out(directory: Path, *commands: Command) -> list[Answer]:
    """Have commands carried out by whoever owns the crawl, or by us when nobody does."""
    place = CrawlDirectory(directory)
    settings = settings_used(place)
    return run(lambda: ask(place, settings, commands))


def tell(names: Sequence[str], answers: Sequence[Answer], json_lines: bool) -> None:
    """Say what each command changed."""
    for name, answer in zip(names, answers, strict=True):
        tally = {word: n for word, n in answer.progress.tally.items() if n}
        if json_lines:
            echo_json({"command": name, "done": answer.done, "changed": tally})
            continue
        told = ", ".join(f"{n} {word}" for word, n in tally.items())
        end = "" if answer.done else "; the rest is done in the background"
        click.echo(printable(name) + (f": {told}" if told else "") + end)
