"""Patterns that are run over the text of pages: without regard to case, over UTF-8.

They run on RE2, whose time grows with the text alone and with no pattern's traps: pages are written by strangers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import re2

__all__ = ["Present", "any_of", "compiled"]


def any_of(*patterns: str) -> str:
    """A pattern that fits where one of these does; the first that fits wins."""
    return f"(?:{'|'.join(patterns)})"


def compiled(pattern: str) -> re2._Regexp:
    """A pattern in RE2's syntax, ready to run over bytes. Patterns are ours: a wrong one raises `re2.error`."""
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    return re2.compile(pattern.encode(), options)


class Present:
    """Which of some patterns a text holds, told in one pass over it. Patterns as for `compiled`."""

    _MEMORY: Final = 64 << 20
    """Bytes that its states may take; they are made as texts need them, and forgotten when there are so many."""

    def __init__(self, patterns: Sequence[str]) -> None:
        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        options.max_mem = self._MEMORY
        self._set = re2.Set.SearchSet(options)
        for pattern in patterns:
            self._set.Add(pattern)
        self._set.Compile()

    def of(self, text: bytes) -> frozenset[int]:
        """The places of those patterns that fit somewhere in the text."""
        return frozenset(self._set.Match(text) or ())
