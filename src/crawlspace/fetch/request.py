"""What is sent: from a request value to an origin and the bytes of a request head.

A URL arrives in WHATWG form, made by the one parser of the package, and is taken apart here without a second
parsing: what does not have exactly that form is refused. Nothing that could end a line gets into a head.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchRequest

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ACCEPT_ENCODING = "gzip, deflate, br, zstd"

_START = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:]+\]|[!\"$&-.0-9;=_`a-z{}~]+)(?::(?P<port>[0-9]{1,5}))?"
)
_TARGET = re.compile(r"/[!\"$-~]*")
_NO_URL = "no http or https URL in WHATWG form"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSAFE_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]")
_OURS = {"content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect", "keep-alive"}
"""Fields that say how the message is framed, or ask for what is not read."""
_NEEDS_LENGTH = {"POST", "PUT", "PATCH"}
_PORTS = {"http": 80, "https": 443}
NO_FIELDS: Mapping[str, str] = MappingProxyType({})


class Unsendable(Exception):
    """This request cannot be sent; the message says why."""


class Origin(NamedTuple):
    """Who is asked: connections and secrets belong to it."""

    scheme: str
    host: str
    """As in the URL; an IPv6 address in brackets."""
    port: int


class Destination(Struct, frozen=True):
    """Where a URL leads to."""

    origin: Origin
    authority: str
    """The origin as the Host field has it."""
    target: str
    """Path and query."""


def origin_from(text: str) -> Origin:
    """The origin that a setting names, such as `https://example.com`; raises ValueError without repeating a login."""
    try:
        destination = destination_of(f"{text.lower().rstrip('/')}/")
    except Unsendable:
        destination = None
    if destination is None or destination.target != "/":
        shown = repr(text[:100]) if "@" not in text else "a key"
        raise ValueError(f"{shown} is no origin, such as https://example.com or http://example.com:8080")
    return destination.origin


def destination_of(url: str) -> Destination:
    """Take a URL apart; raises `Unsendable`."""
    slash = url.find("/", len("https://"))
    if slash < 0 or not _TARGET.fullmatch(url, slash):
        raise Unsendable(_NO_URL)
    origin, authority = _asked(url[:slash])
    return Destination(origin, authority, url[slash:])


@lru_cache(maxsize=4096)
def _asked(start: str) -> tuple[Origin, str]:
    """Who is asked by URLs that begin so, and their authority: a host's URLs come one after the other."""
    match = _START.fullmatch(start)
    if match is None:
        raise Unsendable(_NO_URL)
    scheme, host, port = match.group("scheme", "host", "port")
    origin = Origin(scheme, host, int(port) if port else _PORTS[scheme])
    if not 0 < origin.port < 65_536:
        raise Unsendable(f"port {origin.port} does not exist")
    return origin, f"{host}:{port}" if port else host


class Composer:
    """Makes request heads, all with the same defaults; raises `ConfigError` for a user agent no header may hold."""

    def __init__(self, user_agent: str) -> None:
        self._defaults = {"User-Agent": user_agent, "Accept": ACCEPT, "Accept-Encoding": ACCEPT_ENCODING}
        try:
            _check_field("User-Agent", user_agent)
        except Unsendable as unsendable:
            raise ConfigError(f"user_agent: {unsendable}") from None
        self._plain = _lines(self._defaults)

    def compose(
        self, request: FetchRequest, to: Destination, secrets: Mapping[str, str] = NO_FIELDS, target: str = ""
    ) -> bytes:
        """The head of a request; raises `Unsendable`.

        `secrets` are fields for this origin or proxy alone; they replace the request's own of the same name.
        `target` is what stands in the request line, if not the destination's own.
        """
        target = target or to.target
        method = request.method
        if method == "GET" and not request.headers and not request.body and not secrets:
            return f"GET {target} HTTP/1.1\r\nHost: {to.authority}\r\n{self._plain}\r\n".encode("latin-1")
        fields = self._fields(request, to.authority, secrets)
        return f"{_method(method)} {target} HTTP/1.1\r\n{fields}\r\n".encode("latin-1")

    def _fields(self, request: FetchRequest, authority: str, secrets: Mapping[str, str]) -> str:
        secret = {name.lower() for name in secrets}
        own = [(name, value) for name, value in request.headers if name.lower() not in secret]
        replaced = {name.lower() for name, _ in own}
        defaults = {"Host": authority, **self._defaults, **secrets}
        text = _lines({name: value for name, value in defaults.items() if name.lower() not in replaced})
        for name, value in own:
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


def _lines(fields: Mapping[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in fields.items())
