"""`python -m bench.growth`: what a URL costs that is found and waits, and what a page costs when millions are known.

usage: python -m bench.growth [--pages 50 250] [--known 10000 1000000] [--peers-python PATH]

**Discovered.** A site without end is crawled twice, to a smaller and to a larger number of pages; each page has 1,000
links that nobody has seen. Between the two runs lie 1,000 URLs for each page more: the differences in CPU, memory and
disk, divided by them, are what one costs. A page's own cost is in it, a thousandth for each of its links.

**Known.** A crawl of which so many URLs are known already, on other hosts, is given the PostgreSQL documentation: CPU
a page, highest memory, and the seconds from the start of the command to its first request.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bench import processes, table
from bench.frontier import address
from bench.known import arrivals
from bench.server import serving
from bench.sites import REAL_SITES, pages_of
from crawlspace.app.compose import Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.policy.commands import Hold
from crawlspace.settings import load
from crawlspace.types import Claim, host_id

LINKS = 1000
CONCURRENCY = 8
BATCH = 20_000
HOSTS = 20_000
CALM = {
    "host.delay": "0",
    "host.concurrency": str(CONCURRENCY),
    "network.allow": '["127.0.0.0/8"]',
}
LOOK_SECONDS = 0.005

Command = Callable[[str, int], list[str]]


@dataclass(frozen=True, slots=True)
class Slope:
    """What one discovered URL costs."""

    name: str
    cpu_ms: float
    rss_bytes: float
    disk_bytes: float


@dataclass(frozen=True, slots=True)
class Known:
    """What a crawl costs of which so many URLs are known."""

    known: int
    cpu_ms: float
    """For a page, start-up included."""
    rss_mb: float
    first_request: float
    """Seconds from the start of the command."""


def crawlspace(url: str, pages: int) -> list[str]:
    """A crawl in the folder `crawl` that stops after so many pages; 0: when it has all."""
    settings = dict(CALM, **({"budget.pages": str(pages)} if pages else {}))
    options = [part for key, value in settings.items() for part in ("-s", f"{key}={value}")]
    return [sys.executable, "-m", "crawlspace", "crawl", url, "--dir", "crawl", "-q", *options]


def scrapy(python: str, *job: str) -> Command:
    """The spider of `make bench`, stopped after so many pages."""
    spider = str(Path(__file__).parent / "peers" / "scrapy_spider.py")
    return lambda url, pages: [python, spider, url, str(CONCURRENCY), *(job or [""]), str(pages)]


@contextmanager
def tree() -> Iterator[str]:
    """The site without end; its address."""
    command = [sys.executable, "-m", "bench.tree", str(LINKS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
        finally:
            process.kill()


def discovered(name: str, command: Command, url: str, pages: Sequence[int]) -> Slope:
    """Crawl to both numbers of pages; what lies between them, for each URL."""
    runs = []
    for number in pages:
        with tempfile.TemporaryDirectory(prefix="bench-growth-") as folder:
            work = Path(folder) / "work"
            work.mkdir()
            used = processes.run(command(url, number), work, 600)
            disk = sum(
                path.stat().st_size for path in work.rglob("*") if path.is_file() and "archive" not in path.parts
            )
            runs.append((used.cpu, used.rss_mb, disk))
    small, large = runs
    urls = (pages[1] - pages[0]) * LINKS
    return Slope(
        name,
        (large[0] - small[0]) * 1e3 / urls,
        (large[1] - small[1]) * 1e6 / urls,
        (large[2] - small[2]) / urls,
    )


async def prepare(crawl: Path, known: int) -> None:
    """Make a crawl of which so many URLs are known: queued, on hosts that are paused.

    They come in the order of their keys, which makes ten millions in minutes."""
    settings = load(None, {}, [f"{key}={value}" for key, value in CALM.items()])
    async with open_crawl(CrawlDirectory(crawl), Plan(settings)) as opened:
        hosts = {each.host: host_id(each.key) for each in (address(number, HOSTS) for number in range(HOSTS))}
        await opened.frontier.hold([(number, name) for name, number in hosts.items()], Hold.PAUSED)
        numbers = arrivals(known, HOSTS, by_host=True)
        while batch := [Claim(address(number, HOSTS), depth=3, parent=1) for number in islice(numbers, BATCH)]:
            await opened.frontier.claim(batch)


def with_known(known: int) -> Known:
    """Crawl the PostgreSQL documentation beside so many URLs."""
    site = REAL_SITES["pg"]
    with tempfile.TemporaryDirectory(prefix="bench-growth-") as name:
        folder = Path(name)
        work = folder / "work"
        work.mkdir()
        asyncio.run(prepare(work / "crawl", known))
        with serving([site], folder / "server") as server:
            served = server[site.name]
            first = first_request(crawlspace(served.url, 0), work, folder / "server" / f"{site.name}.log")
            used = processes.run(crawlspace(served.url, 0), work, 600)
    return Known(known, used.cpu * 1000 / len(pages_of(site)), used.rss_mb, first)


def first_request(command: Sequence[str], work: Path, log: Path) -> float:
    """Seconds from the start of the command until the server's log has a line; the command is then killed."""
    begin = time.monotonic()
    process = processes.start(command, work)
    try:
        while not log.stat().st_size and process.poll() is None:
            time.sleep(LOOK_SECONDS)
        return time.monotonic() - begin
    finally:
        processes.kill_group(process.pid)
        process.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth")
    parser.add_argument("--pages", type=int, nargs=2, default=[50, 250], metavar=("FEW", "MANY"))
    parser.add_argument("--known", type=int, nargs="*", default=[10_000, 1_000_000])
    parser.add_argument("--peers-python", metavar="PATH", help="a Python that has Scrapy")
    options = parser.parse_args(arguments)
    contenders: dict[str, Command] = {"crawlspace": crawlspace}
    if options.peers_python:
        contenders["scrapy"] = scrapy(options.peers_python)
        contenders["scrapy-jobdir"] = scrapy(options.peers_python, "job")
    with tree() as url:
        slopes = [discovered(name, command, url, options.pages) for name, command in contenders.items()]
    rows = [(each.name, f"{each.cpu_ms:.3f}", f"{each.rss_bytes:,.0f}", f"{each.disk_bytes:,.0f}") for each in slopes]
    print(table.markdown(("per discovered URL", "CPU ms", "RSS bytes", "disk bytes"), rows))
    if options.known:
        found = [with_known(known) for known in options.known]
        rows = [
            (f"{each.known:,}", f"{each.cpu_ms:.2f}", f"{each.rss_mb:.0f}", f"{each.first_request:.2f}")
            for each in found
        ]
        print("\n" + table.markdown(("URLs known", "CPU ms/page", "RSS MB", "first request s"), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
