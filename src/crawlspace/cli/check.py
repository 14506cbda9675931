"""`crawlspace check`: hold a crawl's state against itself and against its archive."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from crawlspace.app.check import Checker, told
from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli.options import as_json, directory_argument, echo_json, settings_used
from crawlspace.clock import SystemClock
from crawlspace.errors import StoreDamaged
from crawlspace.observe.printable import printable


@click.command("check")
@directory_argument
@click.option("--deep", is_flag=True, help="Read every capture and compare its digests.")
@click.option("--repair", is_flag=True, help="Mend what is safe to mend; the crawl must not be running.")
@as_json
def command(directory: Path, deep: bool, repair: bool, json_lines: bool) -> None:
    """Check counts, states, leases and captures; ends with code 7 when damage is left."""
    place = CrawlDirectory(directory)
    report = Checker(place, settings_used(place), SystemClock(), deep, repair).run()
    if json_lines:
        facts = {"found": report.found, "repaired": report.repaired, "left": report.left}
        echo_json({**facts, "captures": report.captures, "faults": report.faults})
    else:
        for line in told(report):
            click.echo(printable(line))
    if report.left:
        sys.exit(StoreDamaged.exit_code)
