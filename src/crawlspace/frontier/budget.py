"""What binds a wish: the page budget of a crawl, which all who work on it share, and a worker's part of the hosts.

The store itself keeps the budget, where URLs are leased.
"""

from __future__ import annotations

from msgspec.structs import replace

from crawlspace.policy.groups import Grouping
from crawlspace.types import Wish


def within_budget(wish: Wish, fetches: int, leased: int) -> Wish:
    """The wish, cut down to what the budget leaves; for no host at all when it leaves nothing.

    A leased URL stands for one request, which is counted when it is settled: `fetches` and `leased` are read in the
    transaction that leases, after all others that lease.
    """
    if wish.pages is None:
        return wish
    left = max(0, wish.pages - fetches - leased)
    hosts = min(wish.hosts, left)
    return replace(wish, hosts=hosts, urls_per_host=min(wish.urls_per_host, left // hosts) if hosts else 0)


def within_part(wish: Wish, grouping: Grouping) -> Wish:
    """The wish, cut down to the worker's part of the hosts at once where none can be in a group."""
    if wish.lone is None or not grouping.is_off:
        return wish
    return replace(wish, hosts=max(0, min(wish.hosts, wish.lone)), lone=None)
