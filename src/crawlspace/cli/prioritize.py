"""`crawlspace prioritize`: another front class for queued URLs, also while the crawl runs."""

from __future__ import annotations

from pathlib import Path

import click

from crawlspace.cli.options import as_json, directory_argument
from crawlspace.cli.orders import carry_out, tell
from crawlspace.policy.commands import Prioritize
from crawlspace.policy.patterns import Patterns
from crawlspace.policy.priority import LAST


@click.command("prioritize")
@directory_argument
@click.argument("pattern")
@click.argument("front_class", metavar="CLASS", type=click.IntRange(0, LAST))
@as_json
def command(directory: Path, pattern: str, front_class: int, json_lines: bool) -> None:
    """Give queued URLs that fit PATTERN (RE2, or a glob behind `glob:`) the front CLASS, 0 first and 9 last."""
    Patterns.of((pattern,), "PATTERN")
    answers = carry_out(directory, Prioritize(pattern, front_class))
    tell([f"class {front_class} for {pattern}"], answers, json_lines)
