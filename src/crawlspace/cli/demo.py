"""`crawlspace demo`: a whole crawl of a small web that lives inside the package, traps and broken hosts included."""

from __future__ import annotations

import shutil
import sys
from itertools import count
from pathlib import Path
from typing import Any

import click

from crawlspace.app.compose import Plan
from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli.crawl import run_crawl
from crawlspace.engine.intake import Request
from crawlspace.settings import load, nested, template
from crawlspace.testing.toyweb import Size, ToyWeb

NAME = "crawl-demo"


@click.command("demo")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Crawl directory; default: a new one.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Which toy web.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def command(directory: Path | None, seed: int, quiet: bool) -> None:
    """Crawl the bundled toy web; it takes less than a minute and touches no other host."""
    place = CrawlDirectory(directory or _fresh())
    with ToyWeb(seed=seed, size=Size.DEMO, tls=_has_tls()) as web:
        values = demo_settings(web)
        settings = load(None, {}, values=values)
        place.create()
        place.write_config(template(nested(values)))
        code = run_crawl(place, Plan(settings), [Request(url) for url in web.seeds], quiet=quiet)
    if not quiet:
        _suggest(place, web)
    sys.exit(code)


def demo_settings(web: ToyWeb) -> dict[str, Any]:
    """Settings under which the toy web is crawled: quick, but as polite in kind as everywhere."""
    values: dict[str, Any] = {
        "contact": "demo@crawlspace.test",
        "host.delay": 0.05,
        "host.failure_wait": 0.2,
        "host.failures_max": 3,
        "robots.retry": 0.5,
        "retry.wait": 0.5,
        "scope.max_depth": 12,
        "fetch.timeout": 5.0,
        "fetch.idle_timeout": 2.0,
        "fetch.connect_timeout": 2.0,
        "network.resolve": dict(web.resolve),
        "network.allow": ["127.0.0.0/8"],
    }
    if _has_tls():
        values["fetch.ca_file"] = str(web.ca_file)
    return values


def _has_tls() -> bool:
    try:
        import trustme
    except ImportError:
        return False
    return bool(trustme)


def _fresh() -> Path:
    names = (Path(NAME if number == 1 else f"{NAME}-{number}") for number in count(1))
    return next(name for name in names if not name.exists())


def _suggest(place: CrawlDirectory, web: ToyWeb) -> None:
    seed, name = web.seeds[0], program(sys.argv[0])
    click.echo("Look around:")
    for line in (
        f"{name} stats {place.path}",
        f"{name} hosts {place.path}",
        f"{name} explain {place.path} {seed}",
        f"{name} parse {place.path} {seed}",
        f"{name} dlq list {place.path}",
    ):
        click.echo(f"  {line}")


def program(called: str) -> str:
    """What a person types to have this program, who called it by this name and may have it on no path."""
    if Path(called).name == "__main__.py":
        return f"{sys.executable} -m crawlspace"
    return "crawlspace" if shutil.which("crawlspace") else called
