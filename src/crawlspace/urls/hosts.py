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

_FIRST_SLASH = len("https://")
"""From where a slash ends what names a host, or stands behind its end."""
_STARTS = 4096
"""Starts of URLs that are remembered with what they name."""


def origin_of(fetch_url: str) -> str:
    """Scheme, host and port of a fetch URL: what robots, TLS, cookies and secrets go by (RFC 6454, 4)."""
    slash = fetch_url.find("/", _FIRST_SLASH)
    return _origin(fetch_url if slash < 0 else fetch_url[:slash])


def host_name(fetch_url_or_host: str) -> str:
    """The host name without port, of a fetch URL or of a host with or without port."""
    slash = fetch_url_or_host.find("/", _FIRST_SLASH)
    return _host_name(fetch_url_or_host if slash < 0 else fetch_url_or_host[:slash])


@lru_cache(maxsize=_STARTS)
def _origin(start: str) -> str:
    """The same of a URL's start, with which a host's URLs all begin."""
    scheme, mark, rest = start.partition("://")
    return f"{scheme}{mark}{_authority(rest)}"


@lru_cache(maxsize=_STARTS)
def _host_name(start: str) -> str:
    _, mark, rest = start.partition("://")
    host = _authority(rest) if mark else start
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
