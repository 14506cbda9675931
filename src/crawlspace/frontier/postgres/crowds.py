"""Caps on the hosts of a domain and of an address: what bounds a trap that makes up hosts without end.

A host counts for its domain when its first URL is queued, and for its address when that becomes known. One more than
the domain may have is refused, link by link; a host of an address that has too many rests with its URLs. Seeds' hosts
are never refused. Of the hosts that a domain has too many of, only some are kept; the others leave a number behind.
Domains and addresses are held after their hosts, in the order of their names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from crawlspace.frontier.crowds import FREED_AT_ONCE, Crowd, Place
from crawlspace.frontier.postgres.columns import numbers, texts
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.policy.groups import address_name, domain_name
from crawlspace.types import Reason

_SQL = queries("crowds.sql")


class Domains:
    """Domains that a batch holds."""

    def __init__(self, transaction: Transaction, crowds: Mapping[str, Crowd]) -> None:
        self._transaction = transaction
        self._crowds = crowds

    def has_room(self, host: str) -> bool:
        """Whether the domain of a host may have one host more."""
        return self._of(host).has_room(self._transaction.settings)

    def join(self, host: str) -> None:
        """A host is queued for the first time."""
        self._of(host).more_hosts += 1

    def refuse(self, host: str) -> None:
        """A host that was not known becomes known as refused."""
        self._of(host).more_refused += 1

    async def write(self) -> None:
        """Write what was counted."""
        grown = {name: crowd for name, crowd in self._crowds.items() if crowd.has_grown}
        await _grow(self._transaction, grown)

    def _of(self, host: str) -> Crowd:
        # Whoever does not count domains holds none.
        return self._crowds.get(domain_name(host)) or Crowd()


async def hold_domains(transaction: Transaction, hosts: Iterable[str]) -> Domains:
    """Hold the domains of these hosts."""
    if transaction.settings.hosts_per_domain is None:
        return Domains(transaction, {})
    return Domains(transaction, await _hold(transaction, {domain_name(host) for host in hosts}))


class Strangers(NamedTuple):
    """Hosts that nobody knows, of domains that have little room."""

    away: set[int]
    """Those that nobody is to know."""
    welcome: set[int]
    """The others."""


async def strangers(transaction: Transaction, hosts: Mapping[int, str]) -> Strangers:
    """Which of these hosts, in their order, nobody knows and nobody is to know, since their domains keep no more.

    Nothing is held: two who look at the same time may both find room for what one of them will then refuse.
    """
    settings = transaction.settings
    limit = settings.hosts_per_domain
    if limit is None or not hosts:
        return Strangers(set(), set())
    of = {hid: domain_name(name) for hid, name in hosts.items()}
    asked = Counter(of.values())
    found = await transaction.rows(_SQL["look"], name=texts(sorted(asked)))
    counts = dict.fromkeys(asked, (0, 0)) | {name: (have, refused) for name, have, refused in found}
    room = {
        name: max(0, limit - have) + max(0, settings.refusals_kept - refused)
        for name, (have, refused) in counts.items()
        if limit - have < asked[name]
    }
    narrow = [hid for hid, name in of.items() if name in room]
    if not narrow:
        return Strangers(set(), set())
    known = {hid for (hid,) in await transaction.rows(_SQL["known"], **_hosts(transaction, narrow))}
    sorted_out = Strangers(set(), set())
    for hid in narrow:
        if hid not in known:
            room[of[hid]] -= 1
            (sorted_out.welcome if room[of[hid]] >= 0 else sorted_out.away).add(hid)
    return sorted_out


async def count_only(transaction: Transaction, n: int) -> None:
    """So many refusals more of hosts that nobody knows."""
    await transaction.run(_SQL["counted_only"], reason=Reason.DOMAIN_HOSTS.value, n=n)


async def too_many(transaction: Transaction, addresses: Mapping[int, str]) -> list[int]:
    """Count held hosts whose addresses are told for the first time; those for which there is no room."""
    limit = transaction.settings.hosts_per_address
    if limit is None or not addresses:
        return []
    newcomers = await transaction.rows(_SQL["newcomers"], **_hosts(transaction, sorted(addresses)))
    crowds = await _hold(transaction, {address_name(addresses[hid]) for hid, _ in newcomers})
    beyond: list[int] = []
    for hid, seed in newcomers:
        crowd = crowds[address_name(addresses[hid])]
        if crowd.hosts + crowd.more_hosts >= limit and not seed:
            beyond.append(hid)
        else:
            crowd.more_hosts += 1
    await _grow(transaction, crowds)
    return beyond


async def park(transaction: Transaction, hids: Collection[int]) -> None:
    """Hosts that were just let go rest, since too many have their address."""
    if hids:
        await transaction.run(_SQL["park"], **_hosts(transaction, hids))


async def freed(transaction: Transaction, after: Place) -> tuple[list[int], Place | None]:
    """Resting hosts for which there is room now, some at a time, and where to go on; None at the end.

    They are counted here. There can be room only when the setting was raised since they began to rest.
    """
    limit = transaction.settings.hosts_per_address
    address, hid = after
    rows = await transaction.rows(_SQL["crowded"], address=address, hid=hid, limit=FREED_AT_ONCE)
    crowds = await _hold(transaction, {address_name(address) for address, _ in rows})
    found: list[int] = []
    for address, hid in rows:
        crowd = crowds[address_name(address)]
        if limit is None or crowd.hosts + crowd.more_hosts < limit:
            crowd.more_hosts += 1
            found.append(hid)
    await _grow(transaction, crowds)
    return found, (rows[-1][0], rows[-1][1]) if len(rows) == FREED_AT_ONCE else None


async def _hold(transaction: Transaction, names: Collection[str]) -> dict[str, Crowd]:
    if not names:
        return {}
    ordered = texts(sorted(names))
    await transaction.run(_SQL["meet"], name=ordered)
    rows = await transaction.rows(_SQL["hold"], name=ordered)
    return {name: Crowd(hosts, refused) for name, hosts, refused in rows}


async def _grow(transaction: Transaction, crowds: Mapping[str, Crowd]) -> None:
    grown = {name: crowd for name, crowd in crowds.items() if crowd.has_grown}
    if grown:
        await transaction.run(
            _SQL["grow"],
            name=texts(grown),
            hosts=numbers(crowd.more_hosts for crowd in grown.values()),
            refused=numbers(crowd.more_refused for crowd in grown.values()),
        )


def _hosts(transaction: Transaction, hids: Collection[int]) -> dict[str, str]:
    return {"shard": numbers(map(transaction.shards.of, hids)), "hid": numbers(hids)}
