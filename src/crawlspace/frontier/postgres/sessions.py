"""The sessions of one store: a small pool, one transaction at a time on each, and PostgreSQL's errors in our words.

A transaction that fails because others were in its way, or because the server went away, is begun again: nothing of
it was kept, or all of it, and every call of a frontier may be repeated. How often is bounded.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from crawlspace.clock import Clock
from crawlspace.errors import Bug, CrawlDirError, CrawlspaceError, DiskFull, StoreDamaged, StoreError, UsageError
from crawlspace.frontier.postgres.place import Place
from crawlspace.frontier.settings import Durability, FrontierSettings
from crawlspace.frontier.sql import statements

T = TypeVar("T")
Row = tuple[Any, ...]
Connection = psycopg.AsyncConnection[Row]

SESSIONS = 4
CONNECT_SECONDS = 10
STATEMENT_MS = 30_000
LOCK_MS = 20_000
SILENT_MS = 15_000
"""Who has a transaction open and lets the server wait for so long, was stopped or is gone: its session is ended,
since others wait for what it holds. If it goes on after all, it begins again on a new one."""
CALL_SECONDS = 75.0
"""A transaction that writes and has not ended by then, has lost its line, though nobody says so: it is hung up. The
server has missed us by then too, and holds no locks for us."""
KEEP_ALIVE_SECONDS = 15
"""After so long without a word the server asks whether we are there, and twice more, before it ends a transaction."""
COLLISIONS = 8
"""Times that a transaction is begun again when others were in its way."""
DELAYS = 4
"""Times that it is begun again when others held what it wants for too long."""
OUTAGES = 6
"""Times that it is begun again when the server went away: with the waits between them about half a minute."""

_LIVELINESS: dict[str, Any] = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_COLLISIONS = (pg.DeadlockDetected, pg.SerializationFailure)
_DELAYS = (pg.LockNotAvailable, pg.QueryCanceled)
_AWAY = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout)
_HERE_TO_STAY = (pg.DiskFull, pg.IndexCorrupted, pg.DataCorrupted)
"""Operational errors that a new session would meet again."""


def queries(file: str) -> dict[str, bytes]:
    """The statements of one of this package's files, as the driver takes them."""
    return {name: text.encode() for name, text in statements(__package__, file).items()}


_SQL = queries("sessions.sql")

