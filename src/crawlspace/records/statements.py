"""SQL lies in `.sql` files, each statement under a line `-- name: ...`."""

from __future__ import annotations

import re
from importlib.resources import files

_NAMED = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def statements(name: str, package: str = __package__) -> dict[str, str]:
    """The statements of a file of a package, by name."""
    parts = _NAMED.split((files(package) / name).read_text(encoding="utf-8"))
    return {each: text.strip().rstrip(";") for each, text in zip(parts[1::2], parts[2::2], strict=True)}
