"""The picture of a run."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench.results import Circumstances, Result, Run, line
from bench.rounds import START_UP

from bench import chart

ABOUT = Circumstances(
    date="2026-01-01 00:00 UTC",
    machine="2 cores <of> some kind",
    sites={"pg": "a package"},
    versions={"python": "3.11"},
)


def run(contender: str, cpu: float, keeps: str = "crash-safe", site: str = "pg", failed: bool = False) -> Run:
    return Run(
        contender=contender,
        keeps=keeps,
        bodies="no",
        site=site,
        round=0,
        exit=0,
        failed=failed,
        cpu=cpu,
        wall=1,
        rss_mb=1,
        disk_mb=1,
        pages=1000 if site == "pg" else 1,
        missed=0,
        beyond=0,
        twice=0,
        others=0,
        connections=1,
        server_cpu=0,
        calibration=0.1,
    )


OLD: list[Result] = [ABOUT, run("wget", 9, "nothing kept")]
NEW: list[Result] = [
    ABOUT,
    run("crawlspace", 0.5, site=START_UP),
    run("crawlspace", 1.5),
    run("scrapy", 7.25, "nothing kept"),
    run("crawlee", 9, failed=True),
]


def test_a_bar_for_each_that_came_to_its_end_cheapest_first(tmp_path: Path) -> None:
    """Of the newest run in the file; what keeps nothing is outlined; the picture is well formed."""
    file, out = tmp_path / "results.jsonl", tmp_path / "picture.svg"
    file.write_bytes(b"".join(map(line, OLD + NEW)))
    assert chart.main([str(file), "-o", str(out)]) == 0
    picture = out.read_text("utf-8")
    ElementTree.fromstring(picture)
    texts = [each.text or "" for each in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert texts[1:5] == ["crawlspace", "1.00 ms", "scrapy", "7.25 ms"]
    assert "wget" not in picture
    assert "crawlee" not in picture
    assert picture.count("fill='none'") == 1
    assert "2 cores &lt;of&gt; some kind" in picture


@pytest.mark.parametrize("results", [[], [ABOUT], [ABOUT, run("crawlspace", 1, failed=True)]])
def test_nothing_to_draw(results: list[Result], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "results.jsonl"
    file.write_bytes(b"".join(map(line, results)))
    assert chart.main([str(file), "-o", str(tmp_path / "picture.svg")]) == 2
    assert " has no " in capsys.readouterr().err
    assert not (tmp_path / "picture.svg").exists()
