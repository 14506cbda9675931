"""What a re-keyed crawl remembers of URLs that became one with another, and whether a re-keying is under way."""

from __future__ import annotations

from collections.abc import Mapping

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.rekeyers import Crawl, look_at
from crawlspace.clock import SystemClock
from crawlspace.frontier.rekeying import UNFINISHED, Merged, decoded
from crawlspace.settings import Settings

__all__ = ["Merged", "merged_urls", "under_way"]


def merged_urls(directory: CrawlDirectory, settings: Settings, number: int) -> list[Merged]:
    """The URLs that were merged into one, oldest first, each as it was then; at most a hundred."""
    with look_at(Crawl(directory, settings.frontier(), SystemClock())) as look:
        return look.merged_into(number)


def under_way(notes: Mapping[str, str]) -> str | None:
    """How far a re-keying is that is not finished, in words; None when there is none."""
    progress = decoded(notes.get(UNFINISHED))
    if progress is None:
        return None
    return (
        f"a re-keying of this crawl is not finished (stage: {progress.stage}): its URLs are under two sets of rules, "
        "and some may not be found"
    )
