"""Names of hosts, taken from URLs as the parser writes them, and the registrable domains they belong to.

The Public Suffix List comes with `publicsuffixlist` and is loaded when the first name is judged; of its ten thousand
rules only those of the top-level domains that are met are parsed. Nothing here resolves a name or looks at the
network. Texts that are no host come back unchanged; no function raises.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


def origin_of(fetch_url: str) -> str:
    """Scheme, host and port of a fetch URL: what robots, TLS, cookies and secrets go by (RFC 6454, 4)."""
    scheme, mark, rest = fetch_url.partition("://")
    return f"{scheme}{mark}{_authority(rest)}"


def host_name(fetch_url_or_host: str) -> str:
    """The host name without port, of a fetch URL or of a host with or without port."""
    _, mark, rest = fetch_url_or_host.partition("://")
    host = _authority(rest) if mark else fetch_url_or_host
    if host.endswith("]"):
        return host
    name, colon, _port = host.rpartition(":")
    return name if colon else host


def _authority(rest: str) -> str:
    for mark in "/?#":
        rest = rest.partition(mark)[0]
    return rest.rpartition("@")[2]


def is_address(host: str) -> bool:
    """Whether the host, with or without port, is an IPv4 address or an IPv6 address in brackets."""
    name = host_name(host)
    try:
        if name.startswith("[") and name.endswith("]"):
            IPv6Address(name[1:-1])
        else:
            IPv4Address(name)
    except AddressValueError:
        return False
    return True


@lru_cache(maxsize=8192)
def registrable_domain(host: str) -> str:
    """The name under which a host's domain was registered: `example.co.uk` for `shop.example.co.uk`.

    An address, a single label and a public suffix are their own. Takes a host with or without port.
    """
    name = host_name(host)
    if is_address(name) or "." not in name:
        return name
    name_without_dot = name.rstrip(".")
    return _suffixes(_known_top(name_without_dot)).privatesuffix(name_without_dot) or name


def _known_top(name: str) -> str:
    """The top-level domain as the list spells it, in letters; empty when it has no rules."""
    top = name.rpartition(".")[2].lower()
    if top.startswith("xn--"):
        with suppress(UnicodeError):
            top = top.encode().decode("idna")
    return top if top in _rules() else ""


@cache
def _suffixes(top: str) -> PublicSuffixList:
    """The rules under one top-level domain; without any, each of its names is one that was registered."""
    from publicsuffixlist import PublicSuffixList

    rules = _rules().get(top, ())
    return PublicSuffixList(rules, accept_encoded_idn=not all(map(str.isascii, rules)))


@cache
def _rules() -> Mapping[str, Sequence[str]]:
    """The rules of the list by their top-level domain."""
    from pkgutil import get_data

    rules: defaultdict[str, list[str]] = defaultdict(list)
    text = (get_data("publicsuffixlist", "public_suffix_list.dat") or b"").decode()
    for line in text.splitlines():
        if line[:1] not in ("", "/", " "):
            rule = line.partition(" ")[0].lower()
            rules[rule[rule.rfind(".") + 1 :]].append(rule)
    return rules
