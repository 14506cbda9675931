"""A polite web crawler that fetches every page once, loses nothing when killed, and explains every decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crawlspace.api import Crawl, Result
    from crawlspace.engine.intake import Request
    from crawlspace.engine.page import Page
    from crawlspace.exports.pipeline import Drop
    from crawlspace.parsers import PAGE_KEY, Document, Item, Match, Router, parser
    from crawlspace.policy.priority import Candidate

__version__ = "0.1.0"
__all__ = [
    "PAGE_KEY",
    "Candidate",
    "Crawl",
    "Document",
    "Drop",
    "Item",
    "Match",
    "Page",
    "Request",
    "Result",
    "Router",
    "__version__",
    "parser",
]

_HOMES = {
    "Crawl": "crawlspace.api",
    "Result": "crawlspace.api",
    "Request": "crawlspace.engine.intake",
    "Page": "crawlspace.engine.page",
    "Candidate": "crawlspace.policy.priority",
    "Drop": "crawlspace.exports.pipeline",
    **dict.fromkeys(("PAGE_KEY", "Document", "Item", "Match", "Router", "parser"), "crawlspace.parsers"),
}


def __getattr__(name: str) -> Any:
    """Import the crawler's parts when they are first asked for: `crawlspace.urls` alone then costs nothing more."""
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'crawlspace' has no attribute {name!r}")
