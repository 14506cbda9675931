"""Parsing again what the archive has: `crawlspace reparse`. No request is ever sent.

What a parser makes of a capture replaces, as a whole, what an older version of it made of the same capture. It is
durable batch by batch; killed at any moment, the same call goes on where it was, since what this version has read is
left alone. URLs in state `stored`, whose processing failed while crawling, are read again first, as the crawl reads
them, and are done when that succeeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from crawlspace.app.compose import OpenCrawl, Plan, open_crawl, reader_of
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.parsing import recorded, records_at, rules_of
from crawlspace.app.piping import piping
from crawlspace.app.raw import disk_of, read_archive
from crawlspace.app.reparsing.batch import Batch, Job
from crawlspace.app.reparsing.pools import Here, Pool
from crawlspace.app.reparsing.selection import CAPTURED, Choosing, Chosen, Task
from crawlspace.app.reparsing.sightings import note_sightings
from crawlspace.app.snapshot import Elsewhere, Whereabouts, open_snapshot
from crawlspace.app.sql import numbers_where
from crawlspace.app.store import put_right
from crawlspace.archive.warc import WarcArchive
from crawlspace.clock import Clock
from crawlspace.engine.reading import Reader
from crawlspace.errors import StoreDamaged
from crawlspace.fetch.replay import result_of
from crawlspace.parsers import Parser
from crawlspace.records import Records, fold
from crawlspace.records.views import parsed
from crawlspace.settings import Settings
from crawlspace.types import Captured, Finished, Pointer, QueuedUrl, Relation, Story, Unusable, host_id

STORED_AT_ONCE = 100
DAMAGES_KEPT = 1000
"""Captures that could not be read and are named; the rest is counted."""


@dataclass(slots=True)
class Reparsed:
    """What became of a re-parsing."""

    parsed: int = 0
    records: int = 0
    failed: int = 0
    """Captures on which the parser raised an error, which is kept with them."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Records that the pipeline dropped, by reason."""
    current: int = 0
    """Captures that this version had read."""
    newer: int = 0
    """Captures that a newer version had read, which are left alone."""
    damaged: int = 0
    damages: list[str] = field(default_factory=list)
    """Captures that could not be read, in words, no more than `DAMAGES_KEPT`."""
    elsewhere: Elsewhere = field(default_factory=Elsewhere)
    """Captures in the archives of other workers, whose own directories parse them."""
    finished: int = 0
    """URLs that were stored and are done."""
    unfinished: int = 0
    """URLs that are stored still."""

    def see(self, batch: Batch) -> None:
        """Count a batch."""
        self.parsed += batch.parsed
        self.records += batch.records
        self.failed += batch.failed
        self.dropped += batch.dropped
        self.damaged += len(batch.unreadable)
        self.damages += batch.unreadable[: DAMAGES_KEPT - len(self.damages)]

    def left(self, why: str) -> None:
        """Count a capture that is left alone."""
        self.current += why == "current"
        self.newer += why == "newer"


Watch = Callable[[Reparsed], None]


class Order(Struct, frozen=True):
    """What is to be parsed again, and how."""

    parser: Parser
    name: str
    """The name by which other processes load the parser."""
    chosen: Chosen = Chosen()
    pool: Pool | None = None
    """None: this process alone."""


def reparse(
    directory: CrawlDirectory,
    settings: Settings,
    order: Order,
    watch: Watch = lambda _: None,
    done: Reparsed | None = None,
) -> Reparsed:
    """Parse again; raises `UsageError`, `CrawlDirInUse` while the crawl runs, `StoreError` or `DiskFull`."""
    done = done or Reparsed()
    directory.require()
    place, rules = records_at(directory), rules_of(settings.identity)
    with directory.locked():
        records = Records(place)
        with open_snapshot(directory, settings) as snapshot:
            whereabouts = Whereabouts(directory, disk_of(settings.archive), snapshot.owner)
            is_here: Callable[[Pointer], bool] = lambda pointer: whereabouts.owner_at_once(pointer) is None  # noqa: E731
            note_sightings(records, (place, rules), snapshot.visited_again(), is_here)
        pool = order.pool or Here(order.parser)
        job = Job(directory.path.resolve(), order.name, settings)
        try:
            for batch in pool.run(job, _tasks(directory, settings, order, done)):
                records.write_lines(batch.lines)
                done.see(batch)
                watch(done)
        finally:
            records.seal()
        fold(place, rules, tidy=True)
    return done


