"""SOCKS version 5 (RFC 1928, RFC 1929), by python-socks; imported only where such a proxy is set.

The library connects to nothing by itself: it is handed a socket that the guard has passed.
"""

from __future__ import annotations

import socket

from python_socks import ProxyError, ProxyType
from python_socks.async_.asyncio import Proxy as Client

from crawlspace.fetch.secrets import Login


class Refused(Exception):
    """The proxy did not connect us; `blames_target` says whether that is the target's doing."""

    def __init__(self, reason: str, *, blames_target: bool) -> None:
        super().__init__(reason)
        self.blames_target = blames_target


_TARGET_FAILED = range(3, 7)
"""Replies that speak of the target: unreachable network or host, refused, expired (RFC 1928, section 6)."""


class _Connected(Client):
    """In the library's words the proxy in front of the proxy: here the socket that is connected already."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(ProxyType.SOCKS5, "", 0)
        self._sock = sock

    async def connect(self, *_where: object, **_how: object) -> socket.socket:
        return self._sock


async def connect(sock: socket.socket, host: str, port: int, login: Login | None) -> None:
    """Ask the proxy at the other end of a socket to connect on to a host; raises `Refused` or OSError.

    `host` is a name, which the proxy looks up, or an address. The caller bounds the time.
    """
    user, password = (login.user, login.password) if login else (None, None)
    client = Client(ProxyType.SOCKS5, host="", port=0, username=user, password=password, forward=_Connected(sock))
    try:
        await client.connect(host, port, timeout=86_400)
    except ProxyError as error:
        raise Refused(str(error), blames_target=error.error_code in _TARGET_FAILED) from error
    except (AssertionError, ValueError, IndexError) as error:  # what a proxy says out of turn
        raise Refused("this is no SOCKS5 proxy, or it wants a login", blames_target=False) from error
