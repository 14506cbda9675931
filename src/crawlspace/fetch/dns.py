"""Names looked up at name servers, with the times to live that those give; needs the extra `dns`.

The hosts file is looked into first, as the system's resolver does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from crawlspace.errors import ConfigError


class Records(NamedTuple):
    """The addresses of a name as text, best first."""

    addresses: tuple[str, ...]
    ttl: int
    """Seconds for which whoever answered holds that for true."""


class NameServers:
    """A way to ask name servers. Raises `ConfigError` where the library that can is not there."""

    def __init__(self, servers: Sequence[str]) -> None:
        try:
            import aiodns
            import pycares
        except ImportError as error:
            raise ConfigError(
                'network.resolver = "dns" needs the extra `dns`', hint="pip install 'crawlspace[dns]'"
            ) from error
        self._library: Any = aiodns
        self._below: Any = pycares
        self._servers = list(servers)
        self._resolver: Any = None

    async def lookup(self, name: str) -> Records:
        """The addresses of a name; raises OSError where there is none."""
        if self._resolver is None:  # belongs to the loop that first asks
            self._resolver = self._made()
        try:
            found = await self._resolver.getaddrinfo(name)
        except self._library.error.DNSError as error:
            raise OSError(0, str(error.args[-1]).lower()) from error
        addresses = tuple(_text(node.addr[0]) for node in found.nodes)
        return Records(addresses, min((node.ttl for node in found.nodes), default=0))

    async def close(self) -> None:
        """End the lookups under way."""
        if self._resolver is not None:
            resolver, self._resolver = self._resolver, None
            await resolver.close()

    def _made(self) -> Any:
        try:
            return self._library.DNSResolver(nameservers=self._servers or None)
        except (OSError, ValueError, self._below.AresError) as error:
            raise OSError(0, f"the name servers cannot be used: {error}") from error


def _text(address: bytes | str) -> str:
    return address.decode("ascii") if isinstance(address, bytes) else address
