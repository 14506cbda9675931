"""From a host name to the addresses it may be reached at.

A name is looked up once for all who ask at the same time, and its answer is kept for a while, bad answers for a
shorter while. The system's resolver tells no times to live, so ours are settings; name servers do, and theirs hold.
Entries of `network.resolve` stand in front of any lookup. Whether an address may be connected to is not decided here
(see `guard`).
"""

from __future__ import annotations

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from ipaddress import ip_address
from typing import Annotated, Literal, NamedTuple

import msgspec

from crawlspace.clock import Clock
from crawlspace.errors import ConfigError
from crawlspace.fetch.dns import NameServers, Records
from crawlspace.fetch.guard import IPAddress
from crawlspace.fetch.patterns import pattern_of, patterns_for
from crawlspace.fetch.proxy import check_proxies
from crawlspace.fetch.secrets import check_variables

CACHED_NAMES = 10_000
"""Answers kept at most; the one longest unused leaves first."""
MAX_ADDRESSES = 32
"""Addresses of one name that are looked at."""


class NetworkSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where names lead to, and which private addresses may be reached."""

    resolve: Annotated[
        dict[str, str],
        msgspec.Meta(
            description="Connect elsewhere: from 'host' or '*.suffix', with or without port, to 'address:port'."
        ),
    ] = msgspec.field(default_factory=dict)
    allow: Annotated[
        list[str], msgspec.Meta(description="Networks or addresses that may be reached although they are not public.")
    ] = msgspec.field(default_factory=list)
    resolver: Annotated[
        Literal["system", "dns"],
        msgspec.Meta(
            description="Who looks up names: the system, or we at name servers and their times to live (extra `dns`)."
        ),
    ] = "system"
    nameservers: Annotated[
        list[Annotated[str, msgspec.Meta(min_length=1, max_length=100)]],
        msgspec.Meta(
            description="Name servers that `dns` asks, such as 9.9.9.9 or 127.0.0.1:5353; none: the system's.",
            max_length=10,
        ),
    ] = msgspec.field(default_factory=list)
    dns_ttl: Annotated[
        float,
        msgspec.Meta(
            ge=0, le=86_400, description="Seconds for which a found name is kept when nobody says how long it holds."
        ),
    ] = 300.0
    dns_ttl_max: Annotated[
        float,
        msgspec.Meta(ge=1, le=604_800, description="Seconds for which a name is kept at most."),
    ] = 86_400.0
    dns_negative_ttl: Annotated[
        float, msgspec.Meta(ge=0, le=86_400, description="Seconds for which a failed lookup is kept.")
    ] = 30.0
    proxy: Annotated[
        str | dict[str, str],
        msgspec.Meta(
            description="Proxy for all requests, such as 'http://proxy.example:3128', or a table from 'host', "
            "'*.suffix' or '*' to a proxy or 'direct'. Kinds: http, https, socks5, socks5h."
        ),
    ] = ""
    proxy_auth: Annotated[
        dict[str, str],
        msgspec.Meta(description="From a proxy's URL to the environment variable that holds its user:password."),
    ] = msgspec.field(default_factory=dict)
    proxy_allow: Annotated[
        list[str],
        msgspec.Meta(description="Networks or addresses where proxies, and no pages, may be although private."),
    ] = msgspec.field(default_factory=list)
    proxy_connections: Annotated[int, msgspec.Meta(ge=1, le=10_000, description="Open connections to one proxy.")] = (
        64
    )

    def __post_init__(self) -> None:
        check_proxies(self.proxy, self.proxy_auth)
        check_variables(self.proxy_auth, "network.proxy_auth")
        if self.nameservers and self.resolver != "dns":
            raise ValueError('nameservers are asked only with resolver = "dns"')


class Endpoint(NamedTuple):
    """An address and a port: what a socket connects to."""

    address: IPAddress
    port: int

    def __str__(self) -> str:
        host = f"[{self.address}]" if self.address.version == 6 else str(self.address)
        return f"{host}:{self.port}"


Lookup = Callable[[str], Awaitable[Sequence[str] | Records]]
"""From a name to its addresses as text, best first; raises OSError or UnicodeError where there is none."""
SHORTEST_TTL = 1.0
"""Seconds for which any answer is kept: many ask for the same name at once."""


async def system_lookup(name: str) -> Sequence[str]:
    """Ask the system's resolver, which knows the hosts file and sorts by RFC 6724."""
    found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class Answer(msgspec.Struct, frozen=True):
    """What a name came to: its addresses, or why it has none."""

    addresses: tuple[IPAddress, ...] = ()
    problem: str = ""
    expires: float = 0.0
    """Monotonic seconds."""


