"""`crawlspace hosts`: the hosts of a crawl, their numbers and their clocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crawlspace.cli.options import as_json, directory_argument, echo_json, reading, run
from crawlspace.clock import SystemClock
from crawlspace.observe.printable import printable
from crawlspace.observe.words import moment
from crawlspace.types import HostFigures

BATCH = 500


@click.command("hosts")
@directory_argument
@click.option("--limit", type=click.IntRange(min=1), help="Show this many at most.")
@as_json
def command(directory: Path, limit: int | None, json_lines: bool) -> None:
    """Hosts by name: queued, fetched, delay, and why one waits."""

    async def main() -> None:
        shown = 0
        async with reading(directory) as (frontier, _):
            after = ""
            while (limit is None or shown < limit) and (batch := await frontier.hosts(after, BATCH)):
                for host in batch if limit is None else batch[: limit - shown]:
                    _show(host, json_lines, head=shown == 0)
                    shown += 1
                after = batch[-1].name

    run(main)


def _show(host: HostFigures, json_lines: bool, *, head: bool) -> None:
    if json_lines:
        echo_json(_facts(host))
        return
    if head:
        click.echo(f"{'queued':>8} {'done':>8} {'dead':>6} {'fetched':>8} {'delay':>8}  host")
    line = f"{host.queued:8} {host.done:8} {host.dead:6} {host.fetched:8} {host.pace.delay_ms / 1000:>6.2f} s  "
    click.echo(line + printable(host.name) + _why(host))


def _why(host: HostFigures) -> str:
    if host.parked:
        return f"  (parked: {host.parked})"
    if host.pace.failures:
        return f"  (no answer {host.pace.failures} times, next {moment(host.pace.next_at)})"
    if host.queued and host.pace.next_at > SystemClock().now() + 10_000:
        return f"  (next {moment(host.pace.next_at)})"
    return ""


def _facts(host: HostFigures) -> dict[str, Any]:
    return {
        "host": host.name,
        "queued": host.queued,
        "leased": host.leased,
        "fetched": host.fetched,
        "done": host.done,
        "dead": host.dead,
        "delay": host.pace.delay_ms / 1000,
        "crawl_delay": None if host.pace.crawl_delay_ms is None else host.pace.crawl_delay_ms / 1000,
        "next_at": moment(host.pace.next_at),
        "failures": host.pace.failures,
        "parked": host.parked,
    }
