"""Visits beyond the first: URLs that are due again leave their outcome for the queue, and what it was is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from crawlspace.frontier.counters import DUPLICATES, PAGES
from crawlspace.frontier.postgres.columns import keys, numbers
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.postgres.urls import Named
from crawlspace.frontier.rounds import (
    DUE_AT_ONCE,
    LATER_MS,
    VISITS_READ,
    Counted,
    Visited,
    before,
    figures,
    told,
)
from crawlspace.states import Event, UrlState
from crawlspace.types import Before, GenerationFigures, Plan, Round

_SQL = queries("revisit.sql")

_NO_LIMIT = (1 << 63) - 1


class _Arrived(NamedTuple):
    """URLs of one host and kind that were queued again."""

    hid: int
    state: int
    page: bool
    n: int
    copies: int
    best_class: int


async def wake(transaction: Transaction) -> None:
    """Queue the URLs whose next visit is due, some at a time; those of a host that somebody else holds come later."""
    if not transaction.settings.revisits:
        return
    due = {"now": transaction.now, "limit": DUE_AT_ONCE}
    hids = sorted(hid for (hid,) in await transaction.rows(_SQL["due"], **due))
    if not hids:
        return
    most = transaction.settings.queue_per_host
    held = await transaction.rows(
        _SQL["hold_free"],
        most=_NO_LIMIT if most is None else most,
        shard=numbers(map(transaction.shards.of, hids)),
        hid=numbers(hids),
    )
    held_up = [hid for hid, is_held_up in held if is_held_up]
    if held_up:
        await transaction.run(_SQL["postpone"], later=transaction.now + LATER_MS, hid=numbers(held_up), **due)
    going = [hid for hid, is_held_up in held if not is_held_up]
    for row in await transaction.rows(_SQL["arrive"], hid=numbers(going), **due):
        _count(transaction, _Arrived._make(row))


def _count(transaction: Transaction, arrived: _Arrived) -> None:
    state = UrlState(arrived.state)
    book, delta = transaction.book, transaction.book.host(arrived.hid)
    book.move(state, Event.REVISIT, arrived.n)
    book.add(DUPLICATES, -arrived.copies)
    delta.queued += arrived.n
    delta.best_class = min(delta.best_class, arrived.best_class)
    delta.duplicates -= arrived.copies
    if state is UrlState.DONE:
        delta.done -= arrived.n
        book.add(PAGES, -arrived.n if arrived.page else 0)
    elif state is UrlState.DEAD:
        delta.dead -= arrived.n


async def visits(transaction: Transaction, urls: Sequence[Named]) -> dict[int, list[Visited]]:
    """The latest visits of URLs by their numbers, the newest first."""
    if not urls:
        return {}
    rows = await transaction.rows(
        _SQL["visits"],
        shard=numbers(transaction.shards.of(url.hid) for url in urls),
        id=numbers(url.number for url in urls),
        limit=VISITS_READ,
    )
    return {number: list(each) for number, each in groupby(map(Visited._make, rows), key=lambda visit: visit.id)}


async def known(transaction: Transaction, urls: Sequence[Named]) -> dict[int, Before | None]:
    """What the next visits of URLs must know, by number."""
    return {number: before(each) for number, each in (await visits(transaction, urls)).items()}


async def rounds(transaction: Transaction, wanted: Sequence[bytes]) -> list[list[Round]]:
    """The visits of URLs that others have followed, by fingerprint."""
    rows = await transaction.rows(
        _SQL["rounds"], shard=numbers(map(transaction.shards.of_key, wanted)), fp=keys(wanted)
    )
    found: list[list[Round]] = [[] for _ in wanted]
    for place, *visit, file in rows:
        found[place - 1].append(told(Visited._make(visit), file))
    return found


async def next_visit(transaction: Transaction) -> int | None:
    """When the first next visit is due; None when there is none."""
    rows = await transaction.rows(_SQL["next_visit"])
    return rows[0][0] if rows else None


async def generations(transaction: Transaction, states: Mapping[UrlState, int]) -> list[GenerationFigures]:
    """Each generation in numbers; `states` are the totals over all."""
    return figures(map(Counted._make, await transaction.rows(_SQL["counted"])), states)


async def plan(transaction: Transaction, after: int, limit: int, by: Plan) -> int | None:
    """Give the next outcomes behind a number their next visit; the number reached, None at the end."""
    everywhere = numbers(range(transaction.shards.number))
    rows = await transaction.rows(_SQL["batch_end"], all=everywhere, after=after, limit=limit)
    end: int | None = rows[0][0]
    if end is not None:
        await transaction.run(_SQL["plan"], all=everywhere, after=after, end=end, **by._asdict())
    return end


async def bring_forward(transaction: Transaction, changed: Mapping[Named, int]) -> None:
    """These pages were changed at these times, as somebody says: where that is news, they are due now."""
    if not changed:
        return
    ordered = sorted(changed)
    await transaction.run(
        _SQL["bring_forward"],
        now=transaction.now,
        shard=numbers(transaction.shards.of(url.hid) for url in ordered),
        id=numbers(url.number for url in ordered),
        modified=numbers(changed[url] for url in ordered),
    )
