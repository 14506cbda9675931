"""What a crawl knows, written for other programs: its URLs, its captures, the links on its pages.

Everything is of one moment of the store and goes through in a stream: a crawl may run meanwhile, and memory is that
of one page, whatever the number of URLs. What cannot be read in the archive is told and left out; nothing stops for
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum, unique
from pathlib import Path
from typing import BinaryIO

import msgspec

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.output import directory_of, output
from crawlspace.archive.cdxj import line_of
from crawlspace.archive.disk import RealDisk
from crawlspace.archive.exchanges import Exchanges
from crawlspace.archive.reader import Reader
from crawlspace.archive.record import BrokenRecord, date_text
from crawlspace.archive.runs import Runs
from crawlspace.errors import StoreDamaged, UsageError
from crawlspace.fetch.replay import result_of
from crawlspace.frontier.sqlite.export import open_snapshot
from crawlspace.observe.tables import Cell, Form, Row, table
from crawlspace.pages.links import Page, read_page
from crawlspace.settings import Settings
from crawlspace.states import UrlState
from crawlspace.types import Address, Evidence, Pointer, Relation, Story, Unusable
from crawlspace.urls import Identity, policy_from

DAMAGES_KEPT = 1000
"""Captures that could not be read and are named; the rest is counted."""


@unique
class What(StrEnum):
    """What an export has a row for."""

    URLS = "urls"
    """Each URL known, in any state."""
    CAPTURES = "captures"
    """Each URL with a capture."""
    LINKS = "links"
    """Each link on the captured pages, and each redirect."""


@unique
class Format(StrEnum):
    """How it is written; also the suffix of the file's name."""

    JSON_LINES_ZSTD = "jsonl.zst"
    JSON_LINES = "jsonl"
    CSV = "csv"
    LIST = "txt"
    CDXJ = "cdxj"
    WARC = "warc.gz"


URL_COLUMNS = (
    *("url", "canonical", "host", "state", "reason", "status", "mime", "size", "depth", "parent", "attempts"),
    *("found_at", "settled_at", "digest", "copy_of", "redirects_to", "file", "offset", "length", "label", "meta"),
)
CAPTURE_COLUMNS = (
    *("url", "canonical", "host", "state", "at", "status", "reason", "mime", "size", "elapsed_ms", "digest"),
    *("etag", "last_modified", "file", "offset", "length"),
)
LINK_COLUMNS = ("source", "target", "canonical", "host", "relation", "nofollow", "unusable")

_ARCHIVES = frozenset({Format.CDXJ, Format.WARC})
_ALL_STATES = frozenset(UrlState)
_NO_REQUEST = Evidence(at=0)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be exported, and how."""

    format: Format
    what: What = What.URLS
    states: frozenset[UrlState] = _ALL_STATES
    host: str | None = None
    guard: bool = True
    """Texts in CSV are written so that no spreadsheet computes them."""

    def require(self) -> None:
        """Raise `UsageError` for what has no such form."""
        if self.format in _ARCHIVES and self.what is not What.CAPTURES:
            raise UsageError(f"{self.format} holds captures, not {self.what}", hint="leave out --what")
        if self.format is Format.LIST and self.what is What.LINKS:
            raise UsageError("a list has one column, a link has two ends", hint="use .csv or .jsonl")


@dataclass(slots=True)
class Exported:
    """What became of an export."""

    rows: int = 0
    """Rows, lines or captures written."""
    damages: list[str] = field(default_factory=list)
    """What could not be read, in words, no more than `DAMAGES_KEPT`."""
    damaged: int = 0

    def lost(self, why: str) -> None:
        """Count a capture that could not be read."""
        self.damaged += 1
        if len(self.damages) < DAMAGES_KEPT:
            self.damages.append(why)


def format_of(path: Path) -> Format:
    """The format that a file's name asks for; raises `UsageError` when it asks for none."""
    for each in Format:
        if path.name.lower().endswith(f".{each}"):
            return each
    known = ", ".join(f".{each}" for each in Format)
    raise UsageError(f"the name {path.name!r} tells no format", hint=f"end it in one of {known}, or use --format")


def export(
    directory: CrawlDirectory, settings: Settings, wanted: Wanted, target: Path, *, force: bool = False
) -> Exported:
    """Write what is wanted to `target`, or to standard output; raises `UsageError`, `StoreError` or `DiskFull`."""
    wanted.require()
    directory.require()
    if directory.shared.exists():
        raise UsageError(
            f"the frontier of {directory.path} is shared, and only one that lies in its directory can be exported",
            hint="its archive has an index all the same: crawlspace index DIR",
        )
    with (
        output(target, force=force) as out,
        open_snapshot(directory.database, settings.frontier()) as snapshot,
    ):
        exporting = _Exporting(directory, settings, wanted, directory_of(target))
        exporting.write(snapshot.stories(wanted.states, wanted.host), out)
    return exporting.done


