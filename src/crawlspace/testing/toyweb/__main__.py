"""`python -m crawlspace.testing.toyweb`: serve a toy web until Ctrl-C, for a person or for another process.

Prints the settings that reach it as TOML, its seeds as comments in front, and flushes before it waits.
"""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import click

from crawlspace.errors import UsageError
from crawlspace.testing.toyweb import CALM, EVERYTHING, Feature, Size, ToyWeb, tls_available

SETS = {"everything": EVERYTHING, "calm": CALM}


def _features(chosen: str, without: tuple[str, ...]) -> frozenset[Feature]:
    return SETS[chosen] - {Feature(name) for name in without}


@click.command()
@click.option("--seed", default=1, show_default=True, help="Number that decides every page.")
@click.option("--size", type=click.Choice([size.value for size in Size]), default="small", show_default=True)
@click.option("--features", "chosen", type=click.Choice(list(SETS)), default="everything", show_default=True)
@click.option("--without", multiple=True, type=click.Choice([feature.value for feature in Feature]))
@click.option("--log", type=click.Path(dir_okay=False, path_type=Path), help="Append each request as a JSON line.")
def main(seed: int, size: str, chosen: str, without: tuple[str, ...], log: Path | None) -> None:
    """Serve a toy web on 127.0.0.1 and print the settings that reach it."""
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: done.set())
    try:
        web = ToyWeb(seed, size=Size(size), tls=tls_available(), features=_features(chosen, without))
        if log is not None:
            web.log_to(log)
        with web:
            seeds = "".join(f"# crawlspace crawl {text}\n" for text in web.seeds)
            click.echo(
                f"# The toy web, seed {seed}, {len(web.truth.pages)} pages. Ctrl-C ends it.\n{seeds}\n{web.toml()}"
            )
            done.wait()
    except (UsageError, OSError) as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
