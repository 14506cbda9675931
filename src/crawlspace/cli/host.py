"""`crawlspace host`: pause, block or resume hosts, also while the crawl runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from crawlspace.cli.options import as_json, directory_argument
from crawlspace.cli.orders import carry_out, tell
from crawlspace.policy.commands import Block, Pause, Resume

hosts_argument = click.argument("hosts", nargs=-1, required=True, metavar="HOST...")


@click.group("host")
def command() -> None:
    """Pause, block or resume hosts of a crawl."""


@command.command("pause")
@directory_argument
@hosts_argument
@as_json
def pause_command(directory: Path, hosts: Sequence[str], json_lines: bool) -> None:
    """Ask these hosts for nothing until they are resumed; their URLs stay queued."""
    answers = carry_out(directory, *map(Pause, hosts))
    tell([f"{host} is paused" for host in hosts], answers, json_lines)


@command.command("block")
@directory_argument
@hosts_argument
@as_json
def block_command(directory: Path, hosts: Sequence[str], json_lines: bool) -> None:
    """Refuse all URLs of these hosts: those that are queued, and those found later."""
    answers = carry_out(directory, *map(Block, hosts))
    tell([f"{host} is blocked" for host in hosts], answers, json_lines)


@command.command("resume")
@directory_argument
@hosts_argument
@as_json
def resume_command(directory: Path, hosts: Sequence[str], json_lines: bool) -> None:
    """Visit these hosts again; what a block had refused is queued."""
    answers = carry_out(directory, *map(Resume, hosts))
    tell([f"{host} is visited again" for host in hosts], answers, json_lines)
