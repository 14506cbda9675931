"""Who has questions of his own to a host, beside the crawl's URLs: asked under the host's lease, at its pace."""

from __future__ import annotations

from typing import Protocol

from crawlspace.exchange import FetchResult


class Asker(Protocol):
    """One of those that a run asks at the end of each visit."""

    def question(self, host: str) -> str | None:
        """The URL to ask this host for now; None when there is nothing to ask. It is not given again."""
        ...

    def answered(self, url: str, result: FetchResult) -> None:
        """What came of it, if robots rules and budgets let it be asked at all."""
        ...
