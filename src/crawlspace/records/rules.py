"""The URL rules by which records tell pages apart, as far as they must be known here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

Canonical = Callable[[Sequence[str]], Sequence[str | None]]
"""Canonical URLs of fetch URLs, in order; None for what is none."""


class Rules(Struct, frozen=True):
    """The URL rules of now."""

    identifier: str
    canonical: Canonical
