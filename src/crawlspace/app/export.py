"""What a crawl knows, written for other programs: its URLs, captures, links and pages, in the formats they read.

Everything is of one moment of the store and goes through in a stream: a crawl may run meanwhile, and memory is that
of one page, whatever the number of URLs. What cannot be read in the archive is told and left out; nothing stops for
it. Rows may go through a pipeline on their way; what that drops is counted by reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from crawlspace import __version__
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.duplicates import open_duplicates
from crawlspace.app.exporting.captures import Captures, Maker
from crawlspace.app.exporting.recorded import record_rows
from crawlspace.app.exporting.rows import COLUMNS, Rows
from crawlspace.app.exporting.sitemaps import write_sitemap
from crawlspace.app.exporting.sources import Sources
from crawlspace.app.exporting.tabling import write_table
from crawlspace.app.exporting.wanted import Exported, Format, Wanted, What, format_of, usual
from crawlspace.app.output import Target, directory_of, reached
from crawlspace.app.snapshot import open_snapshot
from crawlspace.archive.runs import Runs
from crawlspace.clock import SystemClock
from crawlspace.errors import UsageError
from crawlspace.exports.graphml import graphml
from crawlspace.exports.tables import Row
from crawlspace.settings import Settings, load
from crawlspace.states import UrlState
from crawlspace.types import Story

__all__ = ["COLUMNS", "Exported", "Format", "Wanted", "What", "export", "export_to", "format_of", "usual"]

Chosen = TypeVar("Chosen", bound=StrEnum)

SOFTWARE = f"crawlspace/{__version__}"


def export(
    directory: CrawlDirectory,
    settings: Settings,
    wanted: Wanted,
    target: Path,
    *,
    force: bool = False,
) -> Exported:
    """Write what is wanted to `target`, or to standard output; raises `UsageError`, `StoreError` or `DiskFull`."""
    wanted.require()
    directory.require()
    maker = Maker(SOFTWARE, directory.path.resolve().name, SystemClock().now())
    with open_snapshot(directory, settings) as snapshot:
        exporting = _Exporting(Sources(directory, settings, Exported(), snapshot.owner), wanted, maker)
        if wanted.what is What.RECORDS:
            rows = record_rows(directory, settings, wanted, snapshot.reach(), exporting.done)
            exporting.write_records(rows, Target(target, force))
            return exporting.done
        stories = snapshot.stories(wanted.telling, wanted.host)
        with _chosen(stories, wanted, directory, settings) as chosen:
            exporting.write(chosen, Target(target, force))
    return exporting.done


def export_to(directory: CrawlDirectory, target: str, what: str | None, options: Mapping[str, Any]) -> Exported:
    """Export to a path or to `s3://bucket/name`; `options` are the fields of `Wanted`, by their names, and `force`.

    Words may stand for formats, rows and states. Raises `UsageError` for what is none, and as `export` does.
    """
    wanted = dict(options)
    force = bool(wanted.pop("force", False))
    form = _word(Format, wanted.pop("format", None)) or format_of(Path(target))
    states = frozenset(_state(each) for each in wanted.pop("states", None) or UrlState)
    try:
        order = Wanted(format=form, what=_word(What, what) or usual(form), states=states, **wanted)
    except TypeError as error:
        raise UsageError(f"export has no such option: {error}") from None
    directory.require()
    with reached(target, force=force) as goal:
        return export(directory, load(directory.effective, {}), order, goal.path, force=goal.force)


def _word(kind: type[Chosen], text: str | None) -> Chosen | None:
    if text is None:
        return None
    try:
        return kind(text)
    except ValueError:
        raise UsageError(f"{text!r} is none of {', '.join(kind)}") from None


def _state(each: UrlState | str) -> UrlState:
    if isinstance(each, UrlState):
        return each
    try:
        return UrlState[each.upper()]
    except KeyError:
        known = ", ".join(state.name.lower() for state in UrlState)
        raise UsageError(f"{each!r} is none of {known}") from None


@contextmanager
def _chosen(
    stories: Iterable[Story], wanted: Wanted, directory: CrawlDirectory, settings: Settings
) -> Iterator[Iterable[Story]]:
    """Those that are wanted of them."""
    if not wanted.unique:
        yield stories
        return
    with open_duplicates(directory, settings) as duplicates:
        yield duplicates.kept(stories)


class _Exporting:
    """One export."""

    def __init__(self, sources: Sources, wanted: Wanted, maker: Maker) -> None:
        self.done = sources.done
        self._wanted = wanted
        self._maker = maker
        self._sources = sources
        self._rows = Rows(sources)

    def write(self, stories: Iterable[Story], target: Target) -> None:
        """Write what these URLs have to tell."""
        form = self._wanted.format
        if form.of_rows:
            columns = COLUMNS[self._wanted.what]
            write_table(target, self._wanted, columns, self._table(stories), self.done)
        elif form is Format.SITEMAP:
            entries = (entry for story in stories if (entry := self._rows.sitemap(story)) is not None)
            self.done.rows = write_sitemap(target, entries, self._wanted.base)
        elif form is Format.GRAPHML:
            self._graph(stories, target)
        else:
            self._captures(stories, target)

    def write_records(self, rows: Iterable[Row], target: Target) -> None:
        """Write what parsers made of pages."""
        write_table(target, self._wanted, COLUMNS[What.RECORDS], rows, self.done)

    def _table(self, stories: Iterable[Story]) -> Iterator[Row]:
        rows = self._rows.of(self._wanted.what)
        for story in stories:
            yield from rows(story)

    def _graph(self, stories: Iterable[Story], target: Target) -> None:
        with (
            target.stream() as out,
            Runs(directory_of(target.path)) as nodes,
            graphml(out, nodes) as add,
        ):
            for story in stories:
                for edge in self._rows.edges(story):
                    add(edge)
                    self.done.rows += 1

    def _captures(self, stories: Iterable[Story], target: Target) -> None:
        captures = Captures(self._sources, self.done, self._maker, directory_of(target.path))
        if self._wanted.format is Format.WACZ:
            with target.file() as path, path.open("wb") as out:
                captures.package(stories, out)
            return
        with target.stream() as out:
            match self._wanted.format:
                case Format.CDXJ:
                    captures.index(stories, out)
                case Format.WET:
                    captures.texts(stories, out)
                case Format.WAT:
                    captures.facts(stories, out)
                case _:
                    for _ in captures.subset(stories, out):
                        pass
