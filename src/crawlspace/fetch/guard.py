"""Which addresses may be connected to: the door between the crawl and private networks.

A page can name any address, and a name server can answer with any. So the guard judges the address itself, each
one that a name resolves to and again the one really connected, never the name. Only global unicast passes, with
every IPv4 address that is embedded in an IPv6 one, unless the user listed it.

Pure: values in, a reason or None out.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from crawlspace.errors import ConfigError

IPAddress = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_DOCUMENTATION = IPv6Network("3fff::/20")
"""RFC 9637; not every Python version that we run on knows it."""
_NAT64 = IPv6Network("64:ff9b::/96")
"""RFC 6052: an IPv4 address seen through a translator; the only global prefix outside of 2000::/3."""

NO_CONTACT = "public addresses need a contact: set `contact`"


def networks(allow: Iterable[str]) -> tuple[Network, ...]:
    """The networks and addresses of the setting `network.allow`; raises `ConfigError` for what is neither."""
    found: list[Network] = []
    for text in allow:
        try:
            found.append(ip_network(text, strict=False))
        except ValueError:
            raise ConfigError(
                f"network.allow: {text!r} is neither an IP address nor a network", hint="such as 10.0.0.0/8 or ::1"
            ) from None
    return tuple(found)


def refusal(address: IPAddress, allow: tuple[Network, ...] = (), public: bool = True) -> str | None:
    """Why this address may not be connected to, or None when it may.

    `allow` lists networks that pass although they are private. Without `public` no global address passes.
    """
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped  # the same endpoint in another spelling (RFC 4291, section 2.5.5.2)
    if _listed(address, allow):
        return None
    if not _global(address):
        return f"{address} is not a public address; network.allow can list it"
    for inner in _embedded(address):
        if not _listed(inner, allow) and not _global(inner):
            return f"{address} leads to {inner}, which is not a public address"
    return None if public else NO_CONTACT


def _listed(address: IPAddress, allow: tuple[Network, ...]) -> bool:
    return any(address in network for network in allow)


def _global(address: IPAddress) -> bool:
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and not address.is_reserved
    if address in _NAT64:
        return True
    return address in _GLOBAL_UNICAST and address not in _DOCUMENTATION and address.is_global


def _embedded(address: IPAddress) -> tuple[IPv4Address, ...]:
    """IPv4 addresses that packets to this one end up at: NAT64 (RFC 6052), 6to4 (RFC 3056), Teredo (RFC 4380)."""
    if isinstance(address, IPv4Address):
        return ()
    if address in _NAT64:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    return address.teredo or ()
