"""`crawlspace index`: make the indexes by which captures are found, from the WARC files alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.index import MERGED, index_archive, index_each, index_table
from crawlspace.app.output import STANDARD
from crawlspace.cli.options import as_json, directory_argument, echo_json
from crawlspace.errors import StoreDamaged, UsageError
from crawlspace.observe.printable import printable
from crawlspace.settings import load


@click.command("index")
@directory_argument
@click.option(
    "-o",
    "target",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write it here, - for standard output; default: archive/index.cdxj in the crawl directory, made anew.",
)
@click.option("--per-file", is_flag=True, help="Write one beside each archive file instead.")
@click.option("--table", is_flag=True, help="Make the table of captures again instead (Parquet; extra parquet).")
@click.option("--force", is_flag=True, help="Write over FILE.")
@as_json
def command(directory: Path, target: Path | None, per_file: bool, table: bool, force: bool, json_lines: bool) -> None:
    """Index the captures of a crawl as sorted CDXJ, for pywb and others; its database is not needed."""
    if per_file + table + (target is not None) > 1:
        raise UsageError("-o, --per-file and --table exclude each other")
    place = CrawlDirectory(directory)
    settings = load(place.effective if place.effective.exists() else place.config, os.environ)
    if table:
        done = index_table(place, settings)
    elif per_file:
        done = index_each(place, settings)
    else:
        done = index_archive(place, settings, target or place.archive / MERGED, force=force or target is None)
    aside = target == STANDARD
    if json_lines:
        facts = {"files": done.files, "captures": done.captures, "torn": done.torn}
        echo_json({**facts, "damaged": done.damaged, "damages": done.damages}, err=aside)
    else:
        goal = place.captures if table else target or place.archive / MERGED
        where = "beside each file" if per_file else printable(str(goal))
        click.echo(f"{done.captures} captures of {done.files} archive files: {where}", err=aside)
        for damage in done.damages:
            click.echo(printable(damage), err=True)
    if done.damaged:
        sys.exit(StoreDamaged.exit_code)
