"""Learned rules, and what pages declare as their own addresses."""

from __future__ import annotations

from collections.abc import Sequence

from crawlspace.frontier.lessons import MOST, columns, declarations, known_rule
from crawlspace.frontier.postgres.columns import keys, numbers, text, texts
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.policy.evidence import KnownRule, Lesson
from crawlspace.types import Answer, Settlement

_SQL = queries("learned.sql")


async def learned(transaction: Transaction) -> list[KnownRule]:
    """The rules that are known, the best founded first."""
    return [known_rule(row) for row in await transaction.rows(_SQL["learned"], limit=MOST)]


async def learn(transaction: Transaction, lessons: Sequence[Lesson]) -> None:
    """Add to what is known, in the order of the rules, so that no two workers wait for each other in a circle."""
    for lesson in sorted(lessons, key=lambda each: (each.rule.host, each.rule.kind, each.rule.detail)):
        values = columns(lesson, transaction.now)
        await transaction.run(
            _SQL["learn"],
            **{name: text(value) if isinstance(value, str) else value for name, value in values.items()},
        )


async def declared(transaction: Transaction, wanted: Sequence[bytes]) -> list[str | None]:
    """What the pages with these fingerprints declare as their own address."""
    shards = numbers(map(transaction.shards.of_key, wanted))
    found: dict[int, str] = dict(await transaction.rows(_SQL["declared"], shard=shards, fp=keys(wanted)))
    return [found.get(place + 1) for place in range(len(wanted))]


async def declare(transaction: Transaction, settlements: Sequence[Settlement], answers: Sequence[Answer]) -> None:
    """Keep what pages that were finished just now declare as their own addresses."""
    found = [(transaction.shards.of(hid), *rest) for hid, *rest in declarations(settlements, answers)]
    told = [row for row in found if row[2] is not None]
    gone = [row for row in found if row[2] is None]
    if told:
        shards, ids, canonicals = zip(*told, strict=True)
        await transaction.run(_SQL["declare"], shard=numbers(shards), id=numbers(ids), canonical=texts(canonicals))
    if gone:
        shards, ids, _ = zip(*gone, strict=True)
        await transaction.run(_SQL["undeclare"], shard=numbers(shards), id=numbers(ids))
