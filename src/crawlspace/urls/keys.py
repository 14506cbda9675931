"""Fingerprints: the key under which a crawl knows a URL.

A key is 6 bytes of the host and 10 bytes of the canonical URL, both from BLAKE2b (RFC 7693) under the crawl's own
key and told apart by its `person` value. The host comes first so that one host's URLs lie together in a store; the
crawl's key keeps strangers from making URLs whose keys collide. A request that is not a plain GET adds its method
and body.

With 80 bits a host of a hundred million URLs has a chance of 1 in 240 million to hold one collision. With 48 bits
a crawl of a million hosts has a chance of 1 in 560 that two share their number; they then share a pace, not a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from msgspec.structs import replace

from crawlspace.types import FINGERPRINT_BYTES, HOST_BYTES, Address, RequestSpec, Unusable
from crawlspace.urls.explain import Explanation, explain
from crawlspace.urls.parser import query_codec, resolve, with_query_in
from crawlspace.urls.policies import Policy
from crawlspace.urls.reader import Reader
from crawlspace.urls.sites import Site

_HOST_PERSON: Final = b"crawlspace.host"
_URL_PERSON: Final = b"crawlspace.url"
_PLAIN: Final = b"\x00"
_SPECIAL: Final = b"\x01"
_HOSTS_KEPT: Final = 4096


class Identity:
    """Who a URL is in one crawl: under its policy, with its hash key (64 bytes at most)."""

    def __init__(self, policy: Policy, hash_key: bytes = bytes(32)) -> None:
        self.policy = policy
        self._reader = Reader(policy, self._canonical_address if policy.fetch_canonical else self._address, Unusable)
        self._of_host = blake2b(digest_size=HOST_BYTES, key=hash_key, person=_HOST_PERSON)
        size = FINGERPRINT_BYTES - HOST_BYTES
        # The first byte lets the block with the key be hashed once here instead of once a URL.
        self._of_plain = blake2b(_PLAIN, digest_size=size, key=hash_key, person=_URL_PERSON)
        self._of_special = blake2b(_SPECIAL, digest_size=size, key=hash_key, person=_URL_PERSON)
        self._hosts: dict[str, bytes] = {}

    def identify(
        self, text: str, base: str | None = None, *, request: RequestSpec | None = None, encoding: str = "utf-8"
    ) -> Address | Unusable:
        """Who `text` is, relative to `base`, asked for as `request` says; or why it is no URL.

        `encoding` is that of the page where the link stands: its query is sent in it.
        """
        address = self._reader.recent(text) if base is None else None
        if address is None:
            start = None if base is None else resolve(base)
            if base is not None and start is None:
                return Unusable(text, "syntax")
            found = self._reader.one(with_query_in(text, query_codec(encoding)), start)
            if isinstance(found, Unusable):
                return Unusable(text, found.reason)
            address = found
        if request is None or (request.method.upper() == "GET" and not request.body):
            return address
        return replace(address, key=self._special_key(address, request))

    def identify_many(self, texts: Sequence[str], base: str, *, encoding: str = "utf-8") -> list[Address | Unusable]:
        """Who the links of a page are, in order. `base` is the page's base URL, `encoding` the page's own."""
        start = resolve(base)
        if start is None:
            return [Unusable(text, "syntax") for text in texts]
        codec = query_codec(encoding)
        if codec is None:
            return self._reader.many(texts, start)
        found = self._reader.many([with_query_in(text, codec) for text in texts], start)
        return [
            Unusable(text, who.reason) if isinstance(who, Unusable) else who
            for text, who in zip(texts, found, strict=True)
        ]

    def explain(self, text: str, base: str | None = None) -> Explanation:
        """How `text` became its canonical form: each step that changed something, and why."""
        return explain(text, base, self.policy)

    def _address(self, fetch_url: str, canonical: str, site: Site) -> Address:
        digest = self._of_plain.copy()
        digest.update(canonical.encode())
        return Address(fetch_url, canonical, site.host, self._host_key(site.host) + digest.digest())

    def _canonical_address(self, _fetch_url: str, canonical: str, site: Site) -> Address:
        return self._address(canonical.partition("#")[0], canonical, site)

    def _host_key(self, host: str) -> bytes:
        known = self._hosts.get(host)
        if known is None:
            if len(self._hosts) >= _HOSTS_KEPT:
                self._hosts.clear()
            digest = self._of_host.copy()
            digest.update(host.encode())
            known = self._hosts[host] = digest.digest()
        return known

    def _special_key(self, address: Address, request: RequestSpec) -> bytes:
        digest = self._of_special.copy()
        # Digests of fixed length, so that no method can run into a body or a URL.
        digest.update(blake2b(request.method.upper().encode(), digest_size=16).digest())
        digest.update(blake2b(request.body, digest_size=32).digest())
        digest.update(address.canonical.encode())
        return address.key[:HOST_BYTES] + digest.digest()
