"""`crawlspace normalize`: the canonical form and key of URLs, with the reasons. Needs no crawl.

A line in, a line out, at once, so that another program may ask and wait for the answer. What is no URL gets a reason
and stops nothing; memory does not grow with the number of lines, save with `--group`, which must remember its list.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from crawlspace.cli.options import as_json, config_file, echo_json, overrides, settings_of
from crawlspace.errors import UsageError
from crawlspace.observe.printable import printable
from crawlspace.types import Unusable
from crawlspace.urls import Identity, policy_from

LINE_LIMIT = 1 << 20
"""Bytes of a line that are looked at: far beyond the longest URL that any setting allows."""


@click.command("normalize")
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option("--base", help="Resolve relative URLs against this one.")
@click.option("--explain", "explained", is_flag=True, help="Show each step that changed something, and why.")
@click.option("--group", "grouped", is_flag=True, help="Show which inputs are one page.")
@as_json
@config_file
@overrides
def command(
    urls: Sequence[str],
    base: str | None,
    explained: bool,
    grouped: bool,
    json_lines: bool,
    config: Path | None,
    overrides: Sequence[str],
) -> None:
    """Print the canonical form of URLs, given as arguments or one a line on standard input."""
    if explained and grouped:
        raise UsageError("--explain and --group cannot be had at once")
    identity = Identity(policy_from(settings_of(None, config, overrides).identity))
    if base is not None and isinstance(refused := identity.identify(base), Unusable):
        raise UsageError(f"--base is no URL ({refused.reason}): {printable(base, 200)}")
    texts = iter(urls) if urls else _lines()
    if grouped:
        _group(identity, texts, base, json_lines)
        return
    for text in texts:
        if explained:
            _explain(identity, text, base, json_lines)
        else:
            _print(identity, text, base, json_lines)


def _lines() -> Iterator[str]:
    # Bytes, since a URL list from the web is not always UTF-8, and a bad line must not stop the stream.
    stream = sys.stdin.buffer
    while line := stream.readline(LINE_LIMIT):
        text = line.decode("utf-8", "replace").strip("\r\n")
        while len(line) == LINE_LIMIT and not line.endswith(b"\n"):
            line = stream.readline(LINE_LIMIT)
        if text:
            yield text


def _facts(identity: Identity, text: str, base: str | None) -> dict[str, Any]:
    address = identity.identify(text, base)
    if isinstance(address, Unusable):
        return {"input": text, "reason": address.reason}
    return {
        "input": text,
        "fetch_url": address.fetch_url,
        "canonical": address.canonical,
        "key": address.key.hex(),
    }


def _print(identity: Identity, text: str, base: str | None, json_lines: bool) -> None:
    facts = _facts(identity, text, base)
    if json_lines:
        echo_json(facts)
    elif "reason" in facts:
        click.echo(f"# refused ({facts['reason']}): {printable(text)}")
    else:
        click.echo(facts["canonical"])


def _explain(identity: Identity, text: str, base: str | None, json_lines: bool) -> None:
    told = identity.explain(text, base)
    if json_lines:
        steps = [
            {"step": each.name, "before": each.before, "after": each.after, "why": each.why, "source": each.source}
            for each in told.changes
        ]
        echo_json({**_facts(identity, text, base), "steps": steps, "policy": told.policy})
        return
    click.echo(printable(text))
    for change in told.changes:
        click.echo(f"  {change.name}: {printable(change.why)} [{change.source}]")
        click.echo(f"    {printable(change.before)}")
        click.echo(f"    {printable(change.after)}")
    click.echo(f"  refused: {told.reason}" if told.canonical is None else f"  = {told.canonical}")


def _group(identity: Identity, texts: Iterator[str], base: str | None, json_lines: bool) -> None:
    """Groups in order of their first member. What must be remembered is the list itself."""
    groups: dict[str, list[str]] = {}
    for text in texts:
        address = identity.identify(text, base)
        name = f"refused: {address.reason}" if isinstance(address, Unusable) else address.canonical
        groups.setdefault(name, []).append(text)
    for name, members in groups.items():
        if json_lines:
            echo_json({"canonical": name, "inputs": members})
            continue
        click.echo(name)
        for member in members:
            click.echo(f"  {printable(member)}")