class _Exporting:
    """One export."""

    def __init__(self, directory: CrawlDirectory, settings: Settings, wanted: Wanted, beside: Path) -> None:
        largest = settings.archive.max_record
        self.done = Exported()
        self._wanted = wanted
        self._settings = settings
        self._beside = beside
        self._identity = Identity(policy_from(settings.identity))
        self._reader = Reader(RealDisk(), directory.archive, largest)
        self._exchanges = Exchanges(RealDisk(), directory.archive, largest)

    def write(self, stories: Iterable[Story], out: BinaryIO) -> None:
        match self._wanted.format:
            case Format.CDXJ:
                self._index(stories, out)
            case Format.WARC:
                self._subset(stories, out)
            case _:
                self._table(stories, out)

    def _table(self, stories: Iterable[Story], out: BinaryIO) -> None:
        columns, rows = self._shape()
        form = Form(self._wanted.format.value)
        with table(form, out, columns, guard=self._wanted.guard) as add:
            for story in stories:
                for row in rows(story):
                    add(row)
                    self.done.rows += 1

    def _shape(self) -> tuple[tuple[str, ...], Callable[[Story], Iterable[Row]]]:
        match self._wanted.what:
            case What.URLS:
                return URL_COLUMNS, self._url
            case What.CAPTURES:
                return CAPTURE_COLUMNS, self._capture
            case What.LINKS:
                return LINK_COLUMNS, self._links

    # -- rows -----------------------------------------------------------------------------------------------

    def _url(self, story: Story) -> Iterator[Row]:
        row = {
            **self._facts(story),
            "depth": story.depth,
            "parent": story.parent,
            "attempts": story.attempts,
            "found_at": date_text(story.found_at),
            "settled_at": None if story.settled_at is None else date_text(story.settled_at),
            "copy_of": story.copy_of,
            "redirects_to": story.target,
            "label": story.label,
            "meta": _json(story.meta),
        }
        yield [row[name] for name in URL_COLUMNS]

    def _capture(self, story: Story) -> Iterator[Row]:
        found = story.evidence
        if found is None or found.pointer is None:
            return
        row = {
            **self._facts(story),
            "at": date_text(found.at),
            "elapsed_ms": found.elapsed_ms,
            "etag": found.etag,
            "last_modified": found.last_modified,
        }
        yield [row[name] for name in CAPTURE_COLUMNS]

    def _facts(self, story: Story) -> dict[str, Cell]:
        """What a row of either kind tells."""
        found = story.evidence or _NO_REQUEST
        file, offset, length = found.pointer or (None, None, None)
        return {
            "url": story.url,
            "canonical": self._canonical(story.url),
            "host": story.host,
            "state": story.state.name.lower(),
            "reason": story.reason,
            "status": found.status,
            "mime": found.mime,
            "size": None if found is _NO_REQUEST else found.size,
            "digest": None if found.digest is None else found.digest.hex(),
            "file": file,
            "offset": offset,
            "length": length,
        }

    def _links(self, story: Story) -> Iterator[Row]:
        if story.target is not None:
            where = self._identity.identify(story.target)
            yield _link(story.url, where, Relation.REDIRECT, nofollow=False)
        page = self._page(story) if story.state in (UrlState.DONE, UrlState.STORED) else None
        if page is None:
            return
        texts = [link.url for link in page.links]
        found = self._identity.identify_many(texts, page.base_url, encoding=page.charset)
        for link, where in zip(page.links, found, strict=True):
            yield _link(story.url, where, link.relation, nofollow=link.nofollow or page.nofollow)

    def _page(self, story: Story) -> Page | None:
        pointer = _pointer(story)
        if pointer is None:
            return None
        try:
            result = result_of(self._reader.open(pointer), self._settings.fetch)
            return read_page(result.body, result.url, result.headers, self._settings.discovery)
        except StoreDamaged as error:
            self.done.lost(f"{story.url}: {error.message}")
        except Exception as error:  # whatever a page does to its reader, the others are exported
            self.done.lost(f"{story.url}: the page cannot be read: {type(error).__name__}: {error}")
        return None

    def _canonical(self, url: str) -> str | None:
        address = self._identity.identify(url)
        return None if isinstance(address, Unusable) else address.canonical

    # -- captures as they lie in the archive ----------------------------------------------------------------

    def _index(self, stories: Iterable[Story], out: BinaryIO) -> None:
        with Runs(self._beside) as runs:
            for story in stories:
                line = self._line(story)
                if line is not None:
                    runs.add(line)
                    self.done.rows += 1
            out.writelines(runs.sorted())

    def _line(self, story: Story) -> bytes | None:
        pointer = _pointer(story)
        if pointer is None:
            return None
        try:
            exchange = self._exchanges.at(pointer)
            return line_of(pointer, exchange.response, exchange.request)
        except StoreDamaged as error:
            self.done.lost(f"{story.url}: {error.message}")
        except BrokenRecord as error:
            self.done.lost(f"{story.url}: its record says nothing: {error}")
        return None

    def _subset(self, stories: Iterable[Story], out: BinaryIO) -> None:
        """Records byte for byte, the first of each file preceded by the one that says who made that file."""
        headed: set[str] = set()
        for story in stories:
            pointer = _pointer(story)
            if pointer is None:
                continue
            try:
                head = b"" if pointer.file in headed else self._exchanges.head(pointer.file)
                raw = self._exchanges.at(pointer).raw
            except StoreDamaged as error:
                self.done.lost(f"{story.url}: {error.message}")
                continue
            out.write(head + raw)
            headed.add(pointer.file)
            self.done.rows += 1


def _pointer(story: Story) -> Pointer | None:
    return story.evidence.pointer if story.evidence is not None else None


def _link(source: str, where: Address | Unusable, relation: Relation, *, nofollow: bool) -> Row:
    if isinstance(where, Unusable):
        # A page's text may hold what no encoding can write.
        text = where.text.encode("utf-8", "replace").decode()
        return (source, text, None, None, relation.value, nofollow, where.reason)
    return (source, where.fetch_url, where.canonical, where.host, relation.value, nofollow, None)


def _json(text: str | None) -> Cell:
    """JSON that a person gave, on one line and of one piece with the JSON around it."""
    if text is None:
        return None
    try:
        return msgspec.Raw(msgspec.json.encode(msgspec.json.decode(text)))
    except msgspec.DecodeError:
        return text
