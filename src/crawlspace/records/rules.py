"""The URL rules by which records tell pages apart, as far as they must be known here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Canonical = Callable[[Sequence[str]], Sequence[str | None]]
"""Canonical URLs of fetch URLs, in order; None for what is none."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The URL rules of now."""

    identifier: str
    canonical: Canonical
