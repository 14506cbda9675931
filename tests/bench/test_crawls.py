"""A crawl of a small site by nginx, measured as the benchmark does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.contenders import Contender, Keeps, contenders
from bench.crash import kill_and_resume
from bench.rounds import START_UP, Plan, measure, run_rounds
from bench.server import Server, serving
from bench.sites import Site, one_page_site, pages_of

PAGES = 40

pytestmark = pytest.mark.skipif(
    shutil.which("nginx", path="/usr/bin:/usr/sbin:/usr/local/sbin") is None, reason="nginx is not installed"
)


@pytest.fixture(name="site")
def made_site(tmp_path: Path) -> Site:
    """Each page links to the next two, with a fragment and twice."""
    folder = tmp_path / "site"
    folder.mkdir()
    for number in range(PAGES):
        links = "".join(f"<a href='{number + step}.html#part'>next</a>" * 2 for step in (1, 2))
        (folder / f"{number}.html").write_text(f"<!doctype html><title>{number}</title>{links}")
    (folder / "index.html").write_text("<a href='0.html'>begin</a>")
    return Site("made", folder)


@pytest.fixture(name="server")
def running_server(site: Site, tmp_path: Path) -> Iterator[Server]:
    with serving([site, one_page_site(tmp_path / "one")], tmp_path / "server") as server:
        yield server


def plan_of(site: Site, folder: Path, *names: str) -> Plan:
    everyone = {each.name: each for each in contenders("python3")}
    chosen: list[Contender] = [everyone[name] for name in names]
    return Plan(chosen, {site.name: pages_of(site)}, 1, 60, folder)


def test_a_round_is_every_contender_on_every_site(site: Site, server: Server, tmp_path: Path) -> None:
    """The floor fetches every page once; what is kept is left on disk, and the rest is not."""
    plan = plan_of(site, tmp_path, "floor", "floor-durable")
    runs = {(run.contender, run.site): run for run in run_rounds(plan, server)}
    assert {site for _, site in runs} == {START_UP, "made"}
    assert all((run.exit, run.missed, run.beyond, run.twice) == (0, 0, 0, 0) for run in runs.values())
    assert runs["floor", START_UP].pages == 1
    assert runs["floor", "made"].pages == runs["floor-durable", "made"].pages == PAGES + 1
    assert runs["floor", "made"].disk_mb == 0 < runs["floor-durable", "made"].disk_mb
    assert all(run.cpu > 0 and run.rss_mb >= 0 and run.calibration > 0 for run in runs.values())


def test_a_contender_that_fails_is_a_result_too(site: Site, server: Server, tmp_path: Path) -> None:
    broken = Contender("broken", Keeps.NOTHING, "no", lambda _: ["false"])
    run = measure(broken, "made", plan_of(site, tmp_path), server)
    assert run.failed
    assert (run.exit, run.missed) == (1, PAGES + 1)


def test_the_durable_floor_loses_nothing_when_it_is_killed(site: Site, server: Server, tmp_path: Path) -> None:
    plan = plan_of(site, tmp_path, "floor-durable")
    found = kill_and_resume(plan.contenders[0], server["made"], plan)
    assert (found.missed, found.exit) == (0, 0)
    assert found.before >= 0.4 * (PAGES + 1)


def test_an_exit_status_that_a_whole_crawl_may_have_is_no_failure(site: Site, server: Server, tmp_path: Path) -> None:
    floor = plan_of(site, tmp_path, "floor").contenders[0]
    odd = Contender(
        "odd",
        Keeps.NOTHING,
        "no",
        lambda url: ["sh", "-c", '"$@"; exit 8', "sh", *floor.command(url)],
        good_exits=frozenset({0, 8}),
    )
    run = measure(odd, "made", plan_of(site, tmp_path), server)
    assert (run.exit, run.failed, run.missed) == (8, False, 0)
