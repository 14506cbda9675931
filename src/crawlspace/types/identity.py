"""Who a URL is: its address under the crawl's rules, and how it is asked for."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

FINGERPRINT_BYTES = 16
HOST_BYTES = 6


def host_id(fingerprint: bytes) -> int:
    """The 48 host bits in front of a fingerprint: the number of its host."""
    return int.from_bytes(fingerprint[:HOST_BYTES], "big")


class Address(Struct, frozen=True):
    """One URL and who it is: what is requested, what is compared, and under which key."""

    fetch_url: str
    """As found: resolved by the WHATWG rules, fragment and user information dropped."""
    canonical: str
    """The one spelling under the crawl's URL rules; compared, never requested."""
    host: str
    """Host name after the host rules, with `:port` unless it is http's 80 or https's 443: the unit of pace."""
    key: bytes
    """Fingerprint: 48 bits of the host, then 80 bits of the canonical URL."""


class Unusable(NamedTuple):
    """A link that is no address we could fetch, and why."""

    text: str
    reason: str
    """`scheme`, `host`, `syntax`, `too_long` or `empty`."""


class RequestSpec(Struct, frozen=True):
    """How a URL is asked for when it is not a plain GET. Method and body are part of the identity."""

    method: str = "GET"
    body: bytes = b""
    content_type: str = ""
