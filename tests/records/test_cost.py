"""What re-parsing costs beside bare reading.

That is fastwarc with the blocks' digests compared, lexbor, and the href of every element that the parser `links`
looks at, each distinct one resolved against the page's address by ada's parser. It decodes no charset, looks for no
base element, writes nothing, and trusts what it reads.

CPU of one process for both, in turns in one run, the best of some: load moves both alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import can_ada
import pytest
from selectolax.lexbor import LexborHTMLParser

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.parsing import load_parser
from crawlspace.app.reparsing.batch import Job, archive_of, parse_with
from crawlspace.app.reparsing.pools import batches
from crawlspace.app.reparsing.selection import CAPTURED, Choosing, Chosen, Task
from crawlspace.cli.options import settings_used
from crawlspace.frontier.sqlite.export import open_snapshot
from crawlspace.pages.links import _SELECTOR
from crawlspace.pages.scan import COMPILED

Pack = Callable[..., CrawlDirectory]
compiled = pytest.mark.skipif(not COMPILED, reason="what reads pages was not compiled here")
DOCUMENTATION = [Path("/usr/share/doc/python3.11/html"), Path("/usr/share/doc/postgresql-doc-15/html")]


def pages(count: int) -> list[Any]:
    """Real pages, under as many hosts as it takes."""
    files = sorted(file for root in DOCUMENTATION for file in root.rglob("*.html"))
    if not files:
        pytest.skip("Debian's documentation packages are not installed")
    chosen = [(n, files[n * 7919 % len(files)]) for n in range(count)]
    return [
        SimpleNamespace(
            url=f"http://h{n // len(files)}.test{file}",
            body=file.read_bytes(),
            type="text/html",
            at=1_760_000_000_000,
        )
        for n, file in chosen
    ]


def bare(place: CrawlDirectory) -> None:
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    for file in place.archive.glob("*.warc.gz"):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream, record_types=WarcRecordType.response, parse_http=False):
                assert record.verify_block_digest()
                record.parse_http()
                addresses(LexborHTMLParser(record.reader.read()), record.headers["WARC-Target-URI"])


def addresses(tree: LexborHTMLParser, url: str) -> list[str]:
    """Where the links of a page lead, each once, in the least work that a program of a few lines has."""
    found = dict.fromkeys((node.attributes.get("href") or "").partition("#")[0] for node in tree.css(_SELECTOR))
    base = can_ada.parse(url)
    return [(base + text).href for text in found]


def tasks(place: CrawlDirectory) -> Iterator[Task]:
    settings = settings_used(place)
    with open_snapshot(place.database, settings.frontier()) as snapshot:
        choosing = Choosing(load_parser("links", place.path), Chosen(again=True))
        for tally in choosing.run(snapshot.stories(CAPTURED), ()):
            if tally.task is not None:
                yield tally.task


def ours(place: CrawlDirectory) -> None:
    job = Job(place.path, "links", settings_used(place))
    parser, archive = load_parser("links", place.path), archive_of(job)
    for batch in batches(tasks(place)):
        assert not parse_with(parser, archive, job, batch, bounded=False).unreadable


def ratio(place: CrawlDirectory, rounds: int) -> float:
    """How much of the pace of bare reading parsing again has."""
    best = {"bare": float("inf"), "ours": float("inf")}
    for _ in range(rounds):
        for name, work in (("bare", bare), ("ours", ours)):
            began = time.process_time()
            work(place)
            best[name] = min(best[name], time.process_time() - began)
    return best["bare"] / best["ours"]


@compiled
@pytest.mark.realsite
def test_parsing_again_is_not_many_times_slower_than_bare_reading(pack: Pack) -> None:
    """1.4 times the pace of bare reading is usual; other tests run beside it."""
    assert ratio(pack(pages(100)), 3) > 0.7


@compiled
@pytest.mark.long
@pytest.mark.realsite
def test_parsing_10_000_real_pages_again_keeps_the_pace_of_bare_reading(pack: Pack) -> None:
    assert ratio(pack(pages(10_000)), 3) > 0.9
