"""Judges a request log: was the crawler polite, did it ask twice, did it go where it may not?

Each audit gives sentences or counts, empty when all is well, so that a test can assert on emptiness and a failure
says by itself what happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from crawlspace.testing.toyweb.log import Request
from crawlspace.testing.toyweb.truth import Truth

ROBOTS = "/robots.txt"
TOLERANCE_MS = 5
"""How late the server itself may notice a request."""


def politeness(
    requests: Iterable[Request],
    truth: Truth,
    delay_ms: int,
    *,
    tolerance_ms: int = TOLERANCE_MS,
    is_busy: bool = False,
) -> list[str]:
    """Requests of one host that overlapped, came too soon after one another, or ignored a Retry-After.

    The distance is start to start. A Crawl-delay counts from the first request behind the robots file that asks for
    it. Hosts are names: http and https of one name are one host.

    On a busy machine an arrival may be noted late, and the next one then seems to come too soon. With `is_busy` such
    a pair is let pass when the distance to the request before it was longer by at least what is missing.
    """
    hosts: dict[str, list[Request]] = {}
    for request in requests:
        hosts.setdefault(request.host, []).append(request)
    found = []
    for host in sorted(hosts):
        inside = sorted(hosts[host], key=lambda request: request.arrived)
        crawl_delay = truth.crawl_delays.get(host, 0)
        spare = 0.0
        for before, after in pairwise(inside):
            asked = delay_ms if before.target == ROBOTS else max(delay_ms, crawl_delay)
            asked = max(asked, before.wait_ms)
            found += _too_soon(before, after, asked, tolerance_ms + spare) + _at_once(before, after, tolerance_ms)
            spare = max(0.0, _gap(before, after) - asked) if is_busy else 0.0
    return found


def _gap(before: Request, after: Request) -> float:
    return (after.arrived - before.arrived) * 1000


def _too_soon(before: Request, after: Request, asked_ms: int, tolerance_ms: float) -> list[str]:
    gap = _gap(before, after)
    if gap >= asked_ms - tolerance_ms:
        return []
    return [f"{after.url} came {gap:.1f} ms after {before.url}, {asked_ms} ms were asked for"]


def _at_once(before: Request, after: Request, tolerance_ms: int) -> list[str]:
    if before.ended is not None and (before.ended - after.arrived) * 1000 <= tolerance_ms:
        return []
    return [f"{after.url} was asked for while {before.url} was still being answered"]


def fetched_twice(requests: Iterable[Request], truth: Truth) -> dict[str, int]:
    """Pages that were answered whole with 200 more than once, under whatever spellings, and how often."""
    times = Counter(
        _identity(request.url, truth)
        for request in requests
        if request.status == 200 and request.whole and request.method == "GET"
    )
    return {page: count for page, count in times.items() if count > 1 and page}


def _identity(url: str, truth: Truth) -> str:
    """The page behind a URL, empty for what is none; a trap of combinations has a page for each set of parameters."""
    page = truth.page_of.get(url, "")
    if page in truth.pages:
        return page
    found = truth.trap_of(url)
    if found is None or found.trap.combinations is None:
        return ""
    front, mark, query = url.partition("?")
    return front + mark + "&".join(sorted(query.split("&")))


def robots_not_first(requests: Iterable[Request]) -> list[str]:
    """Origins of which something else was asked before their robots.txt."""
    first: dict[str, Request] = {}
    for request in sorted(requests, key=lambda request: request.arrived):
        first.setdefault(request.origin, request)
    return [
        f"{request.url} was asked for before robots.txt" for request in first.values() if request.target != ROBOTS
    ]


def trespasses(requests: Sequence[Request], truth: Truth) -> list[str]:
    """Requests for what robots.txt forbids, what is out of scope, or what a host with robots.txt down has."""
    found = []
    for request in requests:
        page = truth.page_of.get(request.url)
        if request.url in truth.disallowed or page in truth.disallowed:
            found.append(f"{request.url} is forbidden by robots.txt")
        elif request.url in truth.out_of_scope or page in truth.out_of_scope:
            found.append(f"{request.url} is out of scope")
        elif request.host in truth.deferred_hosts and request.target != ROBOTS:
            found.append(f"{request.url} was asked for although robots.txt cannot be had")
    return found
