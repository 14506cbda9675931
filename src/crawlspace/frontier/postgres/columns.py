"""Columns of a batch as PostgreSQL array literals: one parameter a column, however many rows.

The literals are written here, since the driver looks at the type of each element. Text from the web may hold what
PostgreSQL's text cannot: the NUL character becomes U+FFFD, a lone surrogate a question mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_UNKEPT = "\N{REPLACEMENT CHARACTER}"


def numbers(values: Iterable[int | bool | None]) -> str:
    """A list of numbers or truth values."""
    return "{" + ",".join(map(str, values)).replace("None", "NULL") + "}"


def keys(values: Iterable[bytes]) -> str:
    """A list of 16-byte keys, for columns of type uuid."""
    return "{" + ",".join(map(bytes.hex, values)) + "}"


def blobs(values: Iterable[bytes | None]) -> str:
    """A list of byte strings."""
    return "{" + ",".join("NULL" if value is None else f'"\\\\x{value.hex()}"' for value in values) + "}"


def texts(values: Iterable[str | None]) -> str:
    """A list of texts."""
    return "{" + ",".join("NULL" if value is None else _quoted(value) for value in values) + "}"


def text(value: str) -> str:
    """One text as PostgreSQL can keep it."""
    kept = value.replace("\0", _UNKEPT)
    try:
        kept.encode()
    except UnicodeEncodeError:
        return kept.encode("utf-8", "replace").decode()
    return kept


def lists(values: Iterable[Sequence[int]]) -> str:
    """A list of literals of lists of numbers, as text."""
    return "{" + ",".join(f'"{numbers(value)}"' for value in values) + "}"


def _quoted(value: str) -> str:
    return '"' + text(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
