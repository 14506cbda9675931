"""Which store a crawl has: a file in its directory, or a schema of a PostgreSQL server that workers share.

A directory that works on a shared store keeps its address, without a password, and the name by which it is known
there.
"""

from __future__ import annotations

import secrets
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from socket import gethostname
from typing import TYPE_CHECKING, Protocol

import msgspec
import tomli_w

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.loop import run_loop
from crawlspace.clock import Clock
from crawlspace.errors import CrawlDirError, UsageError
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite.store import SqliteFrontier
from crawlspace.ports import Captures, Company, ContentIndex, Control, Frontier, Learned, Ledger, Revisits, RouteBook
from crawlspace.types import Adopted, Claim, Finished

if TYPE_CHECKING:
    from crawlspace.frontier.postgres import Place, PostgresFrontier
    from crawlspace.frontier.postgres.inspection import Inspection

_SAYS = "# Where this crawl's frontier lies, and the name by which this directory is known there. Keep it.\n\n"


class Store(Frontier, Company, Ledger, Learned, Control, Captures, Revisits, ContentIndex, RouteBook, Protocol):
    """What a crawl needs of its store, whatever it is."""

    async def void_leases(self, now: int | None = None) -> int:
        """Give up the leases that its owner held before it was opened: this directory, or a member; how many."""
        ...

    async def adopt(
        self, settlements: Sequence[Adopted], claims: Sequence[Claim], now: int | None = None
    ) -> list[bool]:
        """Claim the links, and settle URLs that wait without a lease or a request: somebody else asked for them.

        One answer for each settlement: whether its URL waited. What a worker holds, or has ended, stays as it is.
        """
        ...

    async def finish_stored(
        self, settlements: Sequence[Finished], claims: Sequence[Claim], now: int | None = None
    ) -> list[bool]:
        """Claim the links, and let URLs whose processing had failed be done: their captures were read again.

        One answer for each settlement: whether its URL was stored. No lease, and no request, comes into it.
        """
        ...

    async def segments(self) -> dict[str, int]:
        """How far settled captures reach into each file of this directory's archive."""
        ...

    async def close(self) -> None:
        """Let go of it."""
        ...


class Opened(msgspec.Struct, frozen=True):
    """A store, and this process's number in it."""

    store: Store
    worker: int = 0
    shared: bool = False
    """Other workers may be at it too."""


class _Shared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a directory keeps of a shared store."""

    address: str
    worker: str
    members: int = 0
    """The most processes that have worked together in this directory: each is a worker of its own there."""


async def open_store(
    directory: CrawlDirectory, settings: FrontierSettings, clock: Clock, address: str | None = None
) -> Opened:
    """The store of a directory that we own; `address` names a shared one at the first start.

    Raises `CrawlDirError`, `StoreError`, or `UsageError` for an address that cannot be read or is not that of before.
    """
    if address is None and not directory.shared.exists():
        return Opened(await SqliteFrontier.open(directory.database, settings, clock))
    kept = _kept(directory, address)
    store = await _postgres().open(_place(address or kept.address), settings, clock, worker=kept.worker)
    await _tell_place(store, directory)
    return Opened(store, store.worker, shared=True)


async def open_member(directory: CrawlDirectory, settings: FrontierSettings, clock: Clock, number: int) -> Opened:
    """The store for one of the processes that the directory's owner has started, by its number from 1."""
    if not directory.shared.exists():
        path = directory.database
        return Opened(await SqliteFrontier.open_beside(path, settings, clock, worker=number), number)
    kept = _kept(directory, None)
    store = await _postgres().open(_place(kept.address), settings, clock, worker=f"{kept.worker}.{number}")
    await _tell_place(store, directory)
    return Opened(store, store.worker, shared=True)


async def _tell_place(store: PostgresFrontier, directory: CrawlDirectory) -> None:
    """Write down where this worker's archive lies, for people who look for it from elsewhere."""
    fact, place = f"place of worker {store.worker}", f"{gethostname()}:{directory.path.resolve()}"
    if (await store.notes()).get(fact) != place:
        await store.note({fact: place})


def note_members(directory: CrawlDirectory, members: int) -> None:
    """Remember that so many processes work together here, for `put_right` after a crash."""
    if directory.shared.exists():
        kept = _read(directory)
        if members > kept.members:
            _write(directory, msgspec.structs.replace(kept, members=members))


async def put_right(directory: CrawlDirectory, settings: FrontierSettings, clock: Clock) -> dict[str, int]:
    """Give up what earlier members of this directory held in a shared store; how far their archive files are settled.

    In a store of its own the directory's owner has everybody's leases and files.
    """
    settled: dict[str, int] = {}
    if directory.shared.exists():
        for number in range(1, _read(directory).members + 1):
            member = (await open_member(directory, settings, clock, number)).store
            try:
                await member.void_leases()
                settled |= await member.segments()
            finally:
                await member.close()
    return settled


