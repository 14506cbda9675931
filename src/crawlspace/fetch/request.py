"""What is sent: from a request value to an origin and the bytes of a request head.

A URL arrives in WHATWG form, made by the one parser of the package, and is taken apart here without a second
parsing: what does not have exactly that form is refused. Nothing that could end a line gets into a head.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchRequest

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ACCEPT_ENCODING = "gzip, deflate, br, zstd"

_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:]+\]|[!\"$&-.0-9;=_`a-z{}~]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<target>/[!\"$-~]*)"
)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSAFE_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]")
_OURS = {"content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect", "keep-alive"}
"""Fields that say how the message is framed, or ask for what is not read."""
_NEEDS_LENGTH = {"POST", "PUT", "PATCH"}
_PORTS = {"http": 80, "https": 443}


class Unsendable(Exception):
    """This request cannot be sent; the message says why."""


class Origin(NamedTuple):
    """Who is asked: connections and secrets belong to it."""

    scheme: str
    host: str
    """As in the URL; an IPv6 address in brackets."""
    port: int


class Message(NamedTuple):
    """A request ready to be sent."""

    origin: Origin
    head: bytes


class Composer:
    """Makes request heads, all with the same defaults; raises `ConfigError` for a user agent no header may hold."""

    def __init__(self, user_agent: str) -> None:
        self._defaults = {"User-Agent": user_agent, "Accept": ACCEPT, "Accept-Encoding": ACCEPT_ENCODING}
        try:
            _check_field("User-Agent", user_agent)
        except Unsendable as unsendable:
            raise ConfigError(f"user_agent: {unsendable}") from None
        self._plain = _lines(self._defaults)

    def compose(self, request: FetchRequest) -> Message:
        """The origin and the head of a request; raises `Unsendable`."""
        match = _URL.fullmatch(request.url)
        if match is None:
            raise Unsendable("no http or https URL in WHATWG form")
        scheme, host, port, target = match.group("scheme", "host", "port", "target")
        origin = Origin(scheme, host, int(port) if port else _PORTS[scheme])
        if not 0 < origin.port < 65_536:
            raise Unsendable(f"port {origin.port} does not exist")
        authority = f"{host}:{port}" if port else host
        method = request.method
        if method == "GET" and not request.headers and not request.body:
            text = f"GET {target} HTTP/1.1\r\nHost: {authority}\r\n{self._plain}\r\n"
        else:
            text = f"{_method(method)} {target} HTTP/1.1\r\n{self._fields(request, authority)}\r\n"
        return Message(origin, text.encode("latin-1"))

    def _fields(self, request: FetchRequest, authority: str) -> str:
        own = {name.lower() for name, _ in request.headers}
        defaults = {"Host": authority, **self._defaults}
        text = _lines({name: value for name, value in defaults.items() if name.lower() not in own})
        for name, value in request.headers:
            _check_field(name, value)
            if name.lower() in _OURS:
                raise Unsendable(f"the field {name} is the fetcher's own")
            text += f"{name}: {value}\r\n"
        if request.body or request.method in _NEEDS_LENGTH:
            text += f"Content-Length: {len(request.body)}\r\n"
        return text


def _method(method: str) -> str:
    if not _TOKEN.fullmatch(method) or method == "CONNECT":
        raise Unsendable(f"method {method[:40]!r} cannot be used")
    return method


def _check_field(name: str, value: str) -> None:
    if not _TOKEN.fullmatch(name):
        raise Unsendable(f"{name[:40]!r} is no name of a header field")
    if _UNSAFE_VALUE.search(value):
        raise Unsendable(f"the value of the field {name} holds characters that no header may hold")


def _lines(fields: dict[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in fields.items())
