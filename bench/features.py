"""`python -m bench.features`: what each feature of a crawl costs a page, found by switching it off or on.

usage: python -m bench.features [--site pg] [--rounds 5] [--only learning] [--out build/features.jsonl]

One site is crawled as the defaults have it, save what a crawl without politeness needs, and then with one setting
changed; interleaved, in an order that is shuffled in each round. The cost of a feature is the median of the ratios
within the rounds, so that the machine's moods fall out, times what a page of the defaults takes in the best round.
Differences below the spread that is printed say nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench import rounds
from bench.contenders import Contender, Keeps, crawl_command
from bench.results import Run
from bench.rounds import Plan
from bench.server import serving
from bench.sites import REAL_SITES, one_page_site, pages_of

DEFAULTS: Final = "defaults"


class Feature(NamedTuple):
    """Something that can be had or not."""

    name: str
    settings: dict[str, str]
    """What is set otherwise than by default."""
    is_on: bool = True
    """Whether the defaults have it, so that it is switched off here."""


FEATURES: Final = (
    Feature("near-duplicates (SimHash)", {"content.near": "false"}),
    Feature("all content identity", {"content.fingerprints": "false"}),
    Feature("copies' links left alone", {"content.stop_copies": "false"}),
    Feature("a probe for soft 404s", {"content.probe_after": "0"}),
    Feature("traps in content", {"traps.slow_after": "0", "traps.stop_after": "0"}),
    Feature("learning of URL rules", {"learning.mode": "off"}),
    Feature("the detector of walls", {"routing.detect": "false"}),
    Feature("robots.txt", {"robots.obey": "false"}),
    Feature("sitemaps", {"discovery.sitemaps": "false"}),
    Feature("facts beside each response", {"archive.metadata": "false"}),
    Feature("references for repeated bytes", {"archive.revisits": "false"}),
    Feature("packing at level 1 rather than 0", {"archive.level": "0"}),
    Feature("packing at level 3 rather than 1", {"archive.level": "3"}, is_on=False),
    Feature("zstd rather than gzip", {"archive.compression": "zstd"}, is_on=False),
    Feature("texts of links", {"discovery.context": "true"}, is_on=False),
    Feature("requisites of pages", {"discovery.requisites": "true"}, is_on=False),
    Feature("visits again", {"recrawl.on": "true"}, is_on=False),
    Feature("cookies", {"fetch.cookies": "true"}, is_on=False),
    Feature("the parser `page`", {"parsers.run": '["page"]'}, is_on=False),
)


class Cost(NamedTuple):
    """What a feature adds to a page."""

    feature: str
    switch: str
    """How to turn it off, or on."""
    default: bool
    ms: float
    """CPU milliseconds a page."""
    part: float
    """The same as a part of what a page costs with the defaults."""
    spread: float
    """How far the ratios lie apart, quarter to quarter."""


def contenders(features: Sequence[Feature]) -> list[Contender]:
    """The defaults, and a crawl for each feature."""
    named = {DEFAULTS: dict[str, str]()} | {feature.name: feature.settings for feature in features}
    return [
        Contender(name, Keeps.ALL, "WARC", crawl_command(settings), probe="crawlspace")
        for name, settings in named.items()
    ]


def costs(features: Sequence[Feature], runs: Sequence[Run], site: str) -> list[Cost]:
    """What came of the rounds. A crawl that failed counts for nothing."""
    net: dict[int, dict[str, float]] = defaultdict(dict)
    start: dict[tuple[int, str], float] = {
        (run.round, run.contender): run.cpu for run in runs if run.site == rounds.START_UP
    }
    for run in runs:
        if run.site == site and not run.failed:
            net[run.round][run.contender] = (run.cpu - start[run.round, run.contender]) / run.pages * 1000
    usual = min(each[DEFAULTS] for each in net.values() if DEFAULTS in each)
    found: list[Cost] = []
    for feature in features:
        ratios = sorted(
            each[feature.name] / each[DEFAULTS] for each in net.values() if {feature.name, DEFAULTS} <= each.keys()
        )
        if ratios:
            part = (1 - median(ratios)) if feature.is_on else (median(ratios) - 1)
            spread = ratios[len(ratios) * 3 // 4] - ratios[len(ratios) // 4]
            switch = ", ".join(f"{name} = {value}" for name, value in feature.settings.items())
            found.append(Cost(feature.name, switch, feature.is_on, part * usual, part, spread))
    return found


def table(found: Sequence[Cost], usual: float) -> str:
    """What is on first, the dearest first."""
    rows = [
        f"A page of the defaults: {usual:.2f} ms of CPU.\n",
        "| feature | default | to switch it | ms a page | of the page | spread |",
        "| :--- | :--- | :--- | ---: | ---: | ---: |",
    ]
    for cost in sorted(found, key=lambda cost: (not cost.default, -cost.ms)):
        state = "on" if cost.default else "off"
        cells = [cost.feature, state, f"`{cost.switch}`", f"{cost.ms:.3f}", f"{cost.part:.0%}", f"{cost.spread:.0%}"]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; the exit code is 2 when the site is not on this machine."""
    parser = argparse.ArgumentParser(prog="python -m bench.features", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--site", choices=REAL_SITES, default="pg")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", metavar="WORD", help="features with this word in their name")
    parser.add_argument("--limit", type=float, default=120, help="seconds that one crawl may take")
    parser.add_argument("--out", type=Path, help="where a line of JSON for each feature is added")
    options = parser.parse_args(arguments)
    site = REAL_SITES[options.site]
    if problem := site.missing():
        print(problem, file=sys.stderr)
        return 2
    words = options.only or [""]
    features = [feature for feature in FEATURES if any(word in feature.name for word in words)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        runs = _runs(features, options, Path(name))
    for run in runs:
        if run.failed:
            print(f"FAILED: {run.contender} on {run.site}, exit {run.exit}: {run.said[-300:]}", file=sys.stderr)
    found = costs(features, runs, site.name)
    usual = min(
        (run.cpu - _start(runs, run)) / run.pages * 1000
        for run in runs
        if run.site == site.name and run.contender == DEFAULTS and not run.failed
    )
    print(table(found, usual))
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with options.out.open("a", encoding="utf-8") as out:
            out.writelines(f"{json.dumps(cost._asdict())}\n" for cost in found)
    return 0


def _runs(features: Sequence[Feature], options: argparse.Namespace, folder: Path) -> list[Run]:
    site = REAL_SITES[options.site]
    work = folder / "crawls"
    work.mkdir()
    plan = Plan(contenders(features), {site.name: pages_of(site)}, options.rounds, options.limit, work)
    with serving([site, one_page_site(folder / "one")], folder / "server") as server:
        rounds.warm_up(plan, server)
        return list(rounds.run_rounds(plan, server))


def _start(runs: Sequence[Run], of: Run) -> float:
    """What starting cost in the same round."""
    return next(
        run.cpu for run in runs if (run.site, run.round, run.contender) == (rounds.START_UP, of.round, of.contender)
    )


if __name__ == "__main__":
    sys.exit(main())
