"""`crawlspace robots`: whether a URL may be fetched, and the rule that says so. Nothing is stored."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from crawlspace.app.robots import Judged, judge_url
from crawlspace.cli.options import as_json, config_file, echo_json, overrides, run, settings_of
from crawlspace.observe.printable import printable

FORBIDDEN = 1


@click.command("robots")
@click.argument("url")
@click.option("--agent", metavar="NAME", help="Ask as this crawler would; default: the product in user_agent.")
@click.option(
    "--file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Read the rules from this file instead of the URL's origin.",
)
@as_json
@config_file
@overrides
def command(
    url: str,
    agent: str | None,
    file: Path | None,
    json_lines: bool,
    config: Path | None,
    overrides: Sequence[str],
) -> None:
    """Tell whether robots.txt lets URL be fetched, and by which rule. The exit code is 1 when it does not."""
    settings = settings_of(None, config, overrides)
    judged = run(lambda: judge_url(url, settings, agent, file))
    if json_lines:
        echo_json(_facts(judged))
    else:
        _report(judged)
    sys.exit(0 if judged.decision.allowed else FORBIDDEN)


def _facts(judged: Judged) -> dict[str, Any]:
    file, rules = judged.robots.file, judged.robots.rules
    return {
        "url": judged.url,
        "agent": judged.product,
        "allowed": judged.decision.allowed,
        "rule": judged.decision.rule,
        "asked": list(judged.asked),
        "verdict": file.verdict,
        "detail": file.detail,
        "crawl_delay": rules.crawl_delay if rules else None,
        "sitemaps": list(rules.sitemaps) if rules else [],
    }


def _report(judged: Judged) -> None:
    rules = judged.robots.rules
    click.echo(f"{'url':12} {printable(judged.url)}")
    click.echo(f"{'agent':12} {printable(judged.product)}")
    for place in judged.asked:
        click.echo(f"{'asked':12} {printable(place)}")
    click.echo(f"{'verdict':12} {judged.robots.file.verdict} ({printable(judged.robots.file.detail)})")
    if rules is not None and rules.crawl_delay is not None:
        click.echo(f"{'crawl-delay':12} {rules.crawl_delay:g} s")
    for text in rules.sitemaps if rules is not None else ():
        click.echo(f"{'sitemap':12} {printable(text)}")
    word = "allowed" if judged.decision.allowed else "forbidden"
    click.echo(f"{word:12} {printable(judged.decision.rule)}")
