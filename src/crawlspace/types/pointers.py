"""Where captures lie."""

from __future__ import annotations

from typing import NamedTuple


class Pointer(NamedTuple):
    """Where a capture's response record lies: a file of the archive, and a slice of it that opens by itself."""

    file: str
    offset: int
    length: int


class Joined(NamedTuple):
    """A file of the archive made of others, put one behind the other."""

    name: str
    length: int
    parts: tuple[tuple[str, int], ...]
    """Each file's name, and where it begins in the whole."""
