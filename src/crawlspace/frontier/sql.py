"""Reads the named statements of a `.sql` file, so that Python holds no SQL.

A file is a list of statements, each opened by two comment lines: `-- name: word`, then its purpose. In a statement
`(?*)` stands for a list of parameters whose length is known at the call, `(?*3)` for a list of rows of three, and
`(#*)` for the rows 0, 1, 2 and so on; `listed` writes them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import TypeVar

V = TypeVar("V")

_LENGTHS = (1, 4, 8, 16, 32, 64, 128, 256, 512)
"""Lists come in these lengths, so that few statements are ever prepared."""
_WHOLE_LENGTHS = (128, 32, 8, 1)
"""Rows that are written come in these, since none of them may come twice."""

blob = bytearray
"""How bytes are bound often. To `bytes`, as to None, sqlite3 first looks for an adapter, which takes far longer than
binding them; a bytearray it binds at once."""

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_PURPOSE = re.compile(r"^-- \S")
_LIST = re.compile(r"\(([?#])\*(\d*)\)")


def statements(package: str, file: str) -> dict[str, str]:
    """The statements of one file by name; raises ValueError when one is unnamed, unexplained or named twice."""
    text = files(package).joinpath(file).read_text("utf-8")
    _, *parts = _NAME.split(text)
    found: dict[str, str] = {}
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        statement = body.strip()
        if name in found or not _PURPOSE.match(statement):
            raise ValueError(
                f"{file}: statement {name!r} needs a name of its own and a line that says what it is for"
            )
        found[name] = _without_comments(statement)
    return found


@cache
def listed(statement: str, length: int) -> str:
    """`statement` with its list of parameters, of rows of parameters, or of numbers, `length` long."""

    def written(found: re.Match[str]) -> str:
        kind, width = found.groups()
        if kind == "#":
            return ",".join(f"({number})" for number in range(length))
        return ",".join([_row(int(width))] * length) if width else _row(length)

    return _LIST.sub(written, statement)


def chunks(values: Sequence[V], width: int = 1) -> Iterator[list[V]]:
    """The values, `width` of them a row, in lists of few lengths; the last row again and again fills the last one."""
    whole = width * _LENGTHS[-1]
    for start in range(0, len(values), whole):
        chunk = [*values[start : start + whole]]
        length = next(width * length for length in _LENGTHS if width * length >= len(chunk))
        yield chunk + chunk[-width:] * ((length - len(chunk)) // width)


def runs(values: Sequence[V]) -> Iterator[tuple[int, Sequence[V]]]:
    """The values in order, in runs; with each the number of a list that is long enough, of few there are."""
    whole = _LENGTHS[-1]
    for start in range(0, len(values), whole):
        run = values[start : start + whole]
        yield next(length for length in _LENGTHS if length >= len(run)), run


def parts(rows: Sequence[Sequence[object]]) -> Iterator[tuple[int, list[object]]]:
    """Rows to be written, each once: how many a statement takes, and their values one after the other."""
    start = 0
    for length in _WHOLE_LENGTHS:
        while len(rows) - start >= length:
            yield length, [*chain.from_iterable(rows[start : start + length])]
            start += length


def _row(width: int) -> str:
    return "(" + ",".join("?" * width) + ")"


def _without_comments(statement: str) -> str:
    return "\n".join(line for line in statement.splitlines() if not line.startswith("--")).rstrip().rstrip(";")
