"""Leases: which hosts leave the front queues, with which of their URLs, to whom.

A host is due when it is ready, free, and its time has come. Two passes choose: the first gives each front class its
quota, so that no class starves; the second fills up in class order. Within a host the order is class, then arrival.
Hosts that somebody else holds at this moment are passed over: they are his, or soon free.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, takewhile
from typing import NamedTuple

from crawlspace.frontier.postgres.columns import lists, numbers
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.postgres.urls import Urls
from crawlspace.frontier.settings import CLASSES
from crawlspace.frontier.sqlite.lease import Quotas
from crawlspace.frontier.sqlite.rows import Waiting, pace, queued_url
from crawlspace.states import Event, UrlState
from crawlspace.types import Lease, LeasedHost, Pace, Wish

_SQL = queries("lease.sql")

NO_LIMIT = (1 << 63) - 1
AT_ONCE = -1
"""What the statement says when hosts wait to be emptied or unparked, whatever the time."""


class _Due(NamedTuple):
    """A host that may be visited now, held."""

    hid: int
    name: str
    seed: bool
    fetched: int
    next_at: int
    delay_ms: int | None
    crawl_delay_ms: int | None
    failures: int
    slowed: int
    latency_ms: int
    front_class: int


class _Grant(NamedTuple):
    host: _Due
    urls: list[Waiting]


async def lease(transaction: Transaction, wish: Wish, quotas: Quotas) -> list[Lease]:
    """Hold due hosts, and give each with its best URLs to the worker."""
    due = await _choose(transaction, wish.hosts, quotas)
    if not due:
        return []
    best = await _best(transaction, due, wish)
    grants = [_Grant(host, best[host.hid]) for host in due if best.get(host.hid)]
    spent = [host.hid for host in due if host.hid not in best]
    if spent:
        await transaction.run(_SQL["park"], **_columns(transaction, spent))
    return await _grant(transaction, grants, wish) if grants else []


async def _choose(transaction: Transaction, hosts: int, quotas: Quotas) -> list[_Due]:
    asked: dict[int, int] = {}
    left = hosts
    for front_class, share in quotas.turn(hosts):
        asked[front_class] = min(share, left)
        left -= asked[front_class]
    taken = await _due(transaction, {each: most for each, most in asked.items() if most}, (), hosts)
    for front_class, most in asked.items():
        got = sum(host.front_class == front_class for host in taken)
        quotas.took(front_class, got)
        if got < most:
            quotas.is_empty(front_class)
    left = hosts - len(taken)
    taken += await _due(transaction, dict.fromkeys(range(CLASSES), left), [host.hid for host in taken], left)
    return sorted(taken, key=lambda host: (host.front_class, host.next_at, host.hid))


async def _due(transaction: Transaction, most: dict[int, int], taken: Iterable[int], enough: int) -> list[_Due]:
    if not most or enough <= 0:
        return []
    rows = await transaction.rows(
        _SQL["due"],
        most=numbers(most.values()),
        taken=numbers(taken),
        now=transaction.now,
        enough=enough,
        **{"class": numbers(most)},
    )
    return list(map(_Due._make, rows))


async def _best(transaction: Transaction, due: Sequence[_Due], wish: Wish) -> dict[int, list[Waiting]]:
    """What each host may give: what fits into the visit and the budget; a suspect goes alone."""
    fits = {host.hid: fit for host in due if (fit := _fit(transaction, host, wish)) > 0}
    if not fits:
        return {}
    hids = sorted(fits)
    rows = await transaction.rows(
        _SQL["best"], **_columns(transaction, hids), most=numbers(fits[hid] for hid in hids)
    )
    queues = groupby(map(Waiting._make, rows), key=lambda row: row.hid)
    return {hid: _alone_if_suspect(list(urls)) for hid, urls in queues}


def _fit(transaction: Transaction, host: _Due, wish: Wish) -> int:
    budget = transaction.settings.pages(host.seed)
    left = wish.urls_per_host if budget is None else min(wish.urls_per_host, budget - host.fetched)
    if left <= 0:
        return 0
    clock = _pace(transaction, host)
    delay = max(clock.delay_ms, clock.crawl_delay_ms or 0)
    return left if delay == 0 else min(left, max(1, wish.visit_ms // delay))


def _alone_if_suspect(urls: list[Waiting]) -> list[Waiting]:
    if urls[0].suspect:
        return urls[:1]
    return list(takewhile(lambda row: not row.suspect, urls))


async def _grant(transaction: Transaction, grants: Sequence[_Grant], wish: Wish) -> list[Lease]:
    until = transaction.now + wish.ttl_ms
    tokens = await Urls(transaction).tokens(len(grants))
    columns = _columns(transaction, [grant.host.hid for grant in grants]) | {"token": numbers(tokens)}
    await transaction.run(
        _SQL["record"],
        classes=lists([row.front_class for row in grant.urls] for grant in grants),
        ids=lists([row.id for row in grant.urls] for grant in grants),
        **columns,
    )
    await transaction.run(
        _SQL["occupy"],
        until=until,
        worker=wish.worker,
        urls=numbers(len(grant.urls) for grant in grants),
        **columns,
    )
    transaction.book.move(UrlState.QUEUED, Event.LEASE, sum(len(grant.urls) for grant in grants))
    return [
        Lease(token, _leased(transaction, grant.host), tuple(map(queued_url, grant.urls)), until)
        for token, grant in zip(tokens, grants, strict=True)
    ]


def _leased(transaction: Transaction, host: _Due) -> LeasedHost:
    return LeasedHost(host.hid, host.name, _pace(transaction, host), host.fetched)


def _pace(transaction: Transaction, host: _Due) -> Pace:
    stored = (host.next_at, host.delay_ms, host.crawl_delay_ms, host.failures, host.slowed, host.latency_ms)
    return pace(stored, transaction.settings.delay_ms)


def _columns(transaction: Transaction, hids: Sequence[int]) -> dict[str, str]:
    return {"shard": numbers(map(transaction.shards.of, hids)), "hid": numbers(hids)}


async def renew(transaction: Transaction, tokens: Sequence[int], ttl_ms: int) -> list[bool]:
    """Extend leases; False for each that is lost."""
    rows = await transaction.rows(_SQL["renew"], token=numbers(tokens), until=transaction.now + ttl_ms)
    live = {token for (token,) in rows}
    return [token in live for token in tokens]


async def next_due(transaction: Transaction) -> int | None:
    """The earliest time at which there is something to lease or to reclaim; `now` when rows wait to be moved."""
    [(due,)] = await transaction.rows(_SQL["next_due"], **budgets(transaction))
    return transaction.now if due == AT_ONCE else due


def budgets(transaction: Transaction) -> dict[str, int]:
    """Pages that a host may give, as parameters: a very large number when there is no limit."""
    given = {"pages": transaction.settings.pages(False), "seed_pages": transaction.settings.pages(True)}
    return {name: NO_LIMIT if pages is None else pages for name, pages in given.items()}