async def open_beside(directory: CrawlDirectory, settings: FrontierSettings, clock: Clock) -> Store:
    """The store of a directory that somebody else may own, to ask something of it."""
    if directory.shared.exists():
        return await _postgres().open_beside(_place(_kept(directory, None).address), settings, clock)
    return await SqliteFrontier.open_beside(directory.database, settings, clock)


async def open_to_read(directory: CrawlDirectory, settings: FrontierSettings, clock: Clock) -> Store:
    """The store of a directory, for looking only."""
    if directory.shared.exists():
        return await open_beside(directory, settings, clock)
    return await SqliteFrontier.open(directory.database, settings, clock, read_only=True)


@contextmanager
def inspected(directory: CrawlDirectory, settings: FrontierSettings, clock: Clock) -> Iterator[Inspection]:
    """The shared store of a directory, to be held against itself and against this directory's archive."""
    place, names = looked_at(directory, settings, clock)
    from crawlspace.frontier.postgres.inspection import open_inspection

    with open_inspection(place, names) as inspection:
        yield inspection


def looked_at(directory: CrawlDirectory, settings: FrontierSettings, clock: Clock) -> tuple[Place, list[str]]:
    """Where the shared store of a directory lies, and the names of its workers there, for a look at all of it.

    Those of the directories beside it too; raises `UsageError` for one that works on another store.
    """

    async def look() -> None:
        # Whether there is a crawl there, in a format that we know, is for the store itself to say.
        await (await open_beside(directory, settings, clock)).close()

    kept = _kept(directory, None)
    names = _names(kept)
    for other in directory.beside:
        if not other.shared.exists() or _read(other).address != kept.address:
            raise UsageError(f"{other.path} does not work on {kept.address}", hint="name directories of one crawl")
        names += _names(_read(other))
    run_loop(look)
    return _place(kept.address), names


def place_of(directory: CrawlDirectory) -> Place:
    """Where the shared store of a directory lies."""
    return _place(_kept(directory, None).address)


def _names(kept: _Shared) -> list[str]:
    return [kept.worker, *(f"{kept.worker}.{number}" for number in range(1, kept.members + 1))]


def dump_command(directory: CrawlDirectory, file: Path) -> str:
    """The command that copies the shared store of a directory into a file."""
    place = _place(_kept(directory, None).address)
    return f"pg_dump --schema={place.schema} --format=custom --file={quote(str(file))} {quote(place.address)}"


async def facts_at(address: str, clock: Clock) -> dict[str, str]:
    """The facts of the crawl at an address; raises `CrawlDirError` when there is none."""
    store = await _postgres().open_beside(_place(address), FrontierSettings(), clock)
    try:
        return dict(await store.notes())
    finally:
        await store.close()


def _kept(directory: CrawlDirectory, address: str | None) -> _Shared:
    """What the directory keeps; written when it comes to its store for the first time."""
    if directory.database.exists():
        raise UsageError(f"{directory.path} has a frontier of its own", hint="choose another --dir for a shared one")
    if directory.shared.exists():
        kept = _read(directory)
        if address is not None and _place(address).shown != kept.address:
            raise UsageError(
                f"{directory.path} works on {kept.address}",
                hint=f"choose another --dir, or correct {directory.shared} if the server has moved",
            )
        return kept
    assert address is not None, "only a directory that has a shared store is asked without an address"
    kept = _Shared(_place(address).shown, secrets.token_hex(16))
    _write(directory, kept)
    return kept


def _write(directory: CrawlDirectory, kept: _Shared) -> None:
    directory.write_shared(_SAYS + tomli_w.dumps(msgspec.to_builtins(kept)))


def _read(directory: CrawlDirectory) -> _Shared:
    try:
        return msgspec.convert(tomllib.loads(directory.shared.read_text("utf-8")), _Shared)
    except (OSError, ValueError) as error:
        raise CrawlDirError(f"{directory.shared} cannot be read: {error}") from error


def _postgres() -> type[PostgresFrontier]:
    try:
        from crawlspace.frontier.postgres import PostgresFrontier
    except ImportError as error:
        raise UsageError(
            "a shared frontier needs the extra `postgres`", hint="pip install 'crawlspace[postgres]'"
        ) from error
    return PostgresFrontier


def _place(address: str) -> Place:
    _postgres()
    from crawlspace.frontier.postgres import Place

    return Place.parse(address)
