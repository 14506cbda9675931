"""A crawl from Python: the same parts as behind the command line.

import crawlspace

crawl = crawlspace.Crawl("my-crawl", seeds=["https://example.com/"], contact="you@example.com")

@crawl.handler
def page(page: crawlspace.Page) -> None:
    print(page.url, page.title)

crawl.run()
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from crawlspace import events
from crawlspace.app.compose import Injected, OpenCrawl, Plan
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.fleet import Fleet, driven
from crawlspace.app.learn import run_learning
from crawlspace.app.loop import run_loop
from crawlspace.engine.crawl import Crawl as Loop
from crawlspace.engine.intake import Request
from crawlspace.engine.page import Handler, Page
from crawlspace.errors import UsageError
from crawlspace.events import Ending
from crawlspace.policy.priority import Score
from crawlspace.settings import load
from crawlspace.types import Counts

Returned = TypeVar("Returned")


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended, and the crawl's totals then."""

    ending: Ending
    counts: Counts
    injected: Injected


class Crawl:
    """One crawl directory, started or resumed by `run`."""

    def __init__(  # noqa: PLR0913 -- the front door: each is something a person says
        self,
        directory: str | Path,
        seeds: Iterable[str | Request] = (),
        *,
        contact: str | None = None,
        settings: Mapping[str, Any] | None = None,
        follow: bool | None = None,
        watch: events.Watcher | None = None,
    ) -> None:
        """`settings` takes dotted names, as in `{"host.delay": 2}`, over those of `crawl.toml` and the environment.

        With `follow=False` the seeds are fetched and no link is followed; the crawl remembers it. `watch` gets the
        events of `crawlspace.events` as they happen.
        """
        self.directory = CrawlDirectory(Path(directory))
        self._seeds = [seed if isinstance(seed, Request) else Request(seed) for seed in seeds]
        values = dict(settings or {})
        if contact is not None:
            values["contact"] = contact
        self._plan = Plan(
            settings=load(self.directory.config, os.environ, values=values), follow=follow, watch=watch or _ignore
        )
        self._handlers: dict[str | None, Handler] = {}
        self._loop: Loop | Fleet | None = None

    def handler(self, function: Handler | None = None, *, label: str | None = None) -> Any:
        """Decorate the function that gets each page, or each page whose request carries `label`.

        It may be a coroutine function. It runs before the page counts as done: after a crash it may see a page
        again. What it raises leaves the page in state `stored`, with the error.
        """
        if function is None:
            return lambda inner: self.handler(inner, label=label)
        if label in self._handlers:
            raise UsageError(f"there is a handler for {f'label {label!r}' if label else 'all pages'} already")
        self._handlers[label] = function
        return function

    def scorer(self, function: Score) -> Score:
        """Decorate the function that says which front class a new URL has, from 0 (first) to 9; None: the usual one.

        It gets a `crawlspace.Candidate` for every link, seeds and announced URLs included, and must be quick.
        """
        if self._plan.score is not None:
            raise UsageError("there is a scorer already")
        self._plan.score = function
        return function

    def run(self) -> Result:
        """Crawl until nothing is left, and return how it ended."""
        return run_loop(self.run_async)

    async def run_async(self) -> Result:
        """`run` for programs with an event loop of their own."""
        plan = replace(self._plan, handler=self._dispatch if self._handlers else None)
        injected: Injected | None = None

        async def drive(crawl: OpenCrawl) -> tuple[Ending, Counts]:
            nonlocal injected
            # A crawl that rested to apply learned rules has its seeds already.
            injected = injected or await crawl.inject(self._seeds)
            await crawl.require_work()
            return await self._drive(crawl), await crawl.frontier.counts()

        ending, counts = await run_learning(self.directory, plan, drive)
        return Result(ending, counts, injected or Injected())

    def stop(self) -> None:
        """End a running crawl cleanly; may be called from a handler."""
        if self._loop is not None:
            self._loop.stop()

    async def _drive(self, crawl: OpenCrawl) -> Ending:
        async with driven(crawl) as loop:
            self._loop = loop
            try:
                return await loop.run()
            finally:
                self._loop = None

    def _dispatch(self, page: Page) -> Any:
        handler = self._handlers.get(page.label) or self._handlers.get(None)
        return handler(page) if handler is not None else None


def _ignore(_event: events.Event) -> None:
    """Nobody watches."""
