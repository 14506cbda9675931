"""`crawlspace rules`: rules of identity that a crawl has learned, and what a person makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.lessons import EXPORTED, as_settings, chosen, decide, export, name_of
from crawlspace.cli.options import as_json, directory_argument, echo_json, reading, run, settings_used
from crawlspace.clock import SystemClock
from crawlspace.errors import UsageError
from crawlspace.observe.printable import printable
from crawlspace.observe.words import moment
from crawlspace.policy.evidence import IN_EFFECT, KnownRule, RuleState

_MEANING = {
    "scheme": "http and https are one",
    "www": "the name with www. is the one without",
    "mirror": "this host has the pages of {}",
    "slash": "a slash at the end changes nothing",
    "index": "{} stands for its folder",
    "case": "letters of paths may be large or small",
    "param": "the parameter {} changes nothing",
    "path_param": "the parameter {} in paths changes nothing",
    "id_segment": "path segments of {} and a random id change nothing",
    "view": "a last path segment {} shows the page before it in another form",
}


@click.group("rules")
def command() -> None:
    """Rules of identity beyond those of the settings."""


@command.command("learned")
@directory_argument
@click.option("--accept", multiple=True, metavar="RULE", help="Apply this rule; may be repeated.")
@click.option("--reject", multiple=True, metavar="RULE", help="Never apply this rule, undo it if it is applied.")
@click.option("--export", "file", metavar="FILE", help="Put rules as settings behind those in FILE ('-': print).")
@click.option("--rule", "names", multiple=True, metavar="RULE", help="Show or export only these.")
@click.option("--all", "every", is_flag=True, help="Also show rules for which too little speaks so far.")
@as_json
def learned_command(
    directory: Path,
    accept: Sequence[str],
    reject: Sequence[str],
    file: str | None,
    names: Sequence[str],
    every: bool,
    json_lines: bool,
) -> None:
    """Show what was learned of which URLs are one page; accept, reject or export it."""
    place = CrawlDirectory(directory)
    both = set(accept) & set(reject)
    if both:
        raise UsageError(f"{min(both)!r} is to be accepted and rejected at once")
    known = run(lambda: _decided(place, accept, reject))
    wanted = chosen(known, names) if names else known
    if file is not None:
        _export([each for each in wanted if names or each.state in EXPORTED], file)
        return
    shown = [each for each in wanted if names or every or each.state is not RuleState.WATCHED]
    if json_lines:
        for each in shown:
            echo_json(_facts(each))
        return
    _print(shown, len(wanted) - len(shown))
    if accept:
        click.echo("accepted rules are applied when the crawl is started the next time; one that runs goes on first")


async def _decided(place: CrawlDirectory, accept: Sequence[str], reject: Sequence[str]) -> list[KnownRule]:
    """All rules, once those that were named are accepted or rejected."""
    settings = settings_used(place)
    for state, names in ((RuleState.ACCEPTED, accept), (RuleState.REJECTED, reject)):
        if names:
            await decide(place, settings, SystemClock(), (names, state))
    async with reading(place.path, settings) as (store, _):
        return await store.learned()


def _export(rules: Sequence[KnownRule], file: str) -> None:
    if file == "-":
        click.echo(as_settings([each.rule for each in rules]), nl=False)
        return
    export([each.rule for each in rules], Path(file))
    click.echo(f"{len(rules)} rules are in {file} now")


def _print(rules: Sequence[KnownRule], more: int) -> None:
    for each in rules:
        evidence = each.evidence
        click.echo(f"{name_of(each.rule)}  {each.state:9}  {printable(_sentence(each))}")
        click.echo(
            f"{'':10}{evidence.pairs} pairs speak for it ({evidence.redirects} redirects, {evidence.canonicals} "
            f"canonical links, {evidence.texts} equal texts), {evidence.against} against it; "
            f"confidence {evidence.confidence:.2f}"
        )
        for one, other in each.examples[:1]:
            click.echo(f"{'':10}{printable(one)} = {printable(other)}")
        for one, other in each.against[:1]:
            click.echo(f"{'':10}{printable(one)} is not {printable(other)}")
    if not rules:
        click.echo("no rule is proposed" if more else "nothing was learned yet")
    if more:
        click.echo(f"{more} more rules are watched; --all shows them")


def _sentence(known: KnownRule) -> str:
    return f"{known.rule.host}: {_MEANING[known.rule.kind].format(known.rule.detail or 'nothing')}"


def _facts(known: KnownRule) -> dict[str, Any]:
    evidence = known.evidence
    return {
        "rule": name_of(known.rule),
        "host": known.rule.host,
        "kind": known.rule.kind.value,
        "detail": known.rule.detail or None,
        "meaning": _sentence(known),
        "state": known.state.value,
        "in_effect": known.state in IN_EFFECT,
        "pairs": evidence.pairs,
        "redirects": evidence.redirects,
        "canonicals": evidence.canonicals,
        "texts": evidence.texts,
        "against": evidence.against,
        "different_texts": evidence.kinds,
        "other_links": evidence.unlike,
        "confirmed": evidence.confirmed,
        "confidence": round(evidence.confidence, 4),
        "examples": known.examples,
        "counter_examples": known.against,
        "first_at": moment(known.first_at),
        "last_at": moment(known.last_at),
    }