class Table:
    """The entries of `network.resolve`, the most exact one first; raises `ConfigError` for one that is no entry."""

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._entries = {pattern_of(key): _endpoint(key, value) for key, value in entries.items()}

    def find(self, host: str, port: int) -> Endpoint | None:
        """Where to connect instead, if an entry says so."""
        if not self._entries:
            return None
        fitting = (self._entries[pattern] for pattern in patterns_for(host, port) if pattern in self._entries)
        return next(fitting, None)


class Resolver:
    """Names to addresses, through the table and a bounded cache."""

    def __init__(self, settings: NetworkSettings, clock: Clock, lookup: Lookup | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._servers = NameServers(settings.nameservers) if settings.resolver == "dns" else None
        self.lookup: Lookup = lookup or (self._servers.lookup if self._servers is not None else system_lookup)
        """Who is asked; may be replaced."""
        self._table = Table(settings.resolve)
        self._answers: OrderedDict[str, Answer] = OrderedDict()
        self._running: dict[str, asyncio.Task[Answer]] = {}

    async def resolve(self, host: str, port: int) -> tuple[tuple[Endpoint, ...], str]:
        """Endpoints of a host, best first, and "" - or none, and the reason in words.

        `host` is as it stands in a URL: a name, an IPv4 address, or an IPv6 address in brackets.
        """
        known = self.known(host, port)
        return _reached(await self._asked(host), port) if known is None else known

    def known(self, host: str, port: int) -> tuple[tuple[Endpoint, ...], str] | None:
        """What `resolve` gives, or None where somebody has to be asked for that."""
        entry = self._table.find(host, port)
        if entry is not None:
            return (entry,), ""
        number = literal(host)
        if number is not None:
            return (Endpoint(number, port),), ""
        answer = self._answers.get(host)
        if answer is None or answer.expires <= self._clock.monotonic():
            return None
        self._answers.move_to_end(host)
        return _reached(answer, port)

    async def close(self) -> None:
        """End the lookups that are still running."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._servers is not None:
            await self._servers.close()

    async def _asked(self, name: str) -> Answer:
        task = self._running.get(name)
        if task is None:
            task = asyncio.create_task(self._ask(name))
            self._running[name] = task
            task.add_done_callback(lambda _: self._running.pop(name, None))
        return await asyncio.shield(task)  # others may wait for the same answer when this caller gives up

    async def _ask(self, name: str) -> Answer:
        addresses: tuple[IPAddress, ...] = ()
        problem = ""
        ttl = self._settings.dns_ttl
        try:
            found = await self.lookup(name)
            if isinstance(found, Records):
                ttl = min(max(found.ttl, SHORTEST_TTL), self._settings.dns_ttl_max)
            addresses = _distinct(found.addresses if isinstance(found, Records) else found)
        except (OSError, ValueError) as error:  # UnicodeError, a name no resolver can spell, is a ValueError
            problem = f"{name}: {getattr(error, 'strerror', None) or error}"
        if not addresses and not problem:
            problem = f"{name}: no address"
        if not addresses:
            ttl = self._settings.dns_negative_ttl
        answer = Answer(addresses, problem, self._clock.monotonic() + ttl)
        self._answers[name] = answer
        self._answers.move_to_end(name)
        if len(self._answers) > CACHED_NAMES:
            self._answers.popitem(last=False)
        return answer


def literal(host: str) -> IPAddress | None:
    """The address that a host of a URL is, or None for a name."""
    if ":" not in host and not host[-1:].isdigit():
        return None
    try:
        return ip_address(host[1:-1] if host.startswith("[") else host)
    except ValueError:
        return None


def _reached(answer: Answer, port: int) -> tuple[tuple[Endpoint, ...], str]:
    return tuple([Endpoint(address, port) for address in answer.addresses]), answer.problem


def _distinct(found: Sequence[str]) -> tuple[IPAddress, ...]:
    return tuple(dict.fromkeys(ip_address(text) for text in found[:MAX_ADDRESSES]))


def _endpoint(key: str, value: str) -> Endpoint:
    host, _, port = value.rpartition(":")
    address = literal(host)
    if address is None or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ConfigError(
            f"network.resolve: {key!r} leads to {value!r}, which is no address with a port",
            hint="such as 127.0.0.1:8080 or [::1]:8080",
        )
    return Endpoint(address, int(port))
