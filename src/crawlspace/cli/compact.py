"""`crawlspace compact`: join the small files of a crawl's archive into large ones."""

from __future__ import annotations

import os
from pathlib import Path

import click

from crawlspace.app.compact import Compacter
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.index import MERGED, index_archive, index_table
from crawlspace.cli.options import as_json, directory_argument, echo_json, run
from crawlspace.clock import SystemClock
from crawlspace.observe.printable import printable
from crawlspace.observe.words import size
from crawlspace.settings import load


@click.command("compact")
@directory_argument
@as_json
def command(directory: Path, json_lines: bool) -> None:
    """Join small archive files up to archive.max_file, and make indexes that are there anew; no crawl may run."""
    place = CrawlDirectory(directory)
    place.require()
    settings = load(place.effective if place.effective.exists() else place.config, os.environ)
    done = run(lambda: Compacter(place, settings, SystemClock()).run())
    if done.after < done.before:
        if (place.archive / MERGED).exists():
            index_archive(place, settings, place.archive / MERGED, force=True)
        if place.captures.is_dir():
            index_table(place, settings)
    if json_lines:
        echo_json({"before": done.before, "after": done.after, "bytes": done.bytes})
        return
    what = f"{done.before} archive files are {done.after} now, {size(done.bytes)} put together"
    click.echo(printable(what if done.after < done.before else f"nothing to join: {done.before} archive files"))
