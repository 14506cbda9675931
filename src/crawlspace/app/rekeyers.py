"""Who re-keys a crawl's store, whatever it is: a file in its directory, or a schema that workers share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple, Protocol

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.store import place_of
from crawlspace.clock import Clock
from crawlspace.frontier.rekeying import Merged, Naming, Progress, Reading
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite.rekey import Rekeying, open_rekeying
from crawlspace.frontier.sqlite.rekey_survey import open_reading


class Crawl(NamedTuple):
    """Whose store it is."""

    directory: CrawlDirectory
    settings: FrontierSettings
    clock: Clock


class Rekeyer(Protocol):
    """Takes one store to new rules; killed at any moment, another goes on where it was."""

    async def begin(self, rules: str, facts: Mapping[str, str], *, parts: bool) -> Progress:
        """Write down that a re-keying to these rules has begun, with facts about it; `parts`: pages may come apart.

        Raises `CrawlDirInUse` while workers are at the crawl.
        """
        ...

    def run(self, progress: Progress) -> AsyncIterator[Progress]:
        """Go on from here until the store is ready; gives where it stands after each step."""
        ...

    async def finish(self, progress: Progress, facts: Mapping[str, str]) -> Progress:
        """Put the ready store under the new rules, which these facts tell; where it stands then."""
        ...


class Look(Reading, Protocol):
    """A look at a store that also knows what was merged."""

    def merged_into(self, number: int, limit: int = 100) -> list[Merged]:
        """What was merged into a URL, oldest first."""
        ...


@asynccontextmanager
async def open_rekeyer(crawl: Crawl, naming: Naming, batch: int) -> AsyncIterator[Rekeyer]:
    """For the owner of the directory; raises `CrawlDirInUse` while another process re-keys a shared store."""
    directory, settings, clock = crawl
    if not directory.shared.exists():
        with open_rekeying(directory.database, settings, naming, batch) as rekeying:
            yield _Embedded(rekeying, clock)
        return
    from crawlspace.frontier.postgres.rekey import open_rekeying as open_shared

    async with open_shared(place_of(directory), settings, clock, naming, batch) as shared:
        yield shared


class _Embedded:
    """The store in the directory, which nobody else writes."""

    def __init__(self, rekeying: Rekeying, clock: Clock) -> None:
        self._rekeying = rekeying
        self._clock = clock

    async def begin(self, rules: str, facts: Mapping[str, str], *, parts: bool) -> Progress:
        return self._rekeying.begin(rules, self._clock.now(), facts, parts=parts)

    async def run(self, progress: Progress) -> AsyncIterator[Progress]:
        for reached in self._rekeying.run(progress):
            yield reached

    async def finish(self, progress: Progress, facts: Mapping[str, str]) -> Progress:
        return self._rekeying.finish(progress, facts)


@contextmanager
def look_at(crawl: Crawl, *, one_moment: bool = False) -> Iterator[Look]:
    """A look at the store, also while others write; with `one_moment` it stays as it is now."""
    directory, settings, _ = crawl
    if not directory.shared.exists():
        with open_reading(directory.database, settings, one_moment=one_moment) as embedded:
            yield embedded
        return
    from crawlspace.frontier.postgres.rekey_look import open_reading as open_shared

    with open_shared(place_of(directory)) as shared:
        yield shared
