"""`python -m bench.chart FILE.jsonl -o docs/pictures/bench.svg`: the results of a run as a picture for the README.

A bar for each contender and site: CPU milliseconds for a page, net of the start, lowest of the rounds; those that
would survive a crash are filled, those that keep nothing are outlined. The last run in the file is drawn, with the
machine and the versions under it. Pure but for reading and writing the files.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from bench.contenders import Keeps
from bench.results import Circumstances, Result, Run, parse
from bench.table import Figures

OURS = "crawlspace"
WIDTH = 760
LABEL = 130
BAR = 16
STEP = 22
HEAD = 34
TEXT = "font-family='system-ui, sans-serif' fill='#212529'"
BOLD = " font-weight='bold'"
NAMED = ("python", "nginx", "scrapy", "crawlee", "aiohttp", "wget")
TITLES = {"pg": "PostgreSQL docs, 1,170 pages of 14 KB", "py": "Python docs, 527 pages of 96 KB"}


def last_run(results: Sequence[Result]) -> tuple[Circumstances, list[Run]]:
    """The newest circumstances in the file, and the runs behind them; raises `ValueError` when there are none."""
    places = [place for place, each in enumerate(results) if isinstance(each, Circumstances)]
    if not places:
        raise ValueError("the file has no run of `make bench`")
    about = results[places[-1]]
    assert isinstance(about, Circumstances)
    runs = [each for each in results[places[-1] :] if isinstance(each, Run)]
    if not any(not run.failed for run in runs):
        raise ValueError("the newest run in the file has no crawl that came to its end")
    return about, runs


def drawn(about: Circumstances, runs: Sequence[Run]) -> str:
    """The picture, as SVG."""
    parts: list[str] = []
    top = 10
    for site in about.sites:
        figures = Figures(runs, site)
        rows = sorted(_rows(figures), key=lambda row: row[1])
        if not rows:
            continue
        parts.append(_text(0, top + 16, TITLES.get(site, site), 14, BOLD))
        parts += _bars(rows, top + HEAD)
        top += HEAD + STEP * len(rows) + 14
    parts += _foot(about, top)
    height = top + 62
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' height='{height}' "
        f"role='img' aria-label='CPU milliseconds for a page'>\n"
        f"<rect width='{WIDTH}' height='{height}' fill='#fff'/>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _rows(figures: Figures) -> Iterator[tuple[str, float, bool]]:
    for keeps in (Keeps.ALL, Keeps.NOTHING):
        for name in figures.contenders(keeps):
            yield name, min(figures.net(name)), keeps is Keeps.ALL


def _bars(rows: Sequence[tuple[str, float, bool]], top: int) -> Iterator[str]:
    longest = max(cost for _, cost, _ in rows)
    room = WIDTH - LABEL - 70
    for place, (name, cost, is_kept) in enumerate(rows):
        y = top + STEP * place
        width = max(room * cost / longest, 1)
        colour = "#d9480f" if name == OURS else "#4c6ef5"
        fill = f"fill='{colour}'" if is_kept else f"fill='none' stroke='{colour}' stroke-width='1.5'"
        yield _text(LABEL - 8, y + 13, name, look=" text-anchor='end'" + (BOLD if name == OURS else ""))
        yield f"<rect x='{LABEL}' y='{y}' width='{width:.1f}' height='{BAR}' rx='2' {fill}/>"
        yield _text(round(LABEL + width + 6), y + 13, f"{cost:.2f} ms")


def _foot(about: Circumstances, top: int) -> Iterator[str]:
    versions = ", ".join(f"{name} {about.versions[name]}" for name in NAMED if about.versions.get(name))
    told = "CPU for a page, start-up taken off. Filled: meant to survive kill -9. Outlined: keeps nothing. One run."
    for place, line in enumerate((told, f"{about.date}; {about.machine}", versions)):
        yield _text(0, top + 14 + 16 * place, line, 11)


def _text(x: int, y: int, text: str, size: int = 12, look: str = "") -> str:
    return f"<text x='{x}' y='{y}' font-size='{size}' {TEXT}{look}>{escape(text)}</text>"


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw; the exit code is 2 when there is nothing to draw."""
    parser = argparse.ArgumentParser(prog="python -m bench.chart")
    parser.add_argument("results", type=Path, help="what `make bench` wrote")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    try:
        picture = drawn(*last_run(parse(options.results.read_bytes())))
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    options.out.write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
