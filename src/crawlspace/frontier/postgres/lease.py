"""Leases: which hosts leave the front queues, with which of their URLs, to whom.

A host is due when it is ready, free, and its time has come. Two passes choose: the first gives each front class its
quota, so that no class starves; the second fills up in class order. Within a host the order is class, then arrival.
Hosts that somebody else holds at this moment are passed over: they are his, or soon free. Hosts that get no turn of
their pace group make room for others, which a further round chooses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, groupby, takewhile
from typing import NamedTuple

from msgspec.structs import replace

from crawlspace.frontier.budget import within_budget, within_part
from crawlspace.frontier.postgres import revisit
from crawlspace.frontier.postgres.columns import lists, numbers, texts
from crawlspace.frontier.postgres.groups import Asking, admit
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.postgres.urls import Named, Urls
from crawlspace.frontier.quotas import ROUNDS, Quotas
from crawlspace.frontier.rows import Waiting, pace, queued_url
from crawlspace.frontier.settings import CLASSES
from crawlspace.policy.groups import PaceGroup
from crawlspace.policy.sharing import left_alone
from crawlspace.states import Event, UrlState
from crawlspace.types import Before, Lease, LeasedHost, Pace, QueuedUrl, Wish

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
    address: str | None


class _Admitted(NamedTuple):
    """A host that gets a lease, of so many URLs at most."""

    host: _Due
    group: PaceGroup | None
    most: int


class _Grant(NamedTuple):
    host: _Due
    group: PaceGroup | None
    urls: list[Waiting]


async def lease(transaction: Transaction, wish: Wish, quotas: Quotas) -> list[Lease]:
    """Hold due hosts, and give each with its best URLs to the worker."""
    wish = within_part(wish, transaction.settings.grouping())
    leases: list[Lease] = []
    looked: list[int] = []
    for number in range(ROUNDS if wish.hosts else 0):
        wanted = wish.hosts - len(leases)
        due = await _choose(transaction, wanted, quotas, looked)
        looked += (host.hid for host in due)
        mine = _without_those_of_others(transaction, due, wish, leases)
        admitted = await _admit(transaction, mine, wish, meet=number == 0)
        leases += await _grant(transaction, await _best(transaction, admitted), wish)
        if not len(admitted) < len(mine) == len(due) == wanted:
            break
    return leases


def _without_those_of_others(
    transaction: Transaction, due: list[_Due], wish: Wish, leases: Sequence[Lease]
) -> list[_Due]:
    """Without what is beyond the worker's part, which is for others."""
    if wish.lone is None:
        return due
    grouping = transaction.settings.grouping()
    grouped = [grouping.group(host.name, host.address) is not None for host in due]
    has = sum(lease.host.group is None for lease in leases)
    return list(compress(due, left_alone(grouped, wish.lone - has)))


async def affordable(transaction: Transaction, wish: Wish) -> Wish:
    """The wish within the crawl's page budget. Called before anything else is held.

    Who leases under a budget waits for all others that do: none may see totals in which another's leases are missing.
    """
    if wish.pages is None:
        return wish
    await transaction.run(_SQL["take_turn"])
    [(fetches, leased)] = await transaction.rows(_SQL["spent"])
    return within_budget(wish, fetches, leased)


async def _admit(transaction: Transaction, due: Sequence[_Due], wish: Wish, *, meet: bool) -> list[_Admitted]:
    """Those with a page left and a turn of their group; in a group the longest waiting, whatever its class."""
    grouping = transaction.settings.grouping()
    groups = {host.hid: grouping.group(host.name, host.address) for host in due}
    most = {host.hid: _most(transaction, host, groups[host.hid], wish) for host in due}
    spent = [hid for hid, urls in most.items() if urls <= 0]
    if spent:
        await transaction.run(_SQL["park"], **_columns(transaction, spent))
    asking = [
        Asking(host.hid, group)
        for host in sorted(due, key=lambda host: host.next_at)
        if most[host.hid] > 0 and (group := groups[host.hid]) is not None
    ]
    got = await admit(transaction, asking, wish.worker, meet=meet)
    return [
        _Admitted(host, groups[host.hid], most[host.hid])
        for host in due
        if most[host.hid] > 0 and (groups[host.hid] is None or host.hid in got)
    ]


async def _choose(transaction: Transaction, hosts: int, quotas: Quotas, before: Sequence[int]) -> list[_Due]:
    asked: dict[int, int] = {}
    left = hosts
    for front_class, share in quotas.turn(hosts):
        asked[front_class] = min(share, left)
        left -= asked[front_class]
    taken = await _due(transaction, {each: most for each, most in asked.items() if most}, before, hosts)
    for front_class, most in asked.items():
        got = sum(host.front_class == front_class for host in taken)
        quotas.took(front_class, got)
        if got < most:
            quotas.is_empty(front_class)
    left = hosts - len(taken)
    taken += await _due(
        transaction, dict.fromkeys(range(CLASSES), left), [*before, *(host.hid for host in taken)], left
    )
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


