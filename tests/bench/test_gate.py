"""The gate: a crawl with everything on costs so many times the bare durable loop, in the same rounds, and no more.

One round below the limit opens it, so that a busy machine alone cannot shut it: what slows one round slows both
crawls, and all rounds would have to be hit alike. The limit is the ratio on a quiet machine, times 1.5.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from bench.contenders import contenders
from bench.rounds import START_UP, Plan, run_rounds
from bench.server import serving
from bench.sites import REAL_SITES, one_page_site, pages_of
from bench.table import FLOOR, Figures

from crawlspace.pages.scan import COMPILED

OURS = "crawlspace"
ROUNDS = 6
LIMIT = 3.1
"""The lowest of some quiet rounds was 2.0."""

pytestmark = [
    pytest.mark.realsite,
    pytest.mark.skipif(not COMPILED, reason="what reads pages was not compiled here"),
    pytest.mark.skipif(
        shutil.which("nginx", path="/usr/bin:/usr/sbin:/usr/local/sbin") is None or bool(REAL_SITES["pg"].missing()),
        reason="nginx or the documentation is not installed",
    ),
]


@pytest.mark.timeout(300)
def test_a_page_costs_no_more_than_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    site = REAL_SITES["pg"]
    chosen = [each for each in contenders("python3") if each.name in (OURS, FLOOR)]
    plan = Plan(chosen, {site.name: pages_of(site)}, 1, 120, tmp_path)
    ratios: list[float] = []
    with serving([site, one_page_site(tmp_path / START_UP)], tmp_path / "server") as server:
        while len(ratios) < ROUNDS and min(ratios, default=LIMIT) >= LIMIT:
            runs = list(run_rounds(plan, server, seed=len(ratios)))
            assert [run.said for run in runs if run.failed] == []
            assert {run.missed for run in runs if run.site == site.name} == {0}
            figures = Figures(runs, site.name)
            [ours], [floor] = figures.net(OURS), figures.net(FLOOR)
            ratios.append(ours / floor)
    assert min(ratios) < LIMIT, f"times the bare loop, by rounds: {', '.join(f'{ratio:.2f}' for ratio in ratios)}"
