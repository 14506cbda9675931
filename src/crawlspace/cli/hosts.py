"""`crawlspace hosts`: the hosts of a crawl, their numbers and their clocks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli.brought import part, rule_in_words, suspect_in_words, suspects_by_host
from crawlspace.cli.options import as_json, directory_argument, echo_json, reading, run, settings_used
from crawlspace.clock import SystemClock
from crawlspace.observe.printable import printable
from crawlspace.observe.words import moment
from crawlspace.policy.pace import Breaker, breaker
from crawlspace.types import HostFigures, Reason

BATCH = 500
LONG_MS = 10_000
HEAD = f"{'queued':>8} {'done':>8} {'dead':>6} {'fetched':>8} {'delay':>8}  host"
GROUP = "group"
"""Why a host rests that waits for its pace group."""


@click.command("hosts")
@directory_argument
@click.option("--limit", type=click.IntRange(min=1), help="Show this many at most.")
@as_json
def command(directory: Path, limit: int | None, json_lines: bool) -> None:
    """Hosts by name: queued, fetched, delay, why one waits, and what looks like a trap on it."""
    tell = _tell if json_lines else _Table().show

    async def main() -> None:
        shown = 0
        settings = settings_used(CrawlDirectory(directory))
        async with reading(directory, settings) as (frontier, _):
            traps = await suspects_by_host(frontier, settings.traps)
            after = ""
            while (limit is None or shown < limit) and (batch := await frontier.hosts(after, BATCH)):
                for host in batch if limit is None else batch[: limit - shown]:
                    tell(host, traps.get(host.name, []))
                    shown += 1
                after = batch[-1].name

    run(main)


def _tell(host: HostFigures, traps: Sequence[dict[str, Any]]) -> None:
    echo_json(_facts(host) | {"suspects": traps})


class _Table:
    """Hosts in lines, under a head that is there when a host is."""

    def __init__(self) -> None:
        self._begun = False

    def show(self, host: HostFigures, traps: Sequence[dict[str, Any]]) -> None:
        if not self._begun:
            self._begun = True
            click.echo(HEAD)
        line = f"{host.queued:8} {host.done:8} {host.dead:6} {host.fetched:8} {host.pace.delay_ms / 1000:>6.2f} s  "
        click.echo(line + printable(host.name) + _why(host))
        for suspect in traps:
            click.echo(printable(f"  {suspect_in_words(suspect)}"))
            click.echo(printable(f"  {rule_in_words(suspect)}"))


def _why(host: HostFigures) -> str:
    told = [why for why in (waits(host, SystemClock().now()), _trap(host)) if why]
    return f"  ({'; '.join(told)})" if told else ""


def waits(host: HostFigures, now: int) -> str:
    """Why a host is not asked just now; empty when its turn will simply come."""
    if host.parked == GROUP:
        when = f", next {moment(host.group_next_at)}" if host.group_next_at > now + LONG_MS else ""
        return f"waits for its turn in a pace group: {printable(host.group or '')}{when}"
    if host.parked == Reason.ADDRESS_HOSTS:
        return f"parked: {host.parked}, too many hosts are at {printable(host.address or '')}"
    if host.parked:
        return f"parked: {host.parked}"
    match breaker(host.pace, now):
        case Breaker.OPEN:
            return f"no answer {host.pace.failures} times, next {moment(host.pace.next_at)}"
        case Breaker.HALF_OPEN:
            return f"no answer {host.pace.failures} times, about to be probed"
        case _:
            late = host.queued and host.pace.next_at > now + LONG_MS
            return f"next {moment(host.pace.next_at)}" if late else ""


def _trap(host: HostFigures) -> str:
    return f"looks like a trap: {host.alarm}" if host.alarm else ""


def _facts(host: HostFigures) -> dict[str, Any]:
    pace = host.pace
    return {
        "host": host.name,
        "queued": host.queued,
        "leased": host.leased,
        "fetched": host.fetched,
        "done": host.done,
        "dead": host.dead,
        "discovered": host.discovered,
        "discovered_per_fetch": round(host.discovered / host.fetched, 3) if host.fetched else None,
        "duplicates": host.duplicates,
        "duplicate_rate": part(host.duplicates, host.done),
        "same_text": host.exact,
        "same_text_rate": part(host.exact, host.done),
        "near_duplicates": host.near,
        "near_duplicate_rate": part(host.near, host.done),
        "links": host.links,
        "known_links": host.known,
        "known_link_rate": part(host.known, host.links),
        "alarm": host.alarm,
        "delay": pace.delay_ms / 1000,
        "crawl_delay": None if pace.crawl_delay_ms is None else pace.crawl_delay_ms / 1000,
        "latency": pace.latency_ms / 1000,
        "next_at": moment(pace.next_at),
        "failures": pace.failures,
        "slowed": pace.slowed,
        "breaker": str(breaker(pace, SystemClock().now())),
        "parked": host.parked,
        "address": host.address,
        "group": host.group,
        "group_next_at": moment(host.group_next_at) if host.group_next_at else None,
    }