async def _best(transaction: Transaction, admitted: Sequence[_Admitted]) -> list[_Grant]:
    """The first URLs of each host; a suspect goes alone."""
    if not admitted:
        return []
    rows = await transaction.rows(
        _SQL["best"],
        **_columns(transaction, [one.host.hid for one in admitted]),
        most=numbers(one.most for one in admitted),
    )
    queues = groupby(map(Waiting._make, rows), key=lambda row: row.hid)
    urls = {hid: _alone_if_suspect(list(queue)) for hid, queue in queues}
    return [_Grant(one.host, one.group, urls[one.host.hid]) for one in admitted]


def _most(transaction: Transaction, host: _Due, group: PaceGroup | None, wish: Wish) -> int:
    """How many URLs fit into the visit and the budget."""
    budget = transaction.settings.pages(host.seed)
    left = wish.urls_per_host if budget is None else min(wish.urls_per_host, budget - host.fetched)
    clock = _pace(transaction, host)
    delay = max(clock.delay_ms, clock.crawl_delay_ms or 0)
    if group is not None:
        delay = max(delay, group.delay_ms * group.concurrency)
    return left if delay == 0 else min(left, max(1, wish.visit_ms // delay))


def _alone_if_suspect(urls: list[Waiting]) -> list[Waiting]:
    if urls[0].suspect:
        return urls[:1]
    return list(takewhile(lambda row: not row.suspect, urls))


async def _grant(transaction: Transaction, grants: Sequence[_Grant], wish: Wish) -> list[Lease]:
    if not grants:
        return []
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
        pace_group=texts(_name(grant.group) for grant in grants),
        **columns,
    )
    transaction.book.move(UrlState.QUEUED, Event.LEASE, sum(len(grant.urls) for grant in grants))
    again = [Named(row.hid, row.id) for grant in grants for row in grant.urls if row.generation]
    seen = await revisit.known(transaction, again)
    return [
        Lease(token, _leased(transaction, grant), tuple(_given(row, seen) for row in grant.urls), until)
        for token, grant in zip(tokens, grants, strict=True)
    ]


def _given(row: Waiting, seen: Mapping[int, Before | None]) -> QueuedUrl:
    url = queued_url(row)
    return replace(url, before=seen.get(row.id)) if row.generation else url


def _leased(transaction: Transaction, grant: _Grant) -> LeasedHost:
    host = grant.host
    return LeasedHost(host.hid, host.name, _pace(transaction, host), host.fetched, _name(grant.group), host.address)


def _name(group: PaceGroup | None) -> str | None:
    return None if group is None else group.name


def _pace(transaction: Transaction, host: _Due) -> Pace:
    stored = (host.next_at, host.delay_ms, host.crawl_delay_ms, host.failures, host.slowed, host.latency_ms)
    return pace(stored, transaction.settings.delay_ms)


def _columns(transaction: Transaction, hids: Sequence[int]) -> dict[str, str]:
    return {"shard": numbers(transaction.shards.each(hids)), "hid": numbers(hids)}


async def renew(transaction: Transaction, tokens: Sequence[int], ttl_ms: int) -> list[bool]:
    """Extend leases; False for each that is lost."""
    rows = await transaction.rows(_SQL["renew"], token=numbers(tokens), until=transaction.now + ttl_ms)
    live = {token for (token,) in rows}
    return [token in live for token in tokens]


async def next_due(transaction: Transaction, worker: int) -> int | None:
    """The earliest time at which there is something to lease or to reclaim; `now` when rows wait to be moved."""
    [(due,)] = await transaction.rows(_SQL["next_due"], worker=worker, **budgets(transaction))
    if due != AT_ONCE and transaction.settings.revisits:
        visit = await revisit.next_visit(transaction)
        # One that was brought forward since the last lease counts for a crawl that does not wait, too.
        if visit is not None and (transaction.settings.waits_for_visits or visit <= transaction.now):
            due = visit if due is None else min(due, visit)
    return transaction.now if due == AT_ONCE else due


def budgets(transaction: Transaction) -> dict[str, int]:
    """Pages that a host may give, as parameters: a very large number when there is no limit."""
    given = {"pages": transaction.settings.pages(False), "seed_pages": transaction.settings.pages(True)}
    return {name: NO_LIMIT if pages is None else pages for name, pages in given.items()}
