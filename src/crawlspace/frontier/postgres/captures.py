"""Captures as the archive needs them known: where bytes lie that come again, and files that were joined."""

from __future__ import annotations

from collections.abc import Sequence

from crawlspace.frontier.postgres.columns import blobs, keys, numbers, text, texts
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.types import Joined, Pointer

_SQL = queries("captures.sql")

_SHORT = 16
"""Bytes of a digest in the table of contents."""


async def originals(transaction: Transaction, digests: Sequence[bytes]) -> list[Pointer | None]:
    """Where settled pages with these bodies lie; in order. The file may be another worker's."""
    short = [digest[:_SHORT] for digest in digests]
    rows = await transaction.rows(
        _SQL["originals"],
        shard=numbers(map(transaction.shards.of_key, short)),
        short=keys(short),
        digest=blobs(digests),
        all=numbers(range(transaction.shards.number)),
    )
    found = {place - 1: Pointer(name, offset, length) for place, name, offset, length in rows}
    return [found.get(place) for place in range(len(digests))]


async def relocate(transaction: Transaction, joined: Sequence[Joined]) -> None:
    """Let all that points into files which were joined point into the whole."""
    names = texts(part for whole in joined for part, _ in whole.parts)
    known = {name: (number, worker) for name, number, worker in await transaction.rows(_SQL["segments"], name=names)}
    moves: list[tuple[int, int, int]] = []
    for whole in joined:
        parts = [(*known[part], base) for part, base in whole.parts if part in known]
        if not parts:
            continue
        name, worker = text(whole.name), parts[0][1]
        made = await transaction.rows(_SQL["add_segment"], worker=worker, name=name, length=whole.length)
        moves += [(number, made[0][0], base) for number, _, base in parts]
    columns = {
        "segment": numbers(segment for segment, _, _ in moves),
        "target": numbers(target for _, target, _ in moves),
        "base": numbers(base for _, _, base in moves),
    }
    await transaction.run(_SQL["move_outcomes"], **columns)
    await transaction.run(_SQL["move_visits"], **columns)
    await transaction.run(_SQL["move_merged"], **columns)
    await transaction.run(_SQL["drop_segments"], segment=columns["segment"])
