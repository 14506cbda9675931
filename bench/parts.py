"""`python -m bench.parts`: what each part of a page's way costs, beside the library that one would take instead.

usage: python -m bench.parts [--only links --only pages] [--out build/parts.jsonl]

CPU time, the frontier apart, the lowest of several rounds in which the contenders take turns: links and pages in this
process, each on the same input; requests, frontier and archive by their own benchmarks, in processes of their own. A
peer that is not installed is left out, and said so. Prints one table; `--out` adds a line of JSON for each figure.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser

from bench import urls
from bench.calibration import seconds
from bench.content import pages_of_docs
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
        **_scrapy(),
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
    """Claim, and lease with settlement, in SQLite; by the clock, so that work on other threads counts too."""
    rows = [row for _ in range(min(rounds, 3)) for row in _told("bench.frontier", "sqlite", "--urls", "50000")]
    for key, part in (("offers_per_second", "claim"), ("settled_per_second", "lease and settle")):
        rates = [float(str(row[key])) for row in rows if row.get(key)]
        if rates:
            yield Figure(part, "us a URL", OURS, 1e6 / max(rates))


def archive(rounds: int) -> Iterator[Figure]:
    """A page into WARC."""
    for row in _told("bench.warc", "--json", "--rounds", str(rounds)):
        yield Figure(str(row["part"]), str(row["unit"]), str(row["who"]), float(str(row["cost"])))


PARTS: Final[dict[str, Callable[[int], Iterator[Figure]]]] = {
    "links": links,
    "pages": pages,
    "requests": requests,
    "frontier": frontier,
    "archive": archive,
}


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


def _scrapy() -> dict[str, Work]:
    try:
        from scrapy.http import HtmlResponse
        from scrapy.linkextractors import LinkExtractor
    except ImportError:
        return {}
    extractor = LinkExtractor()
    return {"scrapy": lambda body: extractor.extract_links(HtmlResponse(_URL, body=body, encoding="utf-8"))}


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
    parser.add_argument("--out", type=Path, help="where a line of JSON for each figure is added")
    options = parser.parse_args(arguments)
    if problems := [problem for site in REAL_SITES.values() if (problem := site.missing())]:
        print("\n".join(problems), file=sys.stderr)
        return 2
    missing = [name for name in ("w3lib", "lxml", "scrapy", "aiohttp") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"left out, since they are not installed here: {', '.join(missing)}", file=sys.stderr)
    figures: list[Figure] = []
    for name in options.only or PARTS:
        figures += PARTS[name](options.rounds)
    print(f"calibration {seconds():.3f} s of CPU\n\n{table(figures)}")
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with options.out.open("a", encoding="utf-8") as out:
            out.writelines(f"{json.dumps(figure._asdict())}\n" for figure in figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
