"""What a table's columns hold, for formats that have kinds of values."""

from __future__ import annotations

from enum import StrEnum, unique
from typing import NamedTuple

import msgspec

Cell = str | int | bool | None | msgspec.Raw
"""A value of a row; `msgspec.Raw` is JSON already."""


@unique
class Kind(StrEnum):
    """What a column's cells are when they are not null."""

    TEXT = "text"
    WHOLE = "whole"
    """An integer of 64 bits."""
    FLAG = "flag"
    TIME = "time"
    """A moment in UTC as text, ISO 8601 with milliseconds."""
    JSON = "json"
    """JSON already, as `msgspec.Raw`; or text that is none."""


class Column(NamedTuple):
    """One column of a table."""

    name: str
    kind: Kind = Kind.TEXT


def columns(text: str = "", **kinds: Kind) -> tuple[Column, ...]:
    """The columns named in `text`, in order: texts, but for those whose kind is told."""
    return tuple(Column(name, kinds.get(name, Kind.TEXT)) for name in text.split())


def plain(text: str) -> str:
    """`text` without what no encoding can write: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def json_text(cell: Cell) -> str | None:
    """A cell of kind JSON as text."""
    if cell is None:
        return None
    return bytes(cell).decode("utf-8", "replace") if isinstance(cell, msgspec.Raw) else plain(str(cell))
