"""Which capture a parser has read."""

from __future__ import annotations

from typing import NamedTuple

from crawlspace.types.pointers import Pointer


class Captured(NamedTuple):
    """A capture of a known URL."""

    id: int
    """The URL's number, which stays with it for ever."""
    generation: int
    url: str
    """The fetch URL."""
    pointer: Pointer
    at: int
    """When it was fetched."""
