"""`python -m bench.hosts`: pages a second from one host and from sixteen, by one process and by two, politely too.

usage: python -m bench.hosts [--rounds 3] [--pages 300]

Each host is a port of our own nginx with the same small site. A host is asked one thing at a time, as it is by
default: from one host the answers set the pace, from sixteen the crawler does, and two processes share sixteen hosts.
In the polite row every host has a delay of a quarter of a second: sixteen hosts then give 64 pages a second and no
more, and what the crawler uses meanwhile is what waiting costs. Rows take turns; the best round of each counts.
A crawl is under way from its first request to its last: how long processes take to start says nothing of them.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import processes, table
from bench.accesslog import AccessLog
from bench.server import Server, serving
from bench.sites import Site

HOSTS = 16
POLITE_DELAY = 0.25
POLITE_PAGES = 40
"""Of each host, in the polite row: ten seconds of crawling."""
LINKS = 40
WORDS = ("a page", "of a crawl", "has words", "such as these", "and says", "nothing", "worth", "reading twice")
LOG_SECONDS = 0.1
SAMPLE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Row:
    """One way of crawling."""

    name: str
    hosts: int
    workers: int = 1
    delay: float = 0


ROWS = (
    Row("one host", 1),
    Row("sixteen hosts", HOSTS),
    Row("sixteen hosts, two processes", HOSTS, workers=2),
    Row("sixteen hosts, 0.25 s each", HOSTS, delay=POLITE_DELAY),
)


@dataclass(frozen=True, slots=True)
class Figures:
    """What a crawl gave."""

    pages: int
    wall: float
    under_way: float
    """Seconds from the first request to the last."""
    cpu: float


class _Watch(threading.Thread):
    """When the first request came, and the last."""

    def __init__(self, logs: Sequence[AccessLog]) -> None:
        super().__init__(daemon=True)
        self._logs = logs
        self._ended = threading.Event()
        self._first = self._last = 0.0

    def run(self) -> None:
        before = 0
        while not self._ended.wait(SAMPLE_SECONDS):
            grown = sum(log.grown() for log in self._logs)
            if grown > before:
                self._last = time.monotonic()
                self._first = self._first or self._last
            before = grown

    def stop(self) -> float:
        """Seconds from the first to the last."""
        self._ended.set()
        self.join()
        return max(SAMPLE_SECONDS, self._last - self._first)


def site(folder: Path, name: str, pages: int) -> Site:
    """A site of so many pages of some 10 KB; each links to forty others."""
    chance = random.Random(1)
    (folder / name).mkdir(parents=True)
    for number in range(pages):
        links = "".join(
            f"<li><a href='{(number * LINKS + step) % pages}.html'>page</a>" for step in range(1, LINKS + 1)
        )
        text = " ".join(chance.choice(WORDS) for _ in range(800))
        page = f"<!doctype html><title>{name} {number}</title><ul>{links}</ul><p>{number} {text}"
        (folder / name / ("index.html" if number == 0 else f"{number}.html")).write_text(page, encoding="utf-8")
    return Site(name, folder / name)


def command(row: Row, urls: Sequence[str]) -> list[str]:
    """The crawl of a row."""
    settings = {
        "host.delay": f"{row.delay:g}",
        "concurrency.global": "64",
        "fetch.connections_per_address": "64",
        "network.allow": '["127.0.0.0/8"]',
    }
    options = [part for key, value in settings.items() for part in ("-s", f"{key}={value}")]
    options += ["--workers", str(row.workers)] if row.workers > 1 else []
    return [sys.executable, "-m", "crawlspace", "crawl", *urls, "--dir", "crawl", "-q", *options]


def crawl(row: Row, server: Server, names: Sequence[str]) -> Figures:
    """One crawl, seen from outside."""
    served = [server[name] for name in names[: row.hosts]]
    for each in served:
        each.log.mark()
    with tempfile.TemporaryDirectory(prefix="bench-hosts-") as folder:
        work = Path(folder) / "work"
        work.mkdir()
        watch = _Watch([each.log for each in served])
        watch.start()
        try:
            used = processes.run(command(row, [each.url for each in served]), work, 300)
        finally:
            under_way = watch.stop()
    if used.exit:
        raise RuntimeError(f"{row.name} ended with exit status {used.exit}: {used.said}")
    time.sleep(LOG_SECONDS)
    return Figures(sum(len(each.log.requests().pages) for each in served), used.wall, under_way, used.cpu)


def measure(rounds: int, pages: int) -> dict[str, list[Figures]]:
    """All rows, in rounds of another order each."""
    found: dict[str, list[Figures]] = {row.name: [] for row in ROWS}
    chance = random.Random(0)
    order = [row for _ in range(rounds) for row in chance.sample(ROWS, len(ROWS))]
    with tempfile.TemporaryDirectory(prefix="bench-hosts-") as name:
        folder = Path(name)
        fast = [site(folder / "sites", f"host{number}", pages) for number in range(HOSTS)]
        slow = [site(folder / "sites", f"slow{number}", POLITE_PAGES) for number in range(HOSTS)]
        with serving([*fast, *slow], folder / "server") as server:
            for row in order:
                found[row.name].append(crawl(row, server, [each.name for each in (slow if row.delay else fast)]))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.hosts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=300, help="pages of each host (default: %(default)s)")
    options = parser.parse_args(arguments)
    rows = []
    for name, runs in measure(options.rounds, options.pages).items():
        best = max(runs, key=lambda run: run.pages / run.wall)
        rate = max(run.pages / run.under_way for run in runs)
        cpu = min(run.cpu * 1000 / run.pages for run in runs)
        rows.append((name, str(best.pages), f"{best.pages / best.wall:.0f}", f"{rate:.0f}", f"{cpu:.2f}"))
    print(table.markdown(("", "pages", "pages/s, start included", "pages/s under way", "CPU ms/page"), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
