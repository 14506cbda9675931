"""The main text of a page, without what stands on every page of its site. The one place that knows resiliparse."""

from __future__ import annotations

from importlib.util import find_spec

from crawlspace.parsers.document import Document

EXTRA = "text"


def is_there() -> bool:
    """Whether the extra `text` is installed."""
    return find_spec("resiliparse") is not None


def main_text(document: Document) -> str | None:
    """The main text with its paragraphs; None without the extra, and for a page that could take too long to read."""
    if not is_there() or document.may_cost_too_much:
        return None
    from resiliparse.extract.html2text import extract_plain_text

    found: str = extract_plain_text(document.text, main_content=True, alt_texts=False, preserve_formatting=True)
    return found.strip()
