"""Recounts the store and compares it with every number it keeps: what must hold after each transaction.

It reads whole tables, on one view of the store: for tests, and for a person who doubts.
"""

from __future__ import annotations

from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.types import HOST_BYTES

_SQL = queries("audit.sql")
_GROUPS = queries("groups.sql")


async def contradictions(transaction: Transaction) -> list[str]:
    """What is wrong, one line each; nothing when all numbers are those of the rows."""
    shift = 8 * HOST_BYTES + 1 - transaction.shards.number.bit_length()
    found = [
        f"{name}: {', '.join(map(str, row))}"
        for name, query in _SQL.items()
        for row in await transaction.rows(query, shift=shift)
    ]
    grouping = transaction.settings.grouping()
    for name, n in await transaction.rows(_GROUPS["turns"]):
        group = grouping.named(name)
        if group is not None and n > group.concurrency:
            found.append(f"pace group {name}: {n} hosts are visited, and {group.concurrency} may be")
    return found
