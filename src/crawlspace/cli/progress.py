"""The progress of a crawl: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import click

from crawlspace.observe.counters import Counters
from crawlspace.observe.printable import printable
from crawlspace.observe.words import duration, size
from crawlspace.states import UrlState
from crawlspace.types import Counts

if TYPE_CHECKING:
    from rich.console import RenderableType

    class _Live(Protocol):
        def update(self, renderable: RenderableType, *, refresh: bool = False) -> None: ...


LIVE_SECONDS = 0.5
LINE_SECONDS = 10.0

Totals = Callable[[], Awaitable[Counts]]


class Display:
    """Shows nothing but what it is told; the base of the others."""

    def __init__(self, counters: Counters) -> None:
        self.counters = counters
        self.started = time.monotonic()

    @staticmethod
    def choose(counters: Counters, *, quiet: bool) -> Display:
        """The display for where our output goes."""
        if quiet:
            return Display(counters)
        return LiveDisplay(counters) if sys.stderr.isatty() else LineDisplay(counters)

    def tell(self, line: str) -> None:
        """A line that is worth reading later too."""
        click.echo(line, err=True)

    @asynccontextmanager
    async def showing(self, totals: Totals) -> AsyncIterator[None]:
        """Show progress while the body runs."""
        del totals
        yield


class LineDisplay(Display):
    """One line every ten seconds."""

    @asynccontextmanager
    async def showing(self, totals: Totals) -> AsyncIterator[None]:
        ticker = asyncio.create_task(self._tick(totals))
        try:
            yield
        finally:
            ticker.cancel()
            await asyncio.gather(ticker, return_exceptions=True)

    async def _tick(self, totals: Totals) -> None:
        while True:
            await asyncio.sleep(LINE_SECONDS)
            self.tell(summary(await totals(), self.counters, time.monotonic() - self.started))


class LiveDisplay(Display):
    """A few lines that are drawn anew twice a second; what is told scrolls above them."""

    def __init__(self, counters: Counters) -> None:
        super().__init__(counters)
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, markup=False)

    def tell(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False)

    @asynccontextmanager
    async def showing(self, totals: Totals) -> AsyncIterator[None]:
        from rich.live import Live

        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            ticker = asyncio.create_task(self._tick(live, totals))
            try:
                yield
            finally:
                ticker.cancel()
                await asyncio.gather(ticker, return_exceptions=True)

    async def _tick(self, live: _Live, totals: Totals) -> None:
        while True:
            picture = render(await totals(), self.counters, time.monotonic() - self.started)
            live.update(picture, refresh=True)
            await asyncio.sleep(LIVE_SECONDS)


def duplicate_rate(counts: Counts) -> float:
    """Share of the pages whose bytes had been stored before."""
    return counts.duplicates / counts.pages if counts.pages else 0.0


def summary(counts: Counts, counters: Counters, seconds: float) -> str:
    """Progress in one line."""
    states = counts.states
    return (
        f"{duration(seconds)}: {counts.pages} pages, {counters.rate():.1f}/s, {states[UrlState.QUEUED]} queued, "
        f"{counts.hosts} hosts, {sum(counters.errors.values())} errors, {size(counts.bytes)}, "
        f"{duplicate_rate(counts):.1%} duplicates"
    )


def render(counts: Counts, counters: Counters, seconds: float) -> RenderableType:
    """Progress as a small table, good at 80 columns."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    states = counts.states
    grid = Table.grid(padding=(0, 3))
    for _ in range(4):
        grid.add_column(no_wrap=True)
    cells = [
        ("pages", f"{counts.pages}"),
        ("rate", f"{counters.rate():.1f}/s"),
        ("queue", f"{states[UrlState.QUEUED]}"),
        ("hosts", f"{counts.hosts}"),
        ("errors", f"{sum(counters.errors.values())}"),
        ("dead", f"{states[UrlState.DEAD]}"),
        ("bytes", size(counts.bytes)),
        ("duplicates", f"{duplicate_rate(counts):.1%}"),
    ]
    texts = [Text.assemble((f"{name} ", "dim"), (value, "bold")) for name, value in cells]
    grid.add_row(*texts[:4])
    grid.add_row(*texts[4:])
    head = Text(f"crawlspace  {duration(seconds)}", style="cyan")
    if counters.paused:
        head.append(f"  paused: {counters.paused}", style="yellow")
    last = Text(printable(counters.latest), style="dim", no_wrap=True, overflow="ellipsis")
    return Group(head, grid, last)
