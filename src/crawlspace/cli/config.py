"""`crawlspace config`: what is set, and whether it is right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli.options import as_json, config_file, echo_json, overrides, settings_of
from crawlspace.policy.scope import Scope
from crawlspace.settings import Settings, as_toml
from crawlspace.urls import policy_from

_directory = click.argument("directory", required=False, type=click.Path(path_type=Path, file_okay=False))


@click.group("config")
def command() -> None:
    """Settings: show what is in effect, check what is written."""


@command.command("show")
@_directory
@as_json
@config_file
@overrides
def show(directory: Path | None, json_lines: bool, config: Path | None, overrides: Sequence[str]) -> None:
    """Print every setting in effect, from defaults, file, environment and command line."""
    settings = _settings(directory, config, overrides)
    if json_lines:
        echo_json(msgspec.to_builtins(settings))
    else:
        click.echo(as_toml(settings), nl=False)


@command.command("check")
@_directory
@config_file
@overrides
def check(directory: Path | None, config: Path | None, overrides: Sequence[str]) -> None:
    """Check the settings; say what is wrong and where."""
    settings = _settings(directory, config, overrides)
    Scope.of(settings.scope, ())
    policy_from(settings.identity)
    click.echo("the settings are right")
    if not settings.contact:
        click.echo("no contact is set: a crawl of public hosts will refuse to start")


def _settings(directory: Path | None, config: Path | None, overrides: Sequence[str]) -> Settings:
    return settings_of(CrawlDirectory(directory) if directory else None, config, overrides)
