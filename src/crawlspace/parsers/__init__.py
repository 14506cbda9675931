"""Parsers: from captured pages to records. What one is, how it is chosen, and those that come along.

Pure: a parser sees one page and nothing else, so that it gives the same records while crawling and years later.
"""

from __future__ import annotations

from crawlspace.parsers.definition import Match, Parsed, Parser, Router, as_parser, parser
from crawlspace.parsers.document import Document, Way
from crawlspace.parsers.records import PAGE_KEY, Item, Record

__all__ = [
    "BUILT_IN",
    "PAGE_KEY",
    "Document",
    "Item",
    "Match",
    "Parsed",
    "Parser",
    "Record",
    "Router",
    "Way",
    "as_parser",
    "parser",
]

BUILT_IN = {
    "page": "crawlspace.parsers.page:page",
    "links": "crawlspace.parsers.links:links",
    "markdown": "crawlspace.parsers.markdown:markdown",
}
"""Parsers that come along, and where they lie."""
