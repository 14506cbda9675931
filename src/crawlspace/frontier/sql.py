"""Reads the named statements of a `.sql` file, so that Python holds no SQL.

A file is a list of statements, each opened by two comment lines: `-- name: word`, then its purpose. In a statement
`(?*)` stands for a list of parameters whose length is known at the call; `listed` writes it out.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_PURPOSE = re.compile(r"^-- \S")
_LIST = "(?*)"


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
    """`statement` with its list of parameters `length` long."""
    return statement.replace(_LIST, "(" + ",".join("?" * length) + ")")


def _without_comments(statement: str) -> str:
    return "\n".join(line for line in statement.splitlines() if not line.startswith("--")).rstrip().rstrip(";")
