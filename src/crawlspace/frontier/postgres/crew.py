"""The workers that take hosts, and how many hosts there are for them."""

from __future__ import annotations

from crawlspace.frontier.crew import FACT, SOON_MS, heard, must_be_said, word
from crawlspace.frontier.postgres.columns import numbers
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.types import Crew

_SQL = queries("crew.sql")


async def meet(transaction: Transaction, worker: int, most: int, ttl_ms: int) -> Crew:
    """Say what this worker takes, and hear what the others do."""
    others, mine = heard(await transaction.rows(_SQL["words"]), worker, transaction.now)
    key = f"{FACT}{worker}"
    if most == 0:
        await transaction.run(_SQL["leave"], key=key)
    elif must_be_said(mine, most, ttl_ms, transaction.now):
        await transaction.run(_SQL["say"], key=key, word=word(most, ttl_ms, transaction.now))
    if not others:
        return Crew((), 0, 0)
    [(held, soon, free)] = await transaction.rows(
        _SQL["hosts"],
        worker=numbers([worker, *others]),
        now=transaction.now,
        soon=transaction.now + SOON_MS,
        enough=most + sum(others.values()),
    )
    return Crew(tuple(others.values()), held + soon, free)
