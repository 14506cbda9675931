"""Caps on the hosts of a domain and of an address: what bounds a trap that makes up hosts without end.

A host counts for its domain when its first URL is queued, and for its address when that becomes known. One more than
the domain may have is refused, link by link; a host of an address that has too many rests with its URLs. Seeds' hosts
are never refused. Of the hosts that a domain has too many of, only some are kept; the others leave a number behind.
"""

from __future__ import annotations

import sqlite3

from crawlspace.frontier.crowds import FREED_AT_ONCE, Crowd, Place
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.policy.groups import address_name, domain_name
from crawlspace.types import Reason

_SQL = statements(__package__, "crowds.sql")


class Crowds:
    """The domains that one batch meets, inside a transaction of the caller."""

    def __init__(self, connection: sqlite3.Connection, settings: FrontierSettings) -> None:
        self._connection = connection
        self._settings = settings
        self._domains: dict[str, Crowd] = {}
        self._beyond = 0

    def has_room(self, host: str) -> bool:
        """Whether the domain of a host may have one host more."""
        return self._settings.hosts_per_domain is None or self._of(host).has_room(self._settings)

    def join(self, host: str) -> None:
        """A host is queued for the first time."""
        if self._settings.hosts_per_domain is not None:
            self._of(host).more_hosts += 1

    def keeps(self, host: str) -> bool:
        """Whether one more unknown host of a domain without room is kept; one that is not, is counted."""
        if self._of(host).keeps(self._settings):
            return True
        self._beyond += 1
        return False

    def write(self) -> None:
        """Write what was counted."""
        grown = [
            {"name": name, "hosts": domain.more_hosts, "refused": domain.more_refused}
            for name, domain in sorted(self._domains.items())
            if domain.has_grown
        ]
        self._connection.executemany(_SQL["grow"], grown)
        if self._beyond:
            self._connection.execute(_SQL["counted_only"], (Reason.DOMAIN_HOSTS.value, self._beyond))

    def _of(self, host: str) -> Crowd:
        name = domain_name(host)
        domain = self._domains.get(name)
        if domain is None:
            row = self._connection.execute(_SQL["of_domain"], (name,)).fetchone()
            domain = self._domains[name] = Crowd(*(row or (0, 0)))
        return domain


def is_one_too_many(connection: sqlite3.Connection, settings: FrontierSettings, hid: int, address: str) -> bool:
    """Count a host whose address is told for the first time; whether the address has as many as it may have."""
    limit = settings.hosts_per_address
    if limit is None:
        return False
    is_new, seed = connection.execute(_SQL["newcomer"], (hid,)).fetchone()
    if not is_new:
        return False
    name = address_name(address)
    row = connection.execute(_SQL["of_domain"], (name,)).fetchone()
    if row is not None and row[0] >= limit and not seed:
        return True
    connection.execute(_SQL["grow"], {"name": name, "hosts": 1, "refused": 0})
    return False


def park(connection: sqlite3.Connection, hid: int) -> None:
    """A host that was just let go rests, since too many have its address."""
    connection.execute(_SQL["park"], (hid,))


def freed(connection: sqlite3.Connection, settings: FrontierSettings, after: Place) -> tuple[list[int], Place | None]:
    """Resting hosts for which there is room now, some at a time, and where to go on; None at the end.

    They are counted here. There can be room only when the setting was raised since they began to rest.
    """
    limit = settings.hosts_per_address
    rows: list[Place] = connection.execute(_SQL["crowded"], (*after, FREED_AT_ONCE)).fetchall()
    found: list[int] = []
    for address, hid in rows:
        name = address_name(address)
        have = connection.execute(_SQL["of_domain"], (name,)).fetchone()
        if limit is None or have is None or have[0] < limit:
            connection.execute(_SQL["grow"], {"name": name, "hosts": 1, "refused": 0})
            found.append(hid)
    return found, rows[-1] if len(rows) == FREED_AT_ONCE else None
