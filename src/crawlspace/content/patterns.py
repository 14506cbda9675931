"""Patterns that are run over the text of pages: without regard to case, over UTF-8.

They run on RE2, whose time grows with the text alone and with no pattern's traps: pages are written by strangers.
"""

from __future__ import annotations

import re2

__all__ = ["any_of", "compiled"]


def any_of(*patterns: str) -> str:
    """A pattern that fits where one of these does; the first that fits wins."""
    return f"(?:{'|'.join(patterns)})"


def compiled(pattern: str) -> re2._Regexp:
    """A pattern in RE2's syntax, ready to run over bytes. Patterns are ours: a wrong one raises `re2.error`."""
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    return re2.compile(pattern.encode(), options)
