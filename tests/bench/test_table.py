"""From runs to tables."""

from __future__ import annotations

from typing import Any

import pytest
from bench.results import Circumstances, Resumption, Run
from bench.rounds import START_UP
from bench.table import FLOOR, SCRAPY, Figures

from bench import results, table


def run(contender: str = "ours", site: str = "pg", number: int = 0, **changes: Any) -> Run:
    values: dict[str, Any] = {
        "contender": contender,
        "keeps": "crash-safe",
        "bodies": "WARC",
        "site": site,
        "round": number,
        "exit": 0,
        "failed": False,
        "cpu": 1.0,
        "wall": 2.0,
        "rss_mb": 50.0,
        "disk_mb": 6.0,
        "pages": 1000,
        "missed": 0,
        "beyond": 0,
        "twice": 0,
        "others": 1,
        "connections": 64,
        "server_cpu": 0.1,
        "calibration": 0.2,
    }
    return Run(**(values | changes))


def start(contender: str, cpu: float, number: int = 0) -> Run:
    return run(contender, START_UP, number, cpu=cpu, pages=1)


def test_what_starting_costs_is_taken_off() -> None:
    """The cheapest start of all rounds counts."""
    figures = Figures([start("ours", 0.5), start("ours", 0.25, 1), run(cpu=1.25), run(number=1, cpu=2.25)], "pg")
    assert figures.net("ours") == [1.0, 2.0]
    assert figures.start("ours") == 0.25


def test_a_run_that_is_cheaper_than_a_start_costs_nothing() -> None:
    assert Figures([start("ours", 0.5), run(cpu=0.4)], "pg").net("ours") == [0.0]


def test_ratios_are_taken_within_a_round() -> None:
    """A slow round is slow for both, so that the ratio does not move."""
    runs = [run(cpu=1.0), run(SCRAPY, cpu=8.0), run(number=1, cpu=2.0), run(SCRAPY, number=1, cpu=16.0)]
    figures = Figures([*runs, run(number=2, cpu=1.0), run(SCRAPY, number=2, cpu=2.0)], "pg")
    assert figures.ratio("ours", SCRAPY) == 0.125


@pytest.mark.parametrize("reference", [SCRAPY, FLOOR])
def test_without_a_reference_in_the_same_round_there_is_no_ratio(reference: str) -> None:
    figures = Figures([run(number=0), run(reference, number=1), run(reference, number=0, failed=True)], "pg")
    assert figures.ratio("ours", reference) is None


def test_a_failed_run_counts_for_nothing_and_is_named() -> None:
    runs = [run(cpu=3.0), run(number=1, cpu=0.1, pages=0, exit=2, failed=True, said="no such setting")]
    assert Figures(runs, "pg").net("ours") == [3.0]
    text = table.crawls(runs, "pg")
    assert "ours failed in round 2" in text
    assert "no such setting" in text


def test_classes_are_never_mixed_and_the_cheapest_comes_first() -> None:
    runs = [run("dear", cpu=9.0), run("cheap"), run("forgetful", keeps="nothing kept"), run("elsewhere", "py")]
    kept, _, forgotten = table.crawls(runs, "pg").partition("pg, nothing kept:")
    assert kept.index("| cheap") < kept.index("| dear")
    assert "forgetful" not in kept
    assert "| forgetful" in forgotten
    assert "elsewhere" not in kept + forgotten


def test_pages_missed_and_fetched_twice_are_shown_as_a_range_over_the_rounds() -> None:
    text = table.crawls([run(missed=0, twice=3), run(number=1, missed=716, twice=3)], "pg")
    header, _, row = [line.split("|") for line in text.splitlines() if line.startswith("|")]
    cells = {name.strip(): cell.strip() for name, cell in zip(header, row, strict=True)}
    assert (cells["missed"], cells["twice"]) == ("0-716", "3")


def test_every_row_of_a_table_is_as_wide_as_its_header() -> None:
    lines = table.markdown(("name", "n"), [("a", "1"), ("a longer name", "12345")]).splitlines()
    assert lines == [
        "| name          |     n |",
        "| :------------ | ----: |",
        "| a             |     1 |",
        "| a longer name | 12345 |",
    ]


def test_resumptions_show_what_was_lost() -> None:
    lost = Resumption(contender="ours", site="pg", before=468, again=1, exit=0, missed=676, twice=1, wall=1.84)
    cells = [cell.strip() for cell in table.resumptions([lost]).splitlines()[-1].strip("|").split("|")]
    assert cells == ["ours", "468", "1", "0", "676", "1", "1.8"]


def test_noise_is_the_spread_of_the_calibration_loop() -> None:
    assert "(2.00 times)" in table.noise([run(calibration=0.2), run(calibration=0.1), run(calibration=0.15)])


def test_results_are_the_same_after_a_way_through_lines_of_json() -> None:
    about = Circumstances(date="today", machine="2 cores", sites={"pg": "15"}, versions={"python": "3.11"})
    lost = Resumption(contender="ours", site="pg", before=1, again=1, exit=0, missed=0, twice=0, wall=1.0)
    everything: list[results.Result] = [about, run(), lost]
    assert results.parse(b"".join(map(results.line, everything))) == everything
