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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from msgspec import Struct

from crawlspace import events
from crawlspace.app.compose import Injected, OpenCrawl, Plan
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.export import Exported, export_to
from crawlspace.app.fleet import Fleet, driven
from crawlspace.app.learn import run_learning
from crawlspace.app.loop import run_loop
from crawlspace.app.parsing import load_parser
from crawlspace.app.reparse import Order, Reparsed, finish_stored, reparse
from crawlspace.app.reparsing.pools import pool_of
from crawlspace.app.reparsing.selection import Chosen
from crawlspace.app.snapshot import reach_of
from crawlspace.app.sql import ask, question
from crawlspace.engine.crawl import Crawl as Loop
from crawlspace.engine.hooks import AfterResponse, BeforeRequest
from crawlspace.engine.intake import Request
from crawlspace.engine.page import Handler, Page
from crawlspace.errors import UsageError
from crawlspace.events import Ending
from crawlspace.exports.pipeline import Stage
from crawlspace.parsers import Match, Parser, Router, as_parser, parser
from crawlspace.policy.priority import Score
from crawlspace.records.views import MEMORY
from crawlspace.settings import load
from crawlspace.types import Counts

Returned = TypeVar("Returned")
Heard = TypeVar("Heard")


class Result(Struct, frozen=True):
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
        config: str | Path | None = None,
        follow: bool | None = None,
        frontier: str | None = None,
        also: Iterable[str | Path] = (),
        watch: events.Watcher | None = None,
    ) -> None:
        """`settings` takes dotted names, as in `{"host.delay": 2}`, over the environment and `crawl.toml`.

        `config` is a file to read instead of the directory's `crawl.toml`. With `follow=False` the seeds are fetched
        and no link is followed; the crawl remembers it. `frontier` is the address of a PostgreSQL schema that workers
        share, as of `crawlspace crawl --frontier`; the directory remembers it. Of the directories of other workers in
        `also`, what only reads reads archive and records too. `watch` gets the events of `crawlspace.events` as they
        happen.
        """
        self.directory = CrawlDirectory(Path(directory), tuple(map(Path, also)))
        self._seeds = [seed if isinstance(seed, Request) else Request(seed) for seed in seeds]
        values = dict(settings or {})
        if contact is not None:
            values["contact"] = contact
        self._bus = events.Bus()
        if watch is not None:
            self._bus.on(None, watch)
        found = load(_config(self.directory, config), os.environ, values=values)
        self._plan = Plan(found, follow=follow, watch=self._bus, frontier=frontier)
        self._handlers: dict[str | None, Handler] = {}
        self._routes: list[tuple[Match, Handler]] = []
        self._loop: Loop | Fleet | None = None

    def handler(
        self, function: Handler | None = None, *, label: str | None = None, match: str | Match | None = None
    ) -> Any:
        """Decorate the function that gets each page, or each whose request carries `label`, or that fits `match`.

        A pattern is RE2, or a glob behind `glob:`; of several that fit the first asked for gets the page. It may be a
        coroutine function. It runs before the page counts as done: after a crash it may see a page again. What it
        raises leaves the page in state `stored`, with the error.
        """
        if function is None:
            return lambda inner: self.handler(inner, label=label, match=match)
        if match is not None:
            rule = match if isinstance(match, Match) else Match.of(match, label=() if label is None else label)
            self._routes.append((rule, function))
            return function
        if label in self._handlers:
            raise UsageError(f"there is a handler for {f'label {label!r}' if label else 'all pages'} already")
        self._handlers[label] = function
        return function

    def parser(self, name: str, version: int | str, **options: Any) -> Callable[[Any], Parser]:
        """Decorate a parser that runs on this crawl's pages; options as of `crawlspace.parser`."""
        return lambda code: self.use(parser(name, version, **options)(code))

    def use(self, given: Parser | Router) -> Parser:
        """Run a parser or a router on this crawl's pages; raises `UsageError` for what is none."""
        found = as_parser(given)
        self._plan.parsers = [*self._plan.parsers, found]
        return found

    # -- who listens ----------------------------------------------------------------------------------------

    def on(self, kind: type[Heard]) -> Callable[[Callable[[Heard], None]], Callable[[Heard], None]]:
        """Decorate a function that gets every event of a kind of `crawlspace.events`, as it happens."""

        def decorate(function: Callable[[Heard], None]) -> Callable[[Heard], None]:
            self._bus.on(kind, cast(events.Watcher, function))
            self._plan.hooks.refused |= kind is events.LinkRefused
            return function

        return decorate

    def before_request(self, function: BeforeRequest) -> BeforeRequest:
        """Decorate a function that sees each request, of robots.txt too, and may give another with the same URL."""
        self._plan.hooks.before.append(function)
        return function

    def after_response(self, function: AfterResponse) -> AfterResponse:
        """Decorate a function that sees what came of each request, before anything is made of it."""
        self._plan.hooks.after.append(function)
        return function

    def on_skip(self, function: Callable[[events.PageSettled], None]) -> Callable[[events.PageSettled], None]:
        """Decorate a function that is told of each URL that a rule stopped, and why (`error`).

        That is when its turn had come, or when a link to it was found; of many links to one URL mostly the first.
        """

        def link(event: events.Event) -> None:
            assert isinstance(event, events.LinkRefused)
            function(events.PageSettled(event.url, "skipped", None, event.reason, 0, 0, event.at))

        link.__name__ = getattr(function, "__name__", "a listener")
        self._plan.hooks.refused = True
        self._bus.on(events.LinkRefused, link)
        self._bus.on(events.PageSettled, _only({"skipped"}, function))
        return function

    def on_error(self, function: Callable[[events.PageSettled], None]) -> Callable[[events.PageSettled], None]:
        """Decorate a function that is told of each URL that failed: for now, for good, or while it was processed."""
        self._bus.on(events.PageSettled, _only({"retry", "rerouted", "dead", "stored"}, function))
        return function

    # -- what was crawled -----------------------------------------------------------------------------------

    def reparse(
        self,
        given: Parser | Router | str,
        chosen: Chosen = Chosen(),  # noqa: B008 -- frozen
        *,
        processes: int = 1,
        engine: str = "local",
        address: str | None = None,
    ) -> Reparsed:
        """Parse again what the archive has, as `crawlspace reparse` does; no request is sent.

        URLs in state `stored` are read again first, by this crawl's handlers. A parser given by its name (`page`,
        `module:name`, `file.py:name`) can be spread over `processes`, or over a Ray cluster by `engine="ray"`.
        """
        if not isinstance(given, str) and (processes > 1 or engine != "local"):
            raise UsageError(
                "other processes find a parser by its name", hint='name it: "module:name" or "file.py:name"'
            )
        found = load_parser(given, self.directory.path) if isinstance(given, str) else as_parser(given)
        name = given if isinstance(given, str) else found.name
        order = Order(found, name, chosen, pool_of(found, processes, engine, address))
        done = Reparsed()
        plan = replace(self._plan, handler=self._dispatcher(), joins=self.directory.shared.exists())
        run_loop(lambda: finish_stored(self.directory, plan, plan.clock, done))
        return reparse(self.directory, self._plan.settings, order, done=done)

    def sql(
        self, query: str | None = None, *, named: str | None = None, memory: str = MEMORY, **parameters: str
    ) -> list[dict[str, Any]]:
        """The answer to a question in SQL, or to that of a name, as of `crawlspace sql`: a mapping a row.

        `memory` is what the answer may take before it goes to the disk.
        """
        self.directory.require()
        settings = load(self.directory.effective, {})
        asked = question(query, named, parameters)
        with ask(self.directory, settings, asked, reach_of(self.directory, settings), memory) as answer:
            if answer.caution:
                self._bus(events.Warned(answer.caution))
            return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]

    def export(
        self, target: str | Path, what: str | None = None, *, pipeline: Sequence[Stage] = (), **options: Any
    ) -> Exported:
        """Write what the crawl knows to a file, or to `s3://bucket/name`, in the format of its suffix.

        `what` and the options are those of `crawlspace export`: `format`, `states`, `host`, `parser`, `unique`,
        `base`, `guard` (off for raw CSV) and `force`. Rows go through the stages of `pipeline`, which may change or
        drop them.
        """
        return export_to(self.directory, str(target), what, {**options, "stages": pipeline})

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
        plan = replace(self._plan, handler=self._dispatcher())
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

    def _dispatcher(self) -> Handler | None:
        return self._dispatch if self._handlers or self._routes else None

    def _dispatch(self, page: Page) -> Any:
        for match, route in self._routes:
            if match.fits(page):
                return route(page)
        handler = self._handlers.get(page.label) or self._handlers.get(None)
        return handler(page) if handler is not None else None


def _config(directory: CrawlDirectory, config: str | Path | None) -> Path:
    """The file with the settings; raises `UsageError` where a place that was named is not there."""
    for other in directory.also:
        if not other.is_dir():
            raise UsageError(f"there is no directory {other}", hint="`also` names directories of other workers")
    if config is None:
        return directory.config
    if not Path(config).is_file():
        raise UsageError(f"there is no file {config}", hint="`config` names a file of settings")
    return Path(config)


def _only(kinds: set[str], function: Callable[[events.PageSettled], None]) -> events.Watcher:
    def listen(event: events.Event) -> None:
        if isinstance(event, events.PageSettled) and event.kind in kinds:
            function(event)

    listen.__name__ = getattr(function, "__name__", "a listener")
    return listen