# What goes wrong is raised, in our words; the driver's own words about it stay where somebody asks for them.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class Sessions:
    """Where transactions are begun and ended, and nowhere else."""

    def __init__(self, place: Place, settings: FrontierSettings, clock: Clock) -> None:
        self._place = place
        self._settings = settings
        self._clock = clock
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            place.address,
            kwargs={"autocommit": True, "prepare_threshold": 0, **_LIVELINESS},
            min_size=1,
            max_size=SESSIONS,
            open=False,
            configure=self._configure,
            name="frontier",
            timeout=CONNECT_SECONDS,
            reconnect_timeout=CONNECT_SECONDS,
        )

    @property
    def shown(self) -> str:
        """The store for people."""
        return self._place.shown or f"the PostgreSQL schema {self._place.schema}"

    async def open(self) -> None:
        """Connect; raises `StoreError` when the server cannot be reached."""
        try:
            # The pool would try for long and then say only that it could not.
            async with await psycopg.AsyncConnection.connect(self._place.address, **_LIVELINESS):
                pass
        except psycopg.ProgrammingError as error:
            raise UsageError(f"{self.shown} is no address of a PostgreSQL server: {_line(error)}") from error
        except (psycopg.Error, UnicodeError) as error:
            raise StoreError(
                f"{self.shown} cannot be reached: {_line(error)}",
                hint="is the server up, and are name and password right?",
            ) from error
        await self._pool.open()

    async def close(self) -> None:
        """End all sessions."""
        await self._pool.close()

    async def write(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Run `work` in one transaction; again from its beginning when it could not be ended."""

        async def in_time(connection: Connection) -> T:
            alarm = asyncio.get_running_loop().call_later(CALL_SECONDS, _hang_up, connection)
            try:
                return await _whole(connection, _SQL["begin"], work)
            finally:
                alarm.cancel()

        return await self._again(in_time)

    async def read(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Run `work` on one consistent view of the store."""

        async def at_one_moment(connection: Connection) -> T:
            return await _whole(connection, _SQL["one_moment"], work)

        return await self._again(at_one_moment)

    @asynccontextmanager
    async def plain(self) -> AsyncIterator[Connection]:
        """A session outside of transactions, for statements that stand alone."""
        try:
            async with self._pool.connection() as connection:
                yield connection
        except (psycopg.Error, PoolTimeout) as error:
            raise self._in_our_words(error) from error

    async def _again(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        collisions = delays = outages = 0
        while True:
            try:
                return await self._once(work)
            except _COLLISIONS as error:
                collisions += 1
                if collisions > COLLISIONS:
                    raise self._in_our_words(error) from error
            except _DELAYS as error:
                delays += 1
                if delays > DELAYS:
                    raise self._in_our_words(error) from error
                await self._end_silent()
            except _HERE_TO_STAY as error:
                raise self._in_our_words(error) from error
            except _AWAY as error:
                outages += 1
                if outages > OUTAGES:
                    raise self._in_our_words(error) from error
                await self._clock.sleep(0.25 * 2**outages if outages > 1 else 0)
                # Sessions that lie idle were cut too, most likely.
                await self._pool.check()
            except psycopg.Error as error:
                raise self._in_our_words(error) from error

    async def _end_silent(self) -> None:
        """End the sessions of workers that were stopped; what goes wrong meanwhile, the next try meets itself."""
        with suppress(psycopg.Error, PoolTimeout):
            async with self._pool.connection() as connection:
                await end_silent(connection)

    async def _once(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        async with self._pool.connection() as connection:
            return await work(connection)

    async def _configure(self, connection: Connection) -> None:
        # What was answered is on the server's disk in either case; `full` also waits for synchronous standbys.
        parameters: Mapping[str, str] = {
            "schema": self._place.schema,
            "name": "crawlspace",
            "commit": "on" if self._settings.durability is Durability.FULL else "local",
            "statement_ms": str(STATEMENT_MS),
            "lock_ms": str(LOCK_MS),
            "idle_ms": str(SILENT_MS),
            "keep_alive": str(KEEP_ALIVE_SECONDS),
        }
        await connection.execute(_SQL["way"], parameters)
        assert connection.info.transaction_status is TransactionStatus.IDLE

    def _in_our_words(self, error: Exception) -> CrawlspaceError:
        shown = self.shown
        match error:
            case pg.DiskFull():
                return DiskFull(
                    f"no space is left on the disk of {shown}",
                    hint="free some space there, then start the crawl again",
                )
            case pg.InsufficientPrivilege() | pg.ReadOnlySqlTransaction():
                return CrawlDirError(
                    f"{shown} cannot be written: {_line(error)}", hint="has this user its rights there?"
                )
            case pg.QueryCanceled() | pg.LockNotAvailable() | pg.DeadlockDetected() | pg.SerializationFailure():
                return StoreError(f"{shown} is too busy: {_line(error)}", hint="is something else holding its rows?")
            case pg.DataCorrupted() | pg.IndexCorrupted():
                return StoreDamaged(f"{shown} is damaged: {_line(error)}", hint="restore it from a backup")
            case pg.UndefinedTable():
                return CrawlDirError(
                    f"{shown} holds no crawl", hint="start one with: crawlspace crawl URL --frontier ..."
                )
            case psycopg.IntegrityError() | psycopg.DataError() | psycopg.ProgrammingError():
                return Bug(f"the store refused a change that breaks its own rules: {_line(error)}")
            case _:
                return StoreError(f"{shown}: {_line(error)}", hint="is the server up?")


async def _whole(connection: Connection, begin: bytes, work: Callable[[Connection], Awaitable[T]]) -> T:
    """One transaction. The pool undoes what was not ended.

    In a pipeline there is one way there and back for each answer that is waited for, not for each statement: the
    begin goes with the first question and the end with the last change, for which others may wait.
    """
    async with connection.pipeline() as pipeline:
        await connection.execute(begin)
        result = await work(connection)
        await connection.execute(_SQL["commit"])
        await pipeline.sync()
        return result


async def end_silent(connection: Connection) -> None:
    """End the sessions of a crawl's workers that have a transaction open and say nothing, with all that they hold.

    The server's own limit is for sessions that are between two orders to it. One that was stopped in the middle of
    some, or of their answer, would keep its locks until it goes on.
    """
    await connection.execute(_SQL["end_silent"], {"silent_ms": SILENT_MS})


def _hang_up(connection: Connection) -> None:
    """End the line under a call that waits: to cancel it would wait for an answer on the same line."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


def _line(error: Exception) -> str:
    """What the server said, on one line."""
    text = " ".join(str(error).split())
    return text[:300] or type(error).__name__
