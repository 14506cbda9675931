"""A batch of captures parsed: the same function in this process, in a pool of processes, or on another machine.

All that it needs comes with the job, and all that it gives are lines for the journal: nothing is written here.
"""

from __future__ import annotations

import resource
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.parsing import load_parser
from crawlspace.app.piping import piped
from crawlspace.app.raw import read_archive
from crawlspace.app.reparsing.selection import Task
from crawlspace.archive.warc import WarcArchive
from crawlspace.clock import SystemClock
from crawlspace.errors import StoreDamaged
from crawlspace.fetch.replay import result_of
from crawlspace.parsers import Document, Parsed, Parser, Way
from crawlspace.records.entries import line_of
from crawlspace.settings import Settings

SECONDS = 120.0
"""What a batch may take when its pages are trusted: a thousand times the usual."""
MEMORY = 4 << 30
"""Address space of a process that trusts pages, bytes."""


class Job(Struct, frozen=True):
    """What is the same for all batches."""

    directory: Path
    parser: str
    """Its name, by which each process loads it."""
    settings: Settings


@dataclass(slots=True)
class Batch:
    """What came of a batch."""

    lines: list[bytes] = field(default_factory=list)
    parsed: int = 0
    records: int = 0
    failed: int = 0
    """Captures on which the parser raised an error, which is kept with them."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Records that the pipeline dropped, by reason."""
    unreadable: list[str] = field(default_factory=list)
    """Captures that the archive does not have as they were written, in words."""


def alone() -> None:
    """Set a process of a pool up: who started it decides when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def parse_batch(job: Job, tasks: Sequence[Task]) -> Batch:
    """Parse captures with the job's parser, whatever they are."""
    ready = _ready(job)
    return parse_with(ready.parser, ready.archive, job, tasks)


def parse_trusting(job: Job, tasks: Sequence[Task]) -> Batch:
    """The same, without looking first whether a page was made to take for ever: one that does ends the process.

    Looking costs as much as parsing. Nothing can interrupt the parser but the system: the alarm and the limit of
    memory are the process's own end, and who started it goes on with `parse_batch`.
    """
    ready = _ready(job)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return parse_with(ready.parser, ready.archive, job, tasks, bounded=False)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def parse_with(
    parser: Parser, archive: WarcArchive, job: Job, tasks: Sequence[Task], *, bounded: bool = True
) -> Batch:
    """Parse captures of this archive with this parser, its records going through the pipeline that is set."""
    with piped([parser], job.settings.parsers, job.directory) as way:
        batch = _parsed(way.parsers[0], archive, job, tasks, bounded=bounded)
        batch.dropped = way.dropped
    return batch


def _parsed(parser: Parser, archive: WarcArchive, job: Job, tasks: Sequence[Task], *, bounded: bool) -> Batch:
    batch = Batch()
    for task in tasks:
        try:
            parsed = _parse(parser, archive, job, task, bounded)
        except StoreDamaged as error:
            batch.unreadable.append(f"{task.captured.url}: {error.message}")
            continue
        batch.lines.append(line_of(task.captured, parsed))
        batch.parsed += 1
        batch.records += len(parsed.records)
        batch.failed += parsed.error is not None
    return batch


def _parse(parser: Parser, archive: WarcArchive, job: Job, task: Task, bounded: bool) -> Parsed:
    """One capture. A function of its own, so that the page is let go of before the next one is read."""
    result = result_of(archive.response(task.captured.pointer), job.settings.fetch)
    way = Way(task.label, task.meta, task.depth)
    document = Document(result, way, job.settings.discovery, bounded=bounded)
    return parser.run(document) or Parsed(parser.name, parser.version)


def crashed(parser: Parser, task: Task) -> bytes:
    """The line of a capture that took down every process that tried it."""
    parsed = Parsed(parser.name, parser.version, error="the process that parsed it died: out of memory, or a crash")
    return line_of(task.captured, parsed)


class _Ready:
    """What a process keeps between the batches of a job."""

    job: Job | None = None
    parser: Parser
    archive: WarcArchive


def _ready(job: Job) -> type[_Ready]:
    if job != _Ready.job:
        _Ready.archive = archive_of(job)
        _Ready.parser = load_parser(job.parser, job.directory)
        _Ready.job = job
    return _Ready


def archive_of(job: Job) -> WarcArchive:
    """The archive that a job reads."""
    return read_archive(CrawlDirectory(job.directory), job.settings, SystemClock())
