"""Which proxy a request goes through, and with which login.

A proxy is the user's own choice, never a page's. Its login is bound to it: it goes to that proxy and to nobody else,
and is no part of its address, so that an address may be shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from crawlspace.fetch.patterns import pattern_of, patterns_for
from crawlspace.fetch.request import Origin
from crawlspace.fetch.secrets import Login, login_from

DIRECT = "direct"
"""In place of a proxy: none."""
_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
_URL = re.compile(
    r"(?P<scheme>https?|socks5h?)://(?P<host>\[[0-9a-f:]+\]|[0-9a-z._-]+)(?::(?P<port>[0-9]{1,5}))?/?", re.IGNORECASE
)


class Proxy(NamedTuple):
    """Who carries requests for us."""

    scheme: str
    """`http` and `https`: how we speak to it; `socks5`: names are looked up here; `socks5h`: there."""
    host: str
    """As in a URL; an IPv6 address in brackets."""
    port: int

    @property
    def origin(self) -> Origin:
        """What its certificate, and our certificate for it, go by."""
        return Origin(self.scheme, self.host, self.port)

    @property
    def is_socks(self) -> bool:
        return self.scheme.startswith("socks5")

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"


def proxy_from(text: str) -> Proxy:
    """Read a proxy's URL; raises ValueError, which does not repeat a text that may hold a login."""
    match = _URL.fullmatch(text)
    port = int(match.group("port") or _PORTS[match.group("scheme").lower()]) if match else 0
    if match is None or not 0 < port < 65_536:
        if "@" in text:
            raise ValueError("a proxy's URL holds no login: name the variable that does in network.proxy_auth")
        raise ValueError(f"{text[:100]!r} is no proxy, such as http://proxy.example:3128 or socks5://127.0.0.1:1080")
    return Proxy(match.group("scheme").lower(), match.group("host").lower(), port)


class Proxies:
    """Proxies by host with their logins; raises `ConfigError` for a login that is not in the environment."""

    def __init__(
        self, proxy: str | Mapping[str, str], auth: Mapping[str, str], environment: Mapping[str, str]
    ) -> None:
        self._table = dict(_entries(proxy))
        self._logins = {
            proxy_from(text): login_from(variable, "network.proxy_auth", environment)
            for text, variable in auth.items()
        }

    def __bool__(self) -> bool:
        return bool(self._table)

    def __iter__(self) -> Iterator[Proxy]:
        """Every proxy that is set, once."""
        return iter(dict.fromkeys(proxy for proxy in self._table.values() if proxy is not None))

    def of(self, origin: Origin) -> Proxy | None:
        """The proxy of the most exact pattern that fits, None for a direct connection."""
        if self._table:
            for pattern in (*patterns_for(origin.host, origin.port), "*"):
                if pattern in self._table:
                    return self._table[pattern]
        return None

    def login(self, proxy: Proxy) -> Login | None:
        return self._logins.get(proxy)


def check_proxies(proxy: str | Mapping[str, str], auth: Mapping[str, str]) -> None:
    """Raise ValueError for settings that name no proxies."""
    dict(_entries(proxy))
    for text in auth:
        proxy_from(text)


def _entries(setting: str | Mapping[str, str]) -> Iterator[tuple[str, Proxy | None]]:
    if isinstance(setting, str):
        setting = {"*": setting} if setting else {}
    for pattern, text in setting.items():
        yield pattern_of(pattern), None if text == DIRECT else proxy_from(text)
