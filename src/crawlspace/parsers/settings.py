"""Which parsers run while crawling."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class ParserSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Parsers that run while crawling; others can read the archive later."""

    run: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=500)], ...],
        Meta(
            description="Parsers run on each page: page, links, markdown, or one of yours as module:name or "
            "file.py:name, files relative to the crawl directory or the current one.",
            max_length=50,
        ),
    ] = ()
    pipelines: Annotated[
        tuple[Annotated[str, Meta(pattern=".:.", max_length=500)], ...],
        Meta(
            description="Stages through which records go before they are kept, in this order, as module:name or "
            "file.py:name; each may change a record or drop it with a reason.",
            max_length=50,
        ),
    ] = ()
