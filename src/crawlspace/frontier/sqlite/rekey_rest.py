"""The rest of a re-keying, once every URL has its new key: what names merged URLs, and hosts that are left over.

Each step is one transaction of the caller, goes on where the last one ended, and changes nothing when it is repeated.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from crawlspace.frontier.counters import DUPLICATES, HOSTS
from crawlspace.frontier.rekeying import Cursor, Named, Naming
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.book import Book
from crawlspace.frontier.sqlite.rekey_pages import Pages
from crawlspace.policy.groups import address_name, domain_name
from crawlspace.types import FINGERPRINT_BYTES, HOST_BYTES, Reason, host_id

_SQL = statements(__package__, "rekey.sql")

_CROWDS = statements(__package__, "crowds.sql")

_BEHIND_ALL = b"\xff" * (FINGERPRINT_BYTES - HOST_BYTES + 1)
"""Behind every key of a host."""


class _Host(NamedTuple):
    hid: int
    name: str
    seed: int
    met: int
    fetched: int
    discovered: int


class Rest:
    """One step, inside a transaction of the caller."""

    def __init__(self, connection: sqlite3.Connection, settings: FrontierSettings, naming: Naming) -> None:
        self._connection = connection
        self._naming = naming
        self._book = Book(connection, settings)

    # -- what names merged URLs -----------------------------------------------------------------------------

    def outcomes(self, after: Cursor, limit: int) -> Cursor | None:
        """The next outcomes name who stayed as their parent and first copy."""
        (end,) = self._connection.execute(_SQL["next_rows_end"], (*after, limit)).fetchone()
        if end is None:
            return None
        self._connection.execute(_SQL["point_outcome"], (*after, end))
        self._connection.execute(_SQL["no_own_parent"], (*after, end))
        for (hid,) in self._connection.execute(_SQL["no_own_copy"], (*after, end)).fetchall():
            self._book.host(hid).duplicates -= 1
            self._book.add(DUPLICATES, -1)
        self._book.write()
        return (end,)

    def queue(self, after: Cursor, limit: int) -> Cursor | None:
        """The next queued URLs name who stayed as their parent."""
        return self._point("queue_end", "point_queue", after, limit)

    def delayed(self, after: Cursor, limit: int) -> Cursor | None:
        """The next delayed URLs name who stayed as their parent."""
        return self._point("delayed_end", "point_delayed", after, limit)

    def _point(self, ends: str, points: str, after: Cursor, limit: int) -> Cursor | None:
        end: Cursor | None = self._connection.execute(_SQL[ends], (*after, limit)).fetchone()
        if end is not None:
            self._connection.execute(_SQL[points], (*after, *end))
        return end

    def content(self, after: Cursor, limit: int) -> Cursor | None:
        """The next bytes belong to who stayed."""
        start = bytes.fromhex(str(after[0]))
        (end,) = self._connection.execute(_SQL["content_end"], (start, limit)).fetchone()
        if end is None:
            return None
        self._connection.execute(_SQL["point_content"], (start, end))
        return (end.hex(),)

    # -- hosts ----------------------------------------------------------------------------------------------

    def hosts(self, after: Cursor, limit: int) -> Cursor | None:
        """The next hosts: one without URLs leaves what it was to the host that has its name, or goes."""
        hosts = list(map(_Host._make, self._connection.execute(_SQL["hosts_after"], (*after, limit))))
        for host in hosts:
            self._settle(host)
        self._book.write()
        return (hosts[-1].hid,) if hosts else None

    def crowds(self, after: Cursor, limit: int) -> Cursor | None:
        """The next hosts are counted for their domain and their address, which were counted under the old names."""
        if after == (-1,):
            self._connection.execute(_SQL["forget_crowds"])
        rows = self._connection.execute(_SQL["counted_hosts"], (Reason.DOMAIN_HOSTS.value, *after, limit)).fetchall()
        for _, name, met, refused, address in rows:
            if met or refused:
                self._connection.execute(_CROWDS["grow"], _grown(domain_name(name), met, refused))
            if address is not None:
                self._connection.execute(_CROWDS["grow"], _grown(address_name(address), 1, 0))
        return (rows[-1][0],) if rows else None

    def _settle(self, host: _Host) -> None:
        self._connection.execute(_SQL["drop_empty_refusals"], (host.hid,))
        start = host.hid.to_bytes(HOST_BYTES, "big")
        if self._is_there("has_urls", start, start + _BEHIND_ALL):
            return
        heir = self._naming.heir(host.name)
        if host_id(heir.key) != host.hid:
            self._leave(host, heir)
        elif host.fetched or host.discovered or self._is_there("has_refusals", host.hid):
            return
        self._connection.execute(_SQL["drop_host"], (host.hid,))
        Pages(self._connection).leave(host.hid, host_id(heir.key))
        if host.met:
            self._book.add(HOSTS, -1)

    def _leave(self, host: _Host, heir: Named) -> None:
        """Pace, counters and counted refusals go to the heir."""
        new = host_id(heir.key)
        self._connection.execute(_SQL["add_host"], (new, heir.host, heir.seed))
        (met,) = self._connection.execute(_SQL["host"], (new,)).fetchone()
        moves = {"old": host.hid, "new": new}
        for statement in ("slow_host", "hold_host", "inherit_refusals"):
            self._connection.execute(_SQL[statement], moves)
        self._connection.execute(_SQL["drop_refusals"], (host.hid,))
        delta = self._book.host(new)
        delta.fetched += host.fetched
        delta.discovered += host.discovered
        delta.seed = max(delta.seed, host.seed, int(heir.seed))
        if host.met and not met:
            delta.met = 1
            self._book.add(HOSTS, 1)
        self._book.write_host(new)

    def _is_there(self, question: str, *parameters: object) -> bool:
        return self._connection.execute(_SQL[question], parameters).fetchone() is not None


def _grown(name: str, hosts: int, refused: int) -> dict[str, str | int]:
    return {"name": name, "hosts": hosts, "refused": refused}
