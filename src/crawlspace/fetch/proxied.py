"""A pool of proxies: one fetcher for each, and which of them a host is asked through."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from crawlspace.exchange import FetchRequest, FetchResult
from crawlspace.fetch.request import Unsendable, destination_of
from crawlspace.ports import Fetcher

REFUSED = frozenset({403, 407, 429, 503})
"""Statuses behind which another proxy may be let through."""
_REMEMBERED = 4096
"""Hosts whose proxy is kept in mind; one that is forgotten begins with the next."""


class ProxyPool:
    """Fetchers that differ in their proxy; `ports.Fetcher`.

    A host stays with the one that served it, so that it sees one visitor and not a crowd; when that fails or is
    refused, its next request goes through the next.
    """

    def __init__(self, fetchers: Sequence[Fetcher]) -> None:
        self._fetchers = fetchers
        self._of: OrderedDict[str, int] = OrderedDict()
        self._next = 0

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """See `ports.Fetcher`."""
        host = _host(request)
        chosen = self._chosen(host)
        result = await self._fetchers[chosen].fetch(request)
        if (result.error is not None or result.status in REFUSED) and self._of.get(host) == chosen:
            self._of[host] = (chosen + 1) % len(self._fetchers)
        return result

    async def close(self) -> None:
        """See `ports.Fetcher`."""
        for fetcher in self._fetchers:
            await fetcher.close()

    def _chosen(self, host: str) -> int:
        if host not in self._of:
            self._of[host] = self._next
            self._next = (self._next + 1) % len(self._fetchers)
            if len(self._of) > _REMEMBERED:
                self._of.popitem(last=False)
        self._of.move_to_end(host)
        return self._of[host]


def _host(request: FetchRequest) -> str:
    try:
        return destination_of(request.url).authority
    except Unsendable:
        return ""
