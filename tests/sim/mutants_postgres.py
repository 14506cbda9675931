"""Bugs of the PostgreSQL store; see `mutants.py`."""

from __future__ import annotations

from typing import Any

import pytest

from crawlspace.frontier.postgres import lease as leasing
from crawlspace.frontier.rows import Waiting

MOST = 50


def lease_in_one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    """The statement that takes the hosts also reads their queues: it sees them as they were before it waited."""
    due = leasing._SQL["due"].decode().rstrip().rstrip(";")
    columns = ", ".join(f"q.{name}" for name in Waiting._fields).replace("front_class", "class")
    statement = f"""
      WITH h AS MATERIALIZED ({due})
      SELECT h.*, {columns} FROM h LEFT JOIN LATERAL (
        SELECT * FROM queue q WHERE q.hid = h.hid ORDER BY q.class, q.id LIMIT {MOST}
      ) AS q ON true
    """
    split = len(leasing._Due._fields)
    seen: dict[int, list[Waiting]] = {}

    async def _due(transaction: Any, most: dict[int, int], taken: Any, enough: int) -> list[Any]:
        if not most or enough <= 0:
            return []
        given = {"class": leasing.numbers(most), "most": leasing.numbers(most.values())}
        given |= {"taken": leasing.numbers(taken), "now": transaction.now, "enough": enough}
        rows = await transaction.rows(statement.encode(), **given)
        hosts = {row[0]: leasing._Due._make(row[:split]) for row in rows}
        seen.update({hid: [] for hid in hosts})
        for row in rows:
            if row[split] is not None:
                seen[row[0]].append(Waiting._make(row[split:]))
        return list(hosts.values())

    async def _best(_transaction: Any, admitted: Any) -> list[Any]:
        grants = []
        for host, group, most in admitted:
            urls = leasing._alone_if_suspect(seen[host.hid][:most]) if seen[host.hid] else []
            if urls:
                grants.append(leasing._Grant(host, group, urls))
        return grants

    monkeypatch.setattr(leasing, "_due", _due)
    monkeypatch.setattr(leasing, "_best", _best)
