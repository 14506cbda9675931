"""`crawlspace backup`: copy a crawl, also while it runs; the copy can be resumed."""

from __future__ import annotations

from pathlib import Path

import click

from crawlspace.app.backup import back_up
from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli.options import as_json, directory_argument, echo_json, settings_used
from crawlspace.observe.printable import printable
from crawlspace.observe.words import size


@click.command("backup")
@directory_argument
@click.argument("target", type=click.Path(path_type=Path, file_okay=False))
@as_json
def command(directory: Path, target: Path, json_lines: bool) -> None:
    """Copy the crawl to TARGET, which is made: its store of one moment, and its captures up to then."""
    place = CrawlDirectory(directory)
    copied = back_up(place, target, settings_used(place))
    if json_lines:
        echo_json({"target": str(target), "archive_files": copied.files, "bytes": copied.bytes})
        return
    click.echo(f"{printable(str(target))}: {size(copied.bytes)}, {copied.files} archive files; it can be resumed")
