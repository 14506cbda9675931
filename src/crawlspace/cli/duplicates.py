"""`crawlspace duplicates`: pages that say the same, who stands for each group, and where two of them differ."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import click
import msgspec

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.duplicates import Duplicates, Group, Likeness, Wanted, open_duplicates
from crawlspace.app.output import output
from crawlspace.cli.options import also_option, as_json, directory_argument, echo_json, settings_used, tell_elsewhere
from crawlspace.errors import LeftOut, UsageError
from crawlspace.observe.printable import printable
from crawlspace.observe.words import moment

THRESHOLD = 0.9
SHOWN_MEMBERS = 10
SHOWN_CHANGES = 5
SHOWN_WORDS = 120


@click.command("duplicates")
@directory_argument
@click.option("--exact", "likeness", flag_value=Likeness.EXACT.value, help="Only groups that say the same.")
@click.option(
    "--near", "likeness", flag_value=Likeness.NEAR.value, help="Only groups with near-duplicates (SimHash)."
)
@click.option(
    "--similar",
    "likeness",
    flag_value=Likeness.SIMILAR.value,
    help="Read the whole archive and group all that is alike (MinHash).",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0.5, 1.0),
    help=f"Part of their text that pages share, with --similar; {THRESHOLD} unless given.",
)
@click.option("--host", help="Only groups with a page of this host.")
@click.option(
    "--min", "least", type=click.IntRange(2), default=2, show_default=True, help="Only groups of so many pages."
)
@click.option("--limit", type=click.IntRange(1), help="No more than so many groups.")
@click.option(
    "--links", is_flag=True, help="Count links in the archive first, so that they can decide who stands for a group."
)
@click.option("--difference", is_flag=True, help="Also tell where two members differ, word by word.")
@click.option("-o", "file", type=click.Path(path_type=Path), help="Write JSON lines to this file ('-': print them).")
@click.option("--force", is_flag=True, help="Write over the file if it is there.")
@also_option
@as_json
def command(
    directory: Path,
    likeness: str | None,
    threshold: float | None,
    host: str | None,
    least: int,
    limit: int | None,
    links: bool,
    difference: bool,
    file: Path | None,
    force: bool,
    also: tuple[Path, ...],
    json_lines: bool,
) -> None:
    """List groups of pages that say the same, or nearly so, with the page that stands for each and why.

    Nothing is fetched and nothing is changed; a crawl may run meanwhile.
    """
    if file is not None and not (str(file) == "-" or file.name.lower().endswith(".jsonl")):
        raise UsageError(f"groups are written as JSON lines: call the file {file}.jsonl")
    if threshold is not None and likeness != Likeness.SIMILAR:
        raise UsageError("--threshold is for --similar: near-duplicates were found by content.distance")
    place = CrawlDirectory(directory, also)
    wanted = Wanted(None if likeness is None else Likeness(likeness), host, least, threshold or THRESHOLD, links)
    with open_duplicates(place, settings_used(place)) as duplicates:
        groups = islice(duplicates.groups(wanted), limit)
        if file is not None:
            _write(_all_facts(groups, duplicates, difference), file, force)
        elif json_lines:
            _echo(_all_facts(groups, duplicates, difference))
        else:
            _print(groups, duplicates, difference)
        unreadable = duplicates.unreadable
    if unreadable:
        click.echo(f"{unreadable} captures could not be read", err=True)
    tell_elsewhere(duplicates.elsewhere)
    if duplicates.elsewhere:
        sys.exit(LeftOut.exit_code)


def _echo(all_facts: Iterator[dict[str, Any]]) -> None:
    for facts in all_facts:
        echo_json(facts)


def _write(all_facts: Iterator[dict[str, Any]], file: Path, force: bool) -> None:
    with output(file, force=force) as out:
        for facts in all_facts:
            out.write(msgspec.json.encode(facts) + b"\n")


def _all_facts(groups: Iterator[Group], duplicates: Duplicates, difference: bool) -> Iterator[dict[str, Any]]:
    for group in groups:
        facts = _facts(group)
        if difference:
            facts["difference"] = _difference(group, duplicates)
        yield facts


def _facts(group: Group) -> dict[str, Any]:
    claims = dict(zip((copy.id for copy in group.copies), group.chosen.claims, strict=True))
    return {
        "likeness": group.likeness.value,
        "pages": group.size,
        "representative": group.first.url,
        "why": group.chosen.why.value,
        "members": [
            {
                "url": copy.url,
                "found_at": moment(copy.found_at),
                "text": copy.text.hex(),
                "canonical": (copy.url if copy.declared == "" else copy.declared),
                "claim": claims[copy.id].value,
                "in_sitemap": copy.in_sitemap,
            }
            for copy in group.copies
        ],
        "more": group.more,
    }


def _difference(group: Group, duplicates: Duplicates) -> dict[str, Any] | None:
    found = duplicates.difference(group)
    if found is None:
        return None
    other, told = found
    return {
        "of": group.first.url,
        "and": other.url,
        "whole": told.whole,
        "changes": [{"at": each.at, "removed": each.removed, "added": each.added} for each in told.changes],
    }


def _print(groups: Iterator[Group], duplicates: Duplicates, difference: bool) -> None:
    some = False
    for group in groups:
        some = True
        click.echo(f"{group.size} pages, {group.likeness}: {printable(group.first.url)} ({_WHY[group.chosen.why]})")
        others = [copy for copy in group.copies if copy.id != group.first.id]
        for copy in others[:SHOWN_MEMBERS]:
            click.echo(f"  {printable(copy.url)}")
        more = group.size - 1 - min(len(others), SHOWN_MEMBERS)
        if more:
            click.echo(f"  and {more} more")
        if difference:
            _print_difference(group, duplicates)
    if not some:
        click.echo("no such groups")


def _print_difference(group: Group, duplicates: Duplicates) -> None:
    found = duplicates.difference(group)
    if found is None:
        equal = len({copy.text for copy in group.copies}) == 1
        click.echo("  the texts are equal" if equal else "  the texts cannot be compared")
        return
    other, told = found
    click.echo(f"  {printable(other.url)} differs in {len(told.changes)}{'' if told.whole else ' or more'} places:")
    for change in told.changes[:SHOWN_CHANGES]:
        removed, added = printable(change.removed, SHOWN_WORDS), printable(change.added, SHOWN_WORDS)
        click.echo(f"    word {change.at}: -{removed or ' '} +{added or ' '}")


_WHY = {
    "only": "the only one",
    "canonical": "the group's canonical links lead to it",
    "most_canonicals": "most of the group's canonical links lead to it",
    "redirects": "more URLs redirect to it",
    "sitemap": "a sitemap names it",
    "links": "more links lead to it",
    "age": "it was found first",
}
