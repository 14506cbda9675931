"""Rows of the records that parsers made: each thing once, as it was seen last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.exporting.rows import COLUMNS
from crawlspace.app.exporting.wanted import Exported, Wanted, What
from crawlspace.app.sql import Question, ask, plain
from crawlspace.exports.columns import Cell, Kind
from crawlspace.exports.tables import Row
from crawlspace.settings import Settings
from crawlspace.urls import Identity, policy_from

_NAMES = ", ".join(f'"{column.name}"' for column in COLUMNS[What.RECORDS])
_QUERY = f"SELECT {_NAMES} FROM records WHERE $parser IS NULL OR parser = $parser ORDER BY parser, identity"  # noqa: S608


def record_rows(
    directory: CrawlDirectory, settings: Settings, wanted: Wanted, reach: Mapping[str, int], done: Exported
) -> Iterator[Row]:
    """The records that are wanted; raises `UsageError` when the extra `records` is missing.

    `reach` says how far settled captures reach into each file of the archive.
    """
    identity = Identity(policy_from(settings.identity))
    kinds = [column.kind for column in COLUMNS[What.RECORDS]]
    with ask(directory, settings, Question(_QUERY, {"parser": wanted.parser}), reach) as answer:
        done.caution = answer.caution
        for row in answer.rows:
            if wanted.host is None or getattr(identity.identify(row[0]), "host", None) == wanted.host:
                yield [_cell(kind, value) for kind, value in zip(kinds, row, strict=True)]


def _cell(kind: Kind, value: Any) -> Cell:
    if kind is Kind.JSON and isinstance(value, str):
        return msgspec.Raw(value.encode("utf-8", "replace"))
    cell: Cell = plain(value)
    return cell
