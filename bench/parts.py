"""`python -m bench.parts`: what each part of a page's way costs, beside the library that one would take instead.

usage: python -m bench.parts [--only links --only pages] [--peers-python PATH] [--out build/parts.jsonl]

CPU time, the lowest of several rounds in which the contenders take turns: links, pages and the frontier in this
process, each on the same input; requests, archive, imports and what Scrapy and Crawlee do by their own benchmarks, in
processes of their own. A peer that is not installed is left out, and said so. Prints one table; `--out` adds a line
of JSON for each figure.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser

from bench import known, urls
from bench.calibration import seconds
from bench.content import files_of_docs, pages_of_docs
from bench.sites import REAL_SITES
from crawlspace.content.simhash import text_simhash
from crawlspace.content.text import text_digest
from crawlspace.content.volatile import mask
from crawlspace.exchange import Headers
from crawlspace.pages.links import PageSettings, read_page
from crawlspace.pages.scan import scan

OURS: Final = "crawlspace"
_HEADERS: Final = Headers(((b"Content-Type", b"text/html; charset=utf-8"),))
_URL: Final = "https://docs.example.org/manual/page.html"
_LINKS: Final = 20_000
_OFFERS: Final = 50_000
_HOSTS: Final = 200
_PEERS: Final = Path(__file__).parent / "peers" / "parts.py"
_UNITS: Final = {"links of a page": ("ms a page of 42 KB", 1e-3), "claim": ("us a URL", 1.0)}
"""Of the parts that peers have, and what their microseconds are multiplied with; the others are of links."""
_IMPORTS: Final = (
    "import sys, time; begin = time.process_time(); __import__(sys.argv[1]); print(time.process_time() - begin)"
)


class Figure(NamedTuple):
    """One cost."""

    part: str
    unit: str
    who: str
    cost: float


Work = Callable[[bytes], object]


def links(rounds: int) -> Iterator[Figure]:
    """Normalise and key."""
    found = urls.links_of(REAL_SITES["py"].folder, _LINKS)
    recipe: dict[str, urls.Reader] = {"urllib": urls.read_by_recipe}
    w3lib = urls.read_by_w3lib()
    if w3lib is not None:
        recipe["w3lib"] = w3lib
    for part, reader in (("normalise", urls.read_forms), ("normalise and key", urls.read_keys)):
        spent = urls.measure({OURS: reader} | recipe, found, rounds)
        yield from (Figure(part, "us a link", who, cost) for who, cost in spent.items())


def pages(rounds: int) -> Iterator[Figure]:
    """Links out of pages, their text's digest and SimHash."""
    bodies = pages_of_docs()
    settings = PageSettings()
    extractors: dict[str, Work] = {
        OURS: lambda body: read_page(body, _URL, _HEADERS, settings),
        "selectolax": lambda body: [node.attrs.get("href") for node in LexborHTMLParser(body).css("a[href]")],
        **_lxml(),
    }
    yield from _figures("links of a page", "ms a page of 42 KB", extractors, bodies, rounds)
    # What the text costs beside the links that are read with it, and what is made of it.
    without = _lowest([lambda body=body: scan(body, _LINKS, text=False) for body in bodies], rounds)
    digests = [lambda body=body: text_digest(mask(scan(body, _LINKS).text or b"")) for body in bodies]
    yield Figure("text digest", "ms a page of 42 KB", OURS, _lowest(digests, rounds) - without)
    texts = [mask(scan(body, 0).text or b"") for body in bodies]
    hashes = [lambda text=text: text_simhash(text) for text in texts]
    yield Figure("SimHash", "ms a page of 42 KB", OURS, _lowest(hashes, rounds))


def requests(rounds: int) -> Iterator[Figure]:
    """Requests over plain connections, kept TLS and a new TLS connection each."""
    for over in ("plain", "tls", "new-tls"):
        for row in _told("bench.fetch", "--json", "--over", over, "--rounds", str(rounds)):
            page = row.pop("page")
            part = f"request, {row.pop('over')}, {page}"
            for who, cost in row.items():
                yield Figure(part, "us a request", str(who), float(str(cost)))


def frontier(rounds: int) -> Iterator[Figure]:
    """Claims at 80 % duplicates, leases and settlements in SQLite, on this thread."""
    spent: dict[str, list[float]] = {"claim": [], "lease": [], "settle": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="bench-parts-") as folder:
            for part, cost in asyncio.run(_frontier_once(Path(folder, "frontier.db"))):
                spent[part].append(cost)
    yield from (Figure(part, "us a URL", OURS, min(costs)) for part, costs in spent.items())


async def _frontier_once(path: Path) -> list[tuple[str, float]]:
    """Microseconds for each offer, each leased and each settled URL, of one whole crawl's worth."""
    store = await known.opened(path)
    batches = list(known.offers(_HOSTS, _HOSTS, _OFFERS))
    gc.collect()
    begin = time.process_time()
    for batch in batches:
        await store.claim(batch)
    claimed = time.process_time() - begin
    leased = settled = count = 0.0
    begin = time.process_time()
    while leases := await store.lease(known.MANY):
        leased += time.process_time() - begin
        told = known.settlements(leases)
        count += sum(len(lease.urls) for lease in leases)
        begin = time.process_time()
        await store.settle(told, [])
        settled += time.process_time() - begin
        begin = time.process_time()
    await store.close()
    return [("claim", claimed / _OFFERS * 1e6), ("lease", leased / count * 1e6), ("settle", settled / count * 1e6)]


