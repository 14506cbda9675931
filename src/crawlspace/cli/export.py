"""`crawlspace export`: what a crawl knows, for other programs; also while it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.export import Exported, Format, Wanted, What, export, format_of, usual
from crawlspace.app.exporting.stages import load_stages
from crawlspace.app.output import STANDARD, reached
from crawlspace.cli.options import (
    also_option,
    as_json,
    directory_argument,
    echo_json,
    settings_used,
    tell_damages,
    tell_elsewhere,
)
from crawlspace.errors import CrawlspaceError, LeftOut, StoreDamaged, UsageError
from crawlspace.observe.printable import printable
from crawlspace.states import UrlState

_STATES = {state.name.lower(): state for state in UrlState}


@click.command("export")
@directory_argument
@click.option(
    "-o",
    "target",
    required=True,
    metavar="FILE",
    help="Write it here, in the format of the suffix; - for standard output, s3://bucket/name for object storage.",
)
@click.option(
    "--format", "form", type=click.Choice([each.value for each in Format]), help="The format; default: by the suffix."
)
@click.option(
    "--what",
    type=click.Choice([each.value for each in What]),
    help="Rows of what; default: urls, and what the format holds where it holds but one thing.",
)
@click.option("--state", "states", type=click.Choice([*_STATES]), multiple=True, help="Only these; may be repeated.")
@click.option("--host", help="Only those of this host.")
@click.option("--parser", help="Of records only those of this parser.")
@click.option("--unique", is_flag=True, help="Of pages with the same content only one.")
@click.option(
    "--pipeline",
    "stages",
    multiple=True,
    metavar="MODULE:NAME",
    help="Send rows through this stage, which may change or drop them; may be repeated.",
)
@click.option("--base", metavar="URL", help="Where the parts of a sitemap will lie that one file cannot hold.")
@click.option("--raw", is_flag=True, help="Leave CSV as it is, also what a spreadsheet would take for a formula.")
@click.option("--force", is_flag=True, help="Write over FILE.")
@also_option
@as_json
def command(
    directory: Path,
    target: str,
    form: str | None,
    what: str | None,
    states: tuple[str, ...],
    host: str | None,
    parser: str | None,
    unique: bool,
    stages: tuple[str, ...],
    base: str | None,
    raw: bool,
    force: bool,
    also: tuple[Path, ...],
    json_lines: bool,
) -> None:
    """Write URLs, captures, links, pages or records to FILE.

    The suffix says how: .jsonl, .jsonl.zst, .jsonl.gz, .csv, .parquet, .sqlite, .txt, .cdxj, .warc.gz, .wacz,
    .wet.gz, .wat.gz, .graphml, or .xml for a sitemap.
    """
    if form is None and target == str(STANDARD):
        raise UsageError("standard output has no suffix", hint="say --format, such as --format csv")
    format_ = format_of(Path(target)) if form is None else Format(form)
    wanted = Wanted(
        format=format_,
        what=usual(format_) if what is None else What(what),
        states=frozenset(_STATES[name] for name in states or _STATES),
        host=None if host is None else host.lower(),
        guard=not raw,
        parser=parser,
        unique=unique,
        stages=load_stages(stages),
        base=base,
    )
    place = CrawlDirectory(directory, also)
    with reached(target, force=force) as goal:
        done = export(place, settings_used(place), wanted, goal.path, force=goal.force)
    _tell(done, wanted, target, json_lines=json_lines)
    if done.damaged:
        sys.exit(StoreDamaged.exit_code)
    if done.failed:
        sys.exit(CrawlspaceError.exit_code)
    if done.elsewhere:
        sys.exit(LeftOut.exit_code)


def _tell(done: Exported, wanted: Wanted, target: str, *, json_lines: bool) -> None:
    aside = target == str(STANDARD)
    if json_lines:
        facts: dict[str, Any] = {"rows": done.rows, "damaged": done.damaged, "damages": done.damages}
        if done.elsewhere:
            facts["elsewhere"] = dict(done.elsewhere)
        if wanted.stages:
            facts |= {"dropped": dict(done.dropped), "failed": done.failed}
        echo_json(facts, err=aside)
        return
    click.echo(f"{done.rows} {wanted.what}: {printable(target)}", err=aside)
    for reason, n in done.dropped.most_common():
        click.echo(f"dropped {n}: {printable(reason)}", err=True)
    tell_damages(done.damages, done.damaged + done.failed)
    tell_elsewhere(done.elsewhere)
    if done.caution:
        click.echo(printable(done.caution), err=True)
