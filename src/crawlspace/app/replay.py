"""A capture turned back into the answer it was, by the same reader that read it from the network."""

from __future__ import annotations

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.raw import read_archive
from crawlspace.clock import SystemClock
from crawlspace.exchange import FetchResult
from crawlspace.fetch.replay import result_of
from crawlspace.settings import Settings
from crawlspace.types import Pointer


def replay(place: CrawlDirectory, pointer: Pointer, settings: Settings) -> FetchResult:
    """The answer behind a pointer; raises `StoreDamaged` when the archive does not have it as it was written."""
    return result_of(read_archive(place, settings, SystemClock()).open(pointer), settings.fetch)
