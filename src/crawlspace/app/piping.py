"""Records on their way from parsers to where they are kept: through the stages of `parsers.pipelines`.

The stages are those of exports, `exports.pipeline`. What goes through is a dict of `url`, `parser`, `version` and
`data`, of which `data` goes on. Keys and digests are made of what the last stage leaves, so that a record is the same
however it was changed on its way. A stage that fails is the parser's failure on that page, and kept with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from crawlspace import events
from crawlspace.app.exporting.stages import load_stages
from crawlspace.exports.pipeline import Pipeline, Stage, StageFailed
from crawlspace.parsers import Document, Parser
from crawlspace.parsers.records import Item, as_mapping, each_of
from crawlspace.parsers.settings import ParserSettings

REASONS_TOLD = 20


class Way(NamedTuple):
    """Parsers whose records go through the stages."""

    parsers: Sequence[Parser]
    dropped: Counter[str]
    """How many records were dropped for each reason so far."""


class Reads(Protocol):
    """Whoever runs parsers."""

    parsers: Sequence[Parser]


@contextmanager
def piped(parsers: Sequence[Parser], settings: ParserSettings, beside: Path) -> Iterator[Way]:
    """The parsers with the stages behind them, which end with the context; raises `UsageError` for what is none.

    `beside` is where files are looked for first.
    """
    if not settings.pipelines:
        yield Way(parsers, Counter())
        return
    with Pipeline(_stages(settings.pipelines, beside)) as pipeline:
        yield Way([_through(pipeline, each) for each in parsers], pipeline.dropped)


@asynccontextmanager
async def piping(
    reader: Reads, settings: ParserSettings, beside: Path, watch: Callable[[events.Warned], None]
) -> AsyncIterator[None]:
    """Put the stages behind a reader's parsers as long as it reads; what was dropped is told at the end."""
    with piped(reader.parsers, settings, beside) as way:
        reader.parsers = way.parsers
        try:
            yield
        finally:
            for reason, count in way.dropped.most_common(REASONS_TOLD):
                watch(events.Warned(f"{count} records were dropped by the pipeline: {reason}"))


@lru_cache(maxsize=8)
def _stages(names: tuple[str, ...], beside: Path) -> tuple[Stage, ...]:
    """Modules are loaded once in a process."""
    return tuple(load_stages([_found(name, beside) for name in names]))


def _found(name: str, beside: Path) -> str:
    place, _, stage = name.rpartition(":")
    path = beside / place
    return f"{path.resolve()}:{stage}" if place.endswith(".py") and path.is_file() else name


def _through(pipeline: Pipeline, parser: Parser) -> Parser:
    def parse(page: Document) -> Iterator[Item]:
        for given in each_of(parser.parse(page)):
            item = given if isinstance(given, Item) else Item(given)
            row = {"url": page.url, "parser": parser.name, "version": parser.version, "data": as_mapping(item.data)}
            left = pipeline.run(row)
            if left is None:
                continue
            if "data" not in left:
                raise StageFailed("the pipeline returned an item without 'data'")
            yield replace(item, data=left["data"])

    return replace(parser, parse=parse)
