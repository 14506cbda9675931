"""`crawlspace init`: a crawl directory with a settings file to edit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli.options import directory_argument, overrides
from crawlspace.settings import chosen, load, template


@click.command("init")
@directory_argument
@overrides
def command(directory: Path, overrides: Sequence[str]) -> None:
    """Make a crawl directory whose crawl.toml shows every setting."""
    place = CrawlDirectory(directory)
    load(place.config, os.environ, overrides)
    place.create()
    fresh = not place.config.exists()
    place.write_config(template(chosen(overrides)))
    if fresh:
        click.echo(f"Settings to edit: {place.config}")
        click.echo(f"Then: crawlspace crawl URL --dir {directory}")
    else:
        click.echo(f"{place.config} is there already and stays as it is")
