"""`python -m bench.urls`: what one link costs to identify, beside the standard library's recipe and w3lib.

All read the same 20,000 links of the Python documentation, page by page, each link against the address of its page,
in one process, in interleaved rounds; what counts is CPU time, the lowest of the rounds, since whatever disturbs the
machine only adds to it. Ours is the call that a crawl makes: a page's links at once, in a process that has met other
pages before. Caches are new in each round; what a repeat within a page or a crawl saves is part of what a crawl pays,
so a second set of links has no repeats at all.

usage: python -m bench.urls [--rounds N] [--links N]
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from selectolax.lexbor import LexborHTMLParser

from bench.sites import REAL_SITES
from crawlspace.urls import CONSERVATIVE, IdentitySettings, canonicalize_many, policy_from
from crawlspace.urls.keys import Identity

ROUNDS = 7
LINKS = 20_000
BASE = "https://docs.python.org/3"

Pages = list[tuple[str, list[str]]]
"""Address and links of each page."""
Reader = Callable[[Pages], None]


def links_of(folder: Path, wanted: int) -> Pages:
    """The links of pages in an order of chance, until there are as many as wanted."""
    files = sorted(folder.rglob("*.html"))
    random.Random(1).shuffle(files)
    pages: Pages = []
    for file in files:
        found = LexborHTMLParser(file.read_bytes()).css("a[href]")
        links = [anchor.attributes.get("href") or "" for anchor in found][:wanted]
        pages.append((f"{BASE}/{file.relative_to(folder).as_posix()}", links))
        wanted -= len(links)
        if wanted <= 0:
            break
    return pages


def without_repeats(pages: Pages) -> Pages:
    """As many links, no two of them one page, each with a query."""
    return [
        (base, [f"{link.partition('#')[0]}?id={number}&page={page}&b=1" for number, link in enumerate(links)])
        for page, (base, links) in enumerate(pages)
    ]


def read_by_recipe(pages: Pages) -> None:
    """What the standard library has, put together as it usually is."""
    for base, links in pages:
        for link in links:
            try:
                _recipe(link, base)
            except ValueError:
                continue


def _recipe(link: str, base: str) -> str:
    parts = urlsplit(urljoin(base, link))
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    query = urlencode(sorted((name, value) for name, value in pairs if not name.startswith("utm_")))
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), parts.path or "/", query, ""))


def read_by_w3lib() -> Reader | None:
    """Scrapy's canonical form of the resolved link; None where w3lib is not installed."""
    try:
        from w3lib.url import canonicalize_url
    except ImportError:
        return None

    def read(pages: Pages) -> None:
        for base, links in pages:
            for link in links:
                try:
                    canonicalize_url(urljoin(base, link))
                except ValueError:
                    continue

    return read


def read_forms(pages: Pages) -> None:
    """Canonical forms, with caches that are new."""
    # Policies that are equal share their caches, so each round has a length of its own.
    policy = policy_from(IdentitySettings(max_length=8192 + next(_LENGTHS)))
    for base, links in pages:
        canonicalize_many(links, base, policy)


_LENGTHS = iter(range(10_000))


def read_keys(pages: Pages) -> None:
    """Fetch URL, canonical form, host and key: all that a crawl needs of a link."""
    identity = Identity(CONSERVATIVE)
    for base, links in pages:
        identity.identify_many(links, base)


def measure(readers: dict[str, Reader], pages: Pages, rounds: int) -> dict[str, float]:
    """Microseconds of CPU for one link, the lowest of the rounds; everyone once a round."""
    count = sum(len(links) for _, links in pages)
    lowest = dict.fromkeys(readers, float("inf"))
    chance = random.Random(0)
    for _ in range(rounds):
        order = list(readers)
        chance.shuffle(order)
        for name in order:
            begin = time.process_time()
            readers[name](pages)
            lowest[name] = min(lowest[name], (time.process_time() - begin) / count * 1e6)
    return lowest


def table(title: str, spent: dict[str, float]) -> str:
    """The figures, and how many times ours the others take."""
    ours = [name for name in spent if name.startswith("crawlspace")]
    others = [name for name in spent if name not in ours]
    head = ["", "us a link", *(f"{name} takes" for name in others)]
    rows = [
        [name, f"{spent[name]:.2f}", *(f"{spent[other] / spent[name]:.1f} times" for other in others)]
        for name in ours
    ]
    rows += [[name, f"{spent[name]:.2f}", *("" for _ in others)] for name in others]
    lines = [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows]]
    return "\n".join([f"\n{title}\n", *lines])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit code is 2 when the documentation is not there."""
    parser = argparse.ArgumentParser(prog="bench.urls", description="CPU time of one link, beside other readers.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="interleaved rounds (default: %(default)s)")
    parser.add_argument("--links", type=int, default=LINKS, help="links read in a round (default: %(default)s)")
    options = parser.parse_args(arguments)
    site = REAL_SITES["py"]
    if problem := site.missing():
        print(problem, file=sys.stderr)
        return 2
    readers: dict[str, Reader] = {"crawlspace forms": read_forms, "crawlspace keys": read_keys}
    readers["the recipe"] = read_by_recipe
    w3lib = read_by_w3lib()
    if w3lib is None:
        print("left out: w3lib, which comes with Scrapy and is not installed here", file=sys.stderr)
    else:
        readers["w3lib"] = w3lib
    pages = links_of(site.folder, options.links)
    count = sum(len(links) for _, links in pages)
    print(table(f"{count} links of {len(pages)} pages, as found", measure(readers, pages, options.rounds)))
    alone = without_repeats(pages)
    print(table(f"{count} links, all different, with a query", measure(readers, alone, options.rounds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
