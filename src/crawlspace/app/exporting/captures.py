"""Captures as other programs read them: an index, a part of the archive, a package, texts (WET) and facts (WAT).

Everything is made of the records in the archive. The captures come in the order of their URLs; only indexes are
sorted, outside of memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Protocol

import msgspec

from crawlspace.app.exporting.derived import conversion, metadata
from crawlspace.app.exporting.sources import Sources, pointer_of, text_of
from crawlspace.app.exporting.wanted import Exported
from crawlspace.archive.captures import Place, capture_of, warcinfo_record
from crawlspace.archive.cdxj import line_of
from crawlspace.archive.exchanges import Exchange
from crawlspace.archive.members import deflate, members
from crawlspace.archive.record import BrokenRecord, date_text, record_id
from crawlspace.archive.runs import Runs
from crawlspace.exports.wacz import WARC_NAME, About, Entry, Package
from crawlspace.states import UrlState
from crawlspace.types import Pointer, Story

_LEVEL = 1
_PAGE_TYPES = frozenset({"text/html", "application/xhtml+xml"})


class _Out(Protocol):
    def write(self, data: bytes, /) -> object: ...


class Maker(msgspec.Struct, frozen=True):
    """Who makes a file, and when: what its first record tells."""

    software: str
    title: str
    """The crawl's name."""
    at: int


@dataclass(slots=True)
class Captures:
    """Writes captures in each of their forms."""

    sources: Sources
    done: Exported
    maker: Maker
    beside: Path
    """Where temporary files lie; none of them has a name."""

    def index(self, stories: Iterable[Story], out: BinaryIO) -> None:
        """Sorted lines that say where each capture lies in the crawl's archive."""
        with Runs(self.beside) as runs:
            for story in stories:
                line = self._line(story)
                if line is not None:
                    runs.add(line)
                    self.done.rows += 1
            out.writelines(runs.sorted())

    def subset(self, stories: Iterable[Story], out: _Out) -> Iterator[tuple[Story, Exchange]]:
        """Copy records, the first of each file preceded by the one that says who made that file; each is given when
        it is written."""
        headed: set[str] = set()
        for story in stories:
            exchange = self.sources.exchange(story)
            pointer = pointer_of(story)
            if exchange is None or pointer is None:
                continue
            if pointer.file not in headed:
                out.write(self.sources.head(pointer.file))
                headed.add(pointer.file)
            out.write(exchange.raw)
            self.done.rows += 1
            yield story, exchange

    def package(self, stories: Iterable[Story], out: BinaryIO) -> None:
        """A web archive with its index and its pages in one file."""
        about = About(self.maker.title, self.maker.software, date_text(self.maker.at))
        package = Package(out, about, self.maker.at)
        with Runs(self.beside) as runs, TemporaryFile(dir=self.beside) as pages:
            with package.archive() as archive:
                for story, exchange in self.subset(stories, archive):
                    start = archive.end - len(exchange.raw)
                    self._indexed(exchange, start, runs)
                    self._listed(story, exchange, pages)
            package.index(runs.sorted())
            pages.seek(0)
            package.pages(msgspec.json.decode(line, type=Entry) for line in pages)
        package.close()

    def texts(self, stories: Iterable[Story], out: BinaryIO) -> None:
        """A `conversion` record with the text of each page that was read whole (WET)."""
        warcinfo = self._begin(out)
        for story in stories:
            if story.state is not UrlState.DONE:
                continue
            exchange = self.sources.exchange(story)
            record = None if exchange is None else self._conversion(story, exchange, warcinfo)
            if record is not None:
                out.write(deflate(record, _LEVEL))
                self.done.rows += 1

    def facts(self, stories: Iterable[Story], out: BinaryIO) -> None:
        """A `metadata` record with what each capture's heads and page say (WAT)."""
        warcinfo = self._begin(out)
        for story in stories:
            exchange, pointer = self.sources.exchange(story), pointer_of(story)
            if exchange is None or pointer is None:
                continue
            try:
                read = self.sources.read(capture_of(exchange.response, exchange.request, exchange.conversion))
                record = metadata(exchange.response, read, pointer, warcinfo)
            except Exception as error:  # whatever a page does to its reader, the others are exported
                self._lost(story, error)
                continue
            out.write(deflate(record, _LEVEL))
            self.done.rows += 1

    # -- single captures ------------------------------------------------------------------------------------

    def _line(self, story: Story) -> bytes | None:
        pointer = pointer_of(story)
        stored = None if pointer is None else self.sources.stored(story)
        if pointer is None or stored is None:
            return None
        try:
            return line_of(pointer, stored.response, stored.request)
        except BrokenRecord as error:
            self.done.lost(f"{story.url}: its record says nothing: {error}")
            return None

    def _indexed(self, exchange: Exchange, start: int, runs: Runs) -> None:
        raw = exchange.raw

        def read(offset: int, length: int) -> bytes:
            return raw[offset : offset + length]

        first = next(members(read, 0, len(raw), 1 << 40))
        runs.add(line_of(Pointer(WARC_NAME, start, first.length), exchange.response, exchange.request))

    def _listed(self, story: Story, exchange: Exchange, pages: BinaryIO) -> None:
        """A page that a person may begin with: what was asked for plainly, and answered with HTML."""
        found = story.evidence
        if story.state is not UrlState.DONE or found is None or found.mime not in _PAGE_TYPES:
            return
        capture = capture_of(exchange.response, exchange.request)
        if capture.method != "GET":
            return
        title = self._title(exchange)
        name = record_id("page", capture.url, str(capture.at)).strip("<>").removeprefix("urn:uuid:")
        entry = Entry(name, capture.url, date_text(capture.at), title)
        pages.write(msgspec.json.encode(entry) + b"\n")

    def _title(self, exchange: Exchange) -> str:
        try:
            return self.sources.read(capture_of(exchange.response, exchange.request, exchange.conversion)).page.title
        except Exception:  # a page that cannot be read has no title; its bytes are exported all the same
            return ""

    def _conversion(self, story: Story, exchange: Exchange, warcinfo: str) -> bytes | None:
        try:
            read = self.sources.read(capture_of(exchange.response, exchange.request, exchange.conversion))
            if not 200 <= read.result.status < 300:
                return None
            text = text_of(read)
        except Exception as error:  # whatever a page does to its reader, the others are exported
            self._lost(story, error)
            return None
        return None if text is None else conversion(exchange.response, read.page, text, warcinfo)

    def _lost(self, story: Story, error: Exception) -> None:
        self.done.lost(f"{story.url}: the page cannot be read: {type(error).__name__}: {error}")

    def _begin(self, out: BinaryIO) -> str:
        """Write the record at the head of a file; its id."""
        facts = [
            ("software", self.maker.software),
            ("format", "WARC File Format 1.1"),
            ("isPartOf", self.maker.title),
        ]
        record, name = warcinfo_record(Place(self.maker.title, 0, ""), self.maker.at, facts)
        out.write(deflate(record, _LEVEL))
        return name
