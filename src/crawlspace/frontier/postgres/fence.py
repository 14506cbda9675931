"""What keeps workers and a re-keying apart: nobody writes under rules that are no longer those of the store.

A worker knows how often the store had been re-keyed when it came. Each of its writes shares a lock with those of the
others, which a step of a re-keying wants for itself, and then asks how often that is now: a transaction that began
under the old rules ends before the first step, and none begins after it. Both cost no way to the server of their own.
"""

from __future__ import annotations

from typing import NamedTuple

from crawlspace.errors import Rekeyed
from crawlspace.frontier.postgres.sessions import Connection, queries

FACT = "rekeyings"
"""The fact that says how often a re-keying has begun, and until when somebody who wants one asks all to rest."""

_SQL = queries("fence.sql")


class Moment(NamedTuple):
    """The store as a call finds it."""

    now: int
    """Its own time."""
    rekeyings: int
    wanted_until: int
    """Until then nobody is to lease anything: somebody wants to re-key the crawl."""


class Fence:
    """One worker's side of it."""

    def __init__(self, rekeyings: int = 0) -> None:
        """`rekeyings` is how often the store had been re-keyed when its worker came."""
        self._came = rekeyings

    async def enter(self, connection: Connection) -> Moment:
        """Inside a transaction that writes, before anything else. Raises `Rekeyed`."""
        await connection.execute(_SQL["share"])
        moment = await look(connection)
        if self._came != moment.rekeyings:
            raise Rekeyed(hint="the same command goes on, under the rules that the crawl has now")
        return moment


async def look(connection: Connection) -> Moment:
    """What time it is, how often the store was re-keyed, and whether somebody wants to."""
    row = await (await connection.execute(_SQL["now"])).fetchone()
    assert row is not None
    now, fact = row
    rekeyings, _, wanted_until = (fact or "0 0").partition(" ")
    return Moment(now, int(rekeyings), int(wanted_until))


def fact_of(rekeyings: int, wanted_until: int = 0) -> dict[str, str]:
    """What `look` is to find."""
    return {FACT: f"{rekeyings} {wanted_until}"}


async def keep_out(connection: Connection) -> None:
    """Inside a transaction of a re-keying, before anything else: nobody else writes until it ends."""
    await connection.execute(_SQL["alone"])