def archive(rounds: int) -> Iterator[Figure]:
    """A page into WARC."""
    for row in _told("bench.warc", "--json", "--rounds", str(rounds)):
        yield Figure(str(row["part"]), str(row["unit"]), str(row["who"]), float(str(row["cost"])))


def imports(rounds: int) -> Iterator[Figure]:
    """`import crawlspace`, and its command line."""
    for module in ("crawlspace", "crawlspace.cli"):
        yield Figure(f"import {module}", "ms", OURS, _import(sys.executable, module, rounds))


def peers(python: str, rounds: int) -> Iterator[Figure]:
    """What Scrapy and Crawlee do in the same parts, on the same input; nothing where they are not installed."""
    given = {
        "links": urls.links_of(REAL_SITES["py"].folder, _LINKS // 4),
        "pages": [str(path) for path in files_of_docs()],
        "offers": [
            claim.address.fetch_url for batch in known.offers(_HOSTS, _HOSTS, _OFFERS // 5) for claim in batch
        ],
    }
    command = [python, str(_PEERS), str(min(rounds, 3))]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"left out: Scrapy and Crawlee, since {python} cannot run {_PEERS.name} for them", file=sys.stderr)
        return
    for row in map(json.loads, done.stdout.splitlines()):
        unit, times = _UNITS.get(row["part"], ("us a link", 1.0))
        yield Figure(row["part"], unit, row["who"], row["cost"] * times)
    for module in ("scrapy", "crawlee.crawlers"):
        yield Figure("import crawlspace", "ms", f"import {module}", _import(python, module, rounds))


def _import(python: str, module: str, rounds: int) -> float:
    """Milliseconds of CPU that it takes in a new process, files compiled."""
    told = [
        subprocess.run([python, "-c", _IMPORTS, module], stdout=subprocess.PIPE, text=True, check=True).stdout
        for _ in range(rounds + 1)
    ]
    return min(map(float, told)) * 1000


PARTS: Final[dict[str, Callable[[int], Iterator[Figure]]]] = {
    "links": links,
    "pages": pages,
    "requests": requests,
    "frontier": frontier,
    "archive": archive,
    "imports": imports,
}


def _is_beside(peer: Figure, figures: Sequence[Figure]) -> bool:
    return any(figure.part == peer.part for figure in figures)


def _told(*module: str) -> Iterator[dict[str, object]]:
    """The lines of JSON that another benchmark prints."""
    done = subprocess.run([sys.executable, "-m", *module], stdout=subprocess.PIPE, text=True, check=True)
    yield from (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))


def _lxml() -> dict[str, Work]:
    try:
        from lxml import html
    except ImportError:
        return {}
    return {"lxml": lambda body: html.fromstring(body).xpath("//a/@href")}


def _figures(
    part: str, unit: str, workers: dict[str, Work], bodies: Sequence[bytes], rounds: int
) -> Iterator[Figure]:
    lowest = dict.fromkeys(workers, float("inf"))
    for _ in range(rounds):
        for who, work in workers.items():
            begin = time.process_time()
            for body in bodies:
                work(body)
            lowest[who] = min(lowest[who], (time.process_time() - begin) / len(bodies) * 1000)
    yield from (Figure(part, unit, who, cost) for who, cost in lowest.items())


def _lowest(works: Sequence[Callable[[], object]], rounds: int) -> float:
    """Milliseconds for each of these, in the best round."""
    lowest = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        for work in works:
            work()
        lowest = min(lowest, (time.process_time() - begin) / len(works) * 1000)
    return lowest


def table(figures: Sequence[Figure]) -> str:
    """One row a part: ours, then each peer and how many times ours it takes."""
    rows = ["| part | unit | crawlspace | beside |", "| :--- | :--- | ---: | :--- |"]
    for part in dict.fromkeys(figure.part for figure in figures):
        costs = {figure.who: figure.cost for figure in figures if figure.part == part}
        unit = next(figure.unit for figure in figures if figure.part == part)
        ours = costs.pop(OURS, None)
        beside = [
            f"{who} {cost:.3g}" + (f" ({cost / ours:.2g} times)" if ours else "") for who, cost in costs.items()
        ]
        rows.append(f"| {part} | {unit} | {'' if ours is None else f'{ours:.3g}'} | {', '.join(beside)} |")
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts; the exit code is 2 when the documentation is not there."""
    parser = argparse.ArgumentParser(prog="python -m bench.parts", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", choices=PARTS, help="this part alone; may be repeated")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each (default: %(default)s)")
    parser.add_argument("--peers-python", metavar="PATH", help="a Python that has Scrapy and Crawlee")
    parser.add_argument("--out", type=Path, help="where a line of JSON for each figure is added")
    options = parser.parse_args(arguments)
    if problems := [problem for site in REAL_SITES.values() if (problem := site.missing())]:
        print("\n".join(problems), file=sys.stderr)
        return 2
    missing = [name for name in ("w3lib", "lxml", "aiohttp") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"left out, since they are not installed here: {', '.join(missing)}", file=sys.stderr)
    figures: list[Figure] = []
    for name in options.only or PARTS:
        figures += PARTS[name](options.rounds)
    if options.peers_python:
        figures += [each for each in peers(options.peers_python, options.rounds) if _is_beside(each, figures)]
    print(f"calibration {seconds():.3f} s of CPU\n\n{table(figures)}")
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with options.out.open("a", encoding="utf-8") as out:
            out.writelines(f"{json.dumps(figure._asdict())}\n" for figure in figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
