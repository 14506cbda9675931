"""Results as tables in Markdown that can also be read on a terminal. Pure.

CPU is net: what the same contender used on the one-page site is taken off. The lowest of the rounds is the best
estimate of what the work costs, the median says what to expect on such a machine. Ratios are taken within a round,
and the median of them is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from bench.results import Resumption, Run
from bench.rounds import START_UP

SCRAPY = "scrapy"
FLOOR = "floor-durable"

_HEADER = (
    "contender",
    "CPU ms/page",
    "median",
    f"of {SCRAPY}",
    f"of {FLOOR}",
    "pages/s",
    "RSS MB",
    "pages",
    "missed",
    "twice",
    "connections",
    "bodies",
    "disk MB",
    "start s",
)
_RESUMED = ("contender", "fetched before", "asked again", "exit", "missed", "twice", "seconds")


class Figures:
    """What the runs of one site say; failed runs count for nothing."""

    def __init__(self, runs: Sequence[Run], site: str) -> None:
        self._runs = [run for run in runs if run.site == site and not run.failed]
        self._start: dict[str, float] = {}
        for run in runs:
            if run.site == START_UP and not run.failed:
                self._start[run.contender] = min(run.cpu, self._start.get(run.contender, run.cpu))

    def contenders(self, keeps: str) -> list[str]:
        """Names of a class, cheapest first."""
        names = {run.contender for run in self._runs if run.keeps == keeps}
        return sorted(names, key=lambda name: min(self.net(name)))

    def net(self, contender: str) -> list[float]:
        """CPU milliseconds a page of each round, start-up taken off."""
        return [self._net(run) for run in self.of(contender)]

    def start(self, contender: str) -> float:
        """CPU seconds of the cheapest start."""
        return self._start.get(contender, 0.0)

    def of(self, contender: str) -> list[Run]:
        """Its runs, by round."""
        return sorted((run for run in self._runs if run.contender == contender), key=lambda run: run.round)

    def ratio(self, contender: str, reference: str) -> float | None:
        """Median over the rounds of the contender's net CPU divided by the reference's of the same round."""
        below = {run.round: self._net(run) for run in self.of(reference)}
        ratios = [self._net(run) / below[run.round] for run in self.of(contender) if below.get(run.round, 0) > 0]
        return median(ratios) if ratios else None

    def _net(self, run: Run) -> float:
        return max(run.cpu - self.start(run.contender), 0.0) * 1000 / run.pages


def crawls(runs: Sequence[Run], site: str) -> str:
    """The tables of one site, one for each class."""
    figures = Figures(runs, site)
    parts = []
    for keeps in dict.fromkeys(run.keeps for run in sorted(runs, key=lambda run: run.keeps)):
        rows = [_row(figures, name) for name in figures.contenders(keeps)]
        if rows:
            parts.append(f"{site}, {keeps}:\n\n{markdown(_HEADER, rows)}")
    return "\n\n".join([*parts, *_failures(runs, site)])


def resumptions(results: Iterable[Resumption]) -> str:
    """The table of what was killed and run again."""
    rows = [
        (
            each.contender,
            str(each.before),
            str(each.again),
            str(each.exit),
            str(each.missed),
            str(each.twice),
            f"{each.wall:.1f}",
        )
        for each in results
    ]
    return markdown(_RESUMED, rows)


def noise(runs: Sequence[Run]) -> str:
    """How much the calibration loop moved."""
    loops = [run.calibration for run in runs]
    return (
        f"calibration loop, CPU s: lowest {min(loops):.3f}, median {median(loops):.3f}, highest {max(loops):.3f}"
        f" ({max(loops) / min(loops):.2f} times); differences below that say nothing"
    )


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose columns are as wide as their widest cell; the first is set left, the others right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    rule = [":" + "-" * (widths[0] - 1), *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = []
    for row in (header, rule, *rows):
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _row(figures: Figures, name: str) -> tuple[str, ...]:
    runs = figures.of(name)
    net = figures.net(name)
    return (
        name,
        f"{min(net):.2f}",
        f"{median(net):.2f}",
        _times(figures.ratio(name, SCRAPY)),
        _times(figures.ratio(name, FLOOR)),
        f"{max(run.pages / run.wall for run in runs):.0f}",
        f"{max(run.rss_mb for run in runs):.0f}",
        _range([run.pages for run in runs]),
        _range([run.missed for run in runs]),
        _range([run.twice for run in runs]),
        _range([run.connections for run in runs]),
        runs[0].bodies,
        f"{max(run.disk_mb for run in runs):.1f}",
        f"{figures.start(name):.2f}",
    )


def _failures(runs: Sequence[Run], site: str) -> list[str]:
    return [
        f"{run.contender} failed in round {run.round + 1}: exit {run.exit}, {run.pages} pages; it said: {run.said}"
        for run in runs
        if run.site in (site, START_UP) and run.failed
    ]


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low}-{high}"