def _tasks(directory: CrawlDirectory, settings: Settings, order: Order, done: Reparsed) -> Iterator[Task]:
    """The captures to parse."""
    chosen = order.chosen
    with ExitStack() as stack:
        snapshot = stack.enter_context(open_snapshot(directory, settings))
        whereabouts = Whereabouts(directory, disk_of(settings.archive), snapshot.owner)
        wanted = None
        if chosen.condition is not None:
            wanted = numbers_where(directory, settings, chosen.condition)
        read = parsed(records_at(directory), rules_of(settings.identity), order.parser.name)
        choosing = Choosing(order.parser, chosen, wanted, snapshot.visited_again())
        for tally in choosing.run(snapshot.stories(CAPTURED, chosen.host), read):
            if tally.task is None:
                done.left(tally.why)
            elif (owner := whereabouts.owner_at_once(tally.task.captured.pointer)) is not None:
                done.elsewhere[owner] += 1
            else:
                yield tally.task


# -- what is stored -----------------------------------------------------------------------------------------


async def finish_stored(directory: CrawlDirectory, plan: Plan, clock: Clock, done: Reparsed) -> None:
    """Read URLs again whose processing failed; those that succeed are done, with their links claimed."""
    async with open_crawl(directory, plan) as crawl:
        reader = reader_of(crawl)
        pipeline = piping(reader, plan.settings.parsers, directory.path, plan.watch)
        async with pipeline, recorded(directory, plan.settings, reader.parsers) as records:
            archive = read_archive(directory, plan.settings, clock)
            own = await put_right(directory, plan.settings.frontier(), clock) | await crawl.frontier.segments()
            again = Again(reader, archive, records, frozenset(own) if directory.shared.exists() else None)
            after = 0
            while stories := await crawl.frontier.unprocessed(after, STORED_AT_ONCE):
                after = stories[-1].id
                await _finish(crawl, again, stories, done)


class Again(NamedTuple):
    """What URLs are read again with."""

    reader: Reader
    archive: WarcArchive
    records: Records | None
    own: frozenset[str] | None
    """Archive files of this directory's workers, where there are others too."""

    def is_elsewhere(self, pointer: Pointer) -> bool:
        """Whether a capture that cannot be read is for another directory to read."""
        return self.own is not None and pointer.file not in self.own


async def _finish(crawl: OpenCrawl, again: Again, stories: Iterable[Story], done: Reparsed) -> None:
    reader, archive, records, _ = again
    for story in stories:
        url = _as_queued(crawl, story)
        pointer = story.evidence.pointer if story.evidence is not None else None
        if url is None or pointer is None or story.evidence is None or url.relation is Relation.SITEMAP_FILE:
            done.unfinished += 1
            continue
        try:
            result = result_of(archive.open(pointer), crawl.plan.settings.fetch)
        except StoreDamaged as error:
            done.unfinished += 1
            if not again.is_elsewhere(pointer):
                done.see(Batch(unreadable=[f"{story.url}: {error.message}"]))
            continue
        evidence = replace(story.evidence, error=None, detail="")
        item = await reader.again(Finished(0, host_id(url.key), url, evidence), result)
        if item is None:
            done.unfinished += 1
            continue
        if records is not None and item.parsed:
            await records.write(Captured(story.id, story.generation, story.url, pointer, evidence.at), item.parsed)
            await records.flush()
        assert isinstance(item.settlement, Finished), "that is what it is asked for"
        (settled,) = await crawl.frontier.finish_stored([item.settlement], item.claims)
        done.finished += settled


def _as_queued(crawl: OpenCrawl, story: Story) -> QueuedUrl | None:
    """A URL as a worker had it."""
    address = crawl.identity.identify(story.url, request=None)
    if isinstance(address, Unusable):
        return None
    return QueuedUrl(
        id=story.id,
        key=address.key,
        url=story.url,
        front_class=story.front_class or 0,
        depth=story.depth,
        hops=story.hops,
        attempts=story.attempts,
        relation=story.relation,
        found_at=story.found_at,
        label=story.label,
        meta=story.meta,
        generation=story.generation,
    )
