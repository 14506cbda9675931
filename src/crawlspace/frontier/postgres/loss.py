"""Lost leases: their URLs come back as suspects, their hosts wait their delay, and no try is used up.

A URL that was lost is leased alone from then on. One that is lost alone again and again kills its workers: it becomes
a dead letter. Any worker may take back what has expired, whoever held it.
"""

from __future__ import annotations

from collections.abc import Mapping

from crawlspace.frontier.bounds import CRASHES_WORKER, LONGEST_WAIT_MS, LOSSES, LOST_AT_ONCE, NO_TOKEN
from crawlspace.frontier.postgres import groups
from crawlspace.frontier.postgres.columns import numbers
from crawlspace.frontier.postgres.hosts import drop_leases, given, hold
from crawlspace.frontier.postgres.sessions import end_silent, queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.postgres.urls import Taking, Urls
from crawlspace.frontier.rows import Ending
from crawlspace.states import Event, UrlState

_SQL = queries("loss.sql")


async def reclaim(transaction: Transaction) -> int:
    """Give up leases whose time is over; how many.

    Hosts that somebody holds are passed over, for ever if he was stopped within a transaction: his session is ended.
    """
    await end_silent(transaction.connection)
    rows = await transaction.rows(_SQL["expired"], now=transaction.now, limit=LOST_AT_ONCE)
    return await _lose(transaction, dict(rows))


async def void(transaction: Transaction, worker: int) -> int:
    """Give up some of a worker's own leases, whatever their time; how many."""
    rows = await transaction.rows(_SQL["of_worker"], worker=worker, limit=LOST_AT_ONCE)
    held = await hold(transaction, [hid for (hid,) in rows])
    return await _lose(transaction, {host.token: hid for hid, host in held.items() if host.token is not None})


async def clamp(transaction: Transaction) -> None:
    """Let no host wait for a time that only a wrong clock can have written."""
    bound = transaction.now + LONGEST_WAIT_MS
    await transaction.run(_SQL["clamp"], bound=bound)
    await groups.clamp(transaction, bound)


async def _lose(transaction: Transaction, leases: Mapping[int, int]) -> int:
    """Give up these leases, host by token; the hosts are held."""
    if not leases:
        return 0
    await _suspect(transaction, leases)
    await transaction.write_hosts()
    await drop_leases(transaction, leases)
    hids = sorted(leases.values())
    await groups.give_up(transaction, hids)
    await transaction.run(
        _SQL["free"],
        shard=numbers(map(transaction.shards.of, hids)),
        hid=numbers(hids),
        now=transaction.now,
        first_delay_ms=transaction.settings.delay_ms,
    )
    return len(leases)


async def _suspect(transaction: Transaction, leases: Mapping[int, int]) -> None:
    """One more loss of each URL that a lease had not settled; leases that are lost together blame none of theirs."""
    held = await given(transaction, leases)
    urls = [
        Taking(leases[token], front_class, number, token)
        for token, classes in held.items()
        for number, front_class in classes.items()
    ]
    if not urls:
        return
    hids, classes, ids, tokens = zip(*sorted(urls), strict=True)
    rows = await transaction.rows(
        _SQL["suspect"],
        alone=len(leases) == 1,
        shard=numbers(map(transaction.shards.of, hids)),
        hid=numbers(hids),
        id=numbers(ids),
        token=numbers(tokens),
        **{"class": numbers(classes)},
    )
    for hid, *_ in rows:
        transaction.book.host(hid).leased -= 1
    killers = [Taking(hid, front_class, number, NO_TOKEN) for hid, front_class, number, n in rows if n >= LOSSES]
    transaction.book.move(UrlState.LEASED, Event.RETURN, len(rows) - len(killers))
    await _bury(transaction, killers)


async def _bury(transaction: Transaction, killers: list[Taking]) -> None:
    urls = Urls(transaction)
    state = transaction.book.move(UrlState.LEASED, Event.DIE, len(killers))
    detail = f"the lease that held it alone was lost {LOSSES - 1} times"
    end = Ending(state=int(state), at=transaction.now, reason=CRASHES_WORKER, detail=detail)
    rows = await urls.take(killers)
    assert len(rows) == len(killers), "a URL left the queue while it was looked at"
    await urls.end([(row, end) for row in rows.values()])
    for row in rows.values():
        delta = transaction.book.host(row.hid)
        delta.queued -= 1
        delta.dead += 1
