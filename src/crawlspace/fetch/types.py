"""Which types of answers are read to their end, by `fetch.types`. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from crawlspace.exchange import Headers
from crawlspace.pages.mime import content_type

TYPE_PATTERN = r"^[a-z0-9!#$&^_.+-]+/([a-z0-9!#$&^_.+-]+|\*)$"


class Types:
    """Wanted types. An answer that names no type is wanted, since nobody can tell what it is."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._exact = frozenset(patterns)

    def __bool__(self) -> bool:
        return bool(self._exact)

    def objection(self, headers: Headers) -> str:
        """Why the answer is not wanted, in words; empty when it is."""
        essence = content_type(headers).essence
        family = f"{essence.partition('/')[0]}/*"
        if not essence or essence in self._exact or family in self._exact:
            return ""
        return f"its type, {essence[:100]}, is none of fetch.types"
