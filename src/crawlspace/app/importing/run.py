"""Importing sources, one after the other, and going on where an earlier import was interrupted."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import field

from crawlspace.app.compose import OpenCrawl, Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.importing.adopting import Adopting, adopting
from crawlspace.app.importing.captures import Shelf, captures, name_on
from crawlspace.app.importing.imported import Imported
from crawlspace.app.importing.kinds import Kind, Source, sources
from crawlspace.app.importing.lists import Fields, Listed, index_lines, listed
from crawlspace.app.importing.scrapy import waiting
from crawlspace.app.importing.wacz import unpacked
from crawlspace.errors import DiskFull, StoreError, UsageError
from crawlspace.types import Address, Unusable

UNPACKED = ".import-"
"""Beginning of the name of a directory for files out of a package."""
REACHED = "import"
"""The fact that says how far an import of many files is."""


class Ways(msgspec.Struct, frozen=True):
    """How sources are to be imported."""

    kind: Kind | None = None
    """What they are, when that cannot be seen."""
    fields: Fields = field(default_factory=Fields)
    since: int | None = None
    """What was visited before this time is fetched again."""
    links: bool = False
    """Link archive files instead of copying them."""
    widen: Sequence[str] = ()
    """Draw the scope around these URLs first, as around seeds."""


class _Reached(msgspec.Struct):
    """How far an import is: the files of these sources up to one are done."""

    sources: list[str]
    last: str | None = None
    """The last file that is done, in the order of the sources."""
    draws: bool = False
    """The crawl had no seeds when the import began: what is imported draws the scope."""


async def import_sources(
    directory: CrawlDirectory, plan: Plan, paths: Sequence[Path], ways: Ways, done: Imported | None = None
) -> Imported:
    """Make known to a crawl what the sources hold; raises `UsageError`, `CrawlDirError`, `StoreError` or `DiskFull`.

    Sources are read in the order given; of several captures of a URL the first that is read stands. In a crawl that
    has no seeds yet the hosts of what is imported are its scope, unless `ways` says otherwise. `done` is counted up
    while it goes on.
    """
    wanted = [source for path in paths for source in sources(path, ways.kind)]
    done = Imported() if done is None else done
    async with open_crawl(directory, plan) as crawl:
        reached = await _reached(crawl, paths)
        await _draw_scope(crawl, ways.widen)
        await _note(crawl, reached)
        async with adopting(crawl, done, ways.since, draws=reached.draws and not ways.widen) as adopter:
            importing = _Importing(crawl, adopter, ways, done)
            for source in _behind(wanted, reached.last, done):
                await importing.source(source)
                reached.last = str(source.path)
                await _note(crawl, reached)
            await adopter.finish()
        await crawl.frontier.note({REACHED: ""})
    return done


def _behind(wanted: Sequence[Source], last: str | None, done: Imported) -> Sequence[Source]:
    """The sources behind the last that was imported before an interruption."""
    places = [place for place, source in enumerate(wanted, 1) if str(source.path) == last]
    first = places[-1] if places else 0
    if first:
        done.passed["files that an earlier run has imported"] += first
    return wanted[first:]


async def _note(crawl: OpenCrawl, reached: _Reached) -> None:
    await crawl.frontier.note({REACHED: msgspec.json.encode(reached).decode()})


class _Importing(msgspec.Struct, frozen=True):
    """The import of one source."""

    crawl: OpenCrawl
    adopter: Adopting
    ways: Ways
    done: Imported

    async def source(self, source: Source) -> None:
        """Take in a source; returns when that is durable."""
        with _told(source):
            await self._source(source)

    async def _source(self, source: Source) -> None:
        match source.kind:
            case Kind.WARC:
                await self._archive(source.path)
            case Kind.WACZ:
                await self._package(source.path)
            case Kind.INDEX:
                await self._index(source.path)
            case Kind.SCRAPY:
                await self.adopter.seeds(waiting(source.path, self.done))
            case _:
                await self.adopter.urls(listed(source, self.ways.fields, self.done))

    async def _archive(self, path: Path) -> None:
        shelf = self._shelf()
        await self.adopter.captures(captures(path, shelf, self.done))
        await self._forget_unused(shelf, name_on(path, shelf) if shelf.keeps else None)

    async def _package(self, path: Path) -> None:
        """The archive files of a package, one after the other."""
        for left in self.crawl.directory.path.glob(f"{UNPACKED}*"):
            # Of an import that was killed: we own the directory now.
            shutil.rmtree(left)
        with TemporaryDirectory(prefix=UNPACKED, dir=self.crawl.directory.path) as folder:
            for file in unpacked(path, Path(folder), self.done):
                await self._archive(file)

    async def _index(self, path: Path) -> None:
        """The archive files that an index names and that lie near it; what lies in others was visited."""
        places = [path.parent, path.parent / "archive", path.parent.parent / "archive"]
        near: dict[str, bool] = {}
        for line in index_lines(path, self.done):
            if line.file is not None and line.file not in near:
                found = next((each for place in places if (each := place / Path(line.file).name).is_file()), None)
                near[line.file] = found is not None
                if found is not None:
                    await self._archive(found)
        told = (
            Listed(line.url, line.at)
            for line in index_lines(path, Imported())
            if line.file is None or not near[line.file]
        )
        await self.adopter.urls(told)

    def _shelf(self) -> Shelf:
        settings = self.crawl.plan.settings.archive
        return Shelf(
            self.crawl.directory.archive,
            self.crawl.worker,
            settings.max_record,
            keeps=not settings.store,
            links=self.ways.links,
        )

    async def _forget_unused(self, shelf: Shelf, name: str | None) -> None:
        """A file to which no URL points is not kept."""
        if name is not None and name not in await self.crawl.frontier.segments():
            (shelf.directory / name).unlink(missing_ok=True)


async def _draw_scope(crawl: OpenCrawl, urls: Sequence[str]) -> None:
    addresses: list[Address] = []
    for url in urls:
        address = crawl.identity.identify(url)
        if isinstance(address, Unusable):
            raise UsageError(f"{url!r} is no URL that could be fetched")
        addresses.append(address)
    if addresses:
        await crawl.intake.widen(crawl.frontier, *addresses)


async def _reached(crawl: OpenCrawl, paths: Sequence[Path]) -> _Reached:
    """Where an interrupted import of the same sources is to go on."""
    names = [str(path.absolute()) for path in paths]
    notes = await crawl.frontier.notes()
    kept = notes.get(REACHED, "")
    if kept:
        reached = msgspec.json.decode(kept, type=_Reached)
        if reached.sources == names:
            return reached
    return _Reached(names, draws="scope" not in notes)


@contextmanager
def _told(source: Source) -> Iterator[None]:
    """Errors of the disk in words."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"no space left to import {source.path}", hint="free some and start again") from error
        raise StoreError(f"{source.path} cannot be imported: {(error.strerror or str(error)).lower()}") from error
