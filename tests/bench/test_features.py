"""From crawls with one setting changed to what each feature costs; and the table of parts."""

from __future__ import annotations

import pytest
from bench.contenders import crawl_command
from bench.features import DEFAULTS, FEATURES, Feature, contenders, costs
from bench.results import Run
from bench.rounds import START_UP

from bench import features
from crawlspace.settings import chosen, load

ROBOTS = Feature("robots", {"robots.obey": "false"})
COOKIES = Feature("cookies", {"fetch.cookies": "true"}, is_on=False)


def run(contender: str, number: int, cpu: float, site: str = "pg") -> Run:
    return Run(
        contender=contender,
        keeps="crash-safe",
        bodies="WARC",
        site=site,
        round=number,
        exit=0,
        failed=cpu < 0,
        cpu=cpu,
        wall=1.0,
        rss_mb=1.0,
        disk_mb=1.0,
        pages=1000 if site == "pg" else 1,
        missed=0,
        beyond=0,
        twice=0,
        others=0,
        connections=1,
        server_cpu=0.0,
        calibration=1.0,
    )


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_each_feature_is_a_setting_that_is_not_the_default(feature: Feature) -> None:
    options = [f"{name}={value}" for name, value in feature.settings.items()]
    assert load(None, {}, options) != load(None, {}, [])
    command = crawl_command(feature.settings)("http://a.test/")
    assert all(option in command for option in options)
    assert chosen(options)


def test_what_a_feature_costs_is_the_ratio_within_a_round_of_what_the_defaults_cost() -> None:
    """A slow round is slow for all, and a crawl that failed counts for nothing."""
    runs = [run(name, number, 1.0, START_UP) for number in range(4) for name in (DEFAULTS, "robots", "cookies")]
    runs += [run(DEFAULTS, 0, 3.0), run("robots", 0, 2.0), run("cookies", 0, 3.2)]
    runs += [run(DEFAULTS, 1, 21.0), run("robots", 1, 11.0), run("cookies", 1, 23.0)]
    runs += [run(DEFAULTS, 2, 3.0), run("robots", 2, -1.0), run("cookies", 2, 3.2)]
    runs += [run("robots", 3, 9.0)]
    off, on = costs([ROBOTS, COOKIES], runs, "pg")
    assert (off.part, off.ms, off.default) == (pytest.approx(0.5), pytest.approx(1.0), True)
    assert (on.part, on.ms, on.default) == (pytest.approx(0.1), pytest.approx(0.2), False)
    text = features.table([on, off], 2.0)
    assert text.index("`robots.obey = false`") < text.index("`fetch.cookies = true`")
    assert "| 1.000 | 50% |" in text


def test_there_is_one_crawl_for_each_feature_and_one_without() -> None:
    assert [each.name for each in contenders([ROBOTS, COOKIES])] == [DEFAULTS, "robots", "cookies"]
