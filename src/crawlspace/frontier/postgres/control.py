"""Commands to a crawl, written down and answered, and the hosts that a person holds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from crawlspace.frontier.bounds import KEPT_MS
from crawlspace.frontier.postgres.columns import numbers, text, texts
from crawlspace.frontier.postgres.hosts import hold as hold_rows
from crawlspace.frontier.postgres.ledger import new_edition
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.policy.commands import Asked, Hold

_SQL = queries("control.sql")

TAKEN_MS = 30_000
"""A worker that has not asked for so long does not carry out its commands any more."""


async def ask(transaction: Transaction, commands: Sequence[str]) -> list[int]:
    """Write commands down; their numbers."""
    await transaction.run(_SQL["forget"], before=transaction.now - KEPT_MS)
    rows = await transaction.rows(_SQL["ask"], now=transaction.now, command=texts(commands))
    return sorted(number for (number,) in rows)


async def asked(transaction: Transaction, limit: int) -> list[Asked]:
    """Commands that are not carried out yet, in order."""
    return [Asked(*row) for row in await transaction.rows(_SQL["open"], limit=limit)]


async def take(transaction: Transaction, limit: int) -> list[Asked]:
    """Commands that this worker carries out from now on, in order; those of a worker that is gone come to others."""
    rows = await transaction.rows(
        _SQL["take"],
        worker=transaction.worker,
        now=transaction.now,
        until=transaction.now + TAKEN_MS,
        limit=limit,
    )
    return sorted((Asked(*row) for row in rows), key=lambda command: command.number)


async def answers(transaction: Transaction, wanted: Sequence[int]) -> list[Asked | None]:
    """How far these commands are."""
    found = {row[0]: Asked(*row) for row in await transaction.rows(_SQL["some"], id=numbers(wanted))}
    return [found.get(number) for number in wanted]


async def progress(transaction: Transaction, command: Asked) -> None:
    """Write down how far a command is."""
    done_at = transaction.now if command.done else None
    await transaction.run(_SQL["progress"], id=command.number, progress=text(command.progress), done_at=done_at)


async def hold(transaction: Transaction, hosts: Sequence[tuple[int, str]], how: Hold | None) -> None:
    """Pause, block or free hosts, given by number and name; those that nobody knows yet too."""
    names = dict(hosts)
    await hold_rows(transaction, names, names)
    await new_edition(transaction)
    if how is None:
        await transaction.run(_SQL["free"], **_columns(transaction, names))
    else:
        await transaction.run(_SQL["hold"], how=how.value, **_columns(transaction, names))


async def alarm(transaction: Transaction, hosts: Sequence[tuple[int, str]]) -> None:
    """Mark hosts whose URLs look like a trap of this kind."""
    kinds = dict(hosts)
    await hold_rows(transaction, kinds)
    hids = sorted(kinds)
    await transaction.run(_SQL["alarm"], kind=texts(kinds[hid] for hid in hids), **_columns(transaction, hids))


def _columns(transaction: Transaction, hids: Collection[int]) -> dict[str, Any]:
    ordered = sorted(hids)
    return {"shard": numbers(map(transaction.shards.of, ordered)), "hid": numbers(ordered)}
