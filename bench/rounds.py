"""Whole crawls in interleaved rounds: every contender once a round, in another order each time.

What disturbs the machine for a minute then falls on all alike, and results of one round may be divided by each
other. Before the first round each contender runs once unrecorded, so that compiled files and disk caches are there.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from bench import calibration, processes
from bench.contenders import Contender
from bench.results import Run
from bench.server import Server

START_UP = "one"
"""The site of one page: what it costs is what starting costs."""

_LOG_SECONDS = 0.1
"""The server writes its log after the answer is sent."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run."""

    contenders: Sequence[Contender]
    expected: Mapping[str, Set[str]]
    """Sites by name, and the pages of each."""
    rounds: int
    limit: float
    """Seconds that one crawl may take."""
    work: Path
    """Folder for the crawls; each is deleted when it is measured."""


def warm_up(plan: Plan, server: Server) -> None:
    """One crawl of the one-page site each, not kept."""
    for contender in plan.contenders:
        measure(contender, START_UP, plan, server)


def run_rounds(plan: Plan, server: Server, seed: int = 0) -> Iterator[Run]:
    """Every run as it is done."""
    chance = random.Random(seed)
    for number in range(plan.rounds):
        for site in (START_UP, *plan.expected):
            order = [each for each in plan.contenders if each.most_rounds is None or number < each.most_rounds]
            chance.shuffle(order)
            for contender in order:
                yield measure(contender, site, plan, server, number)


def measure(contender: Contender, site: str, plan: Plan, server: Server, number: int = 0) -> Run:
    """One crawl, seen from outside."""
    served = server[site]
    expected = plan.expected.get(site, frozenset({"/"}))
    loop = calibration.seconds()
    with tempfile.TemporaryDirectory(dir=plan.work, ignore_cleanup_errors=True) as name:
        folder = Path(name) / "crawl"
        folder.mkdir()
        served.log.mark()
        server_before = server.cpu()
        used = processes.run(contender.command(served.url), folder, plan.limit)
        time.sleep(_LOG_SECONDS)
        requests = served.log.requests()
        return Run(
            contender=contender.name,
            keeps=contender.keeps,
            bodies=contender.bodies,
            site=site,
            round=number,
            exit=used.exit,
            failed=used.exit not in contender.good_exits or not requests.pages,
            cpu=used.cpu,
            wall=used.wall,
            rss_mb=used.rss_mb,
            disk_mb=_size(folder) / 1e6,
            pages=len(requests.pages),
            missed=requests.missed(expected),
            beyond=requests.beyond(expected),
            twice=requests.repeats,
            others=requests.others,
            connections=len(requests.connections),
            server_cpu=server.cpu() - server_before,
            calibration=loop,
            said=used.said if used.exit else "",
        )


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
