"""Which contenders and which parts of the benchmark are run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest
from bench.contenders import Contender, Keeps, UnknownContender, add_peers, chosen, contenders, present
from bench.rounds import Plan, run_rounds
from bench.sites import Site, site_called

from bench import __main__ as command
from bench import sites


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_peers(parser)
    return parser.parse_args(arguments)


def test_all_are_chosen_or_those_that_are_named_in_their_own_order() -> None:
    assert [each.name for each in chosen(options())] == [each.name for each in contenders("python3")]
    assert [each.name for each in chosen(options("--only", "wget", "--only", "crawlspace"))] == ["crawlspace", "wget"]


def test_a_name_that_none_has_is_answered_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnknownContender, match=r"'scrappy'; there are: crawlspace, .*scrapy"):
        chosen(options("--only", "scrappy"))
    assert command.main(["--only", "scrappy"]) == 2
    assert "no contender is called 'scrappy'" in capsys.readouterr().err


def test_what_cannot_run_here_is_left_out_and_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    here = Contender("here", Keeps.NOTHING, "no", lambda _: [], sys.executable, "json")
    away = [
        Contender("no program", Keeps.NOTHING, "no", lambda _: [], "crawlspace-no-such-program"),
        Contender("no module", Keeps.NOTHING, "no", lambda _: [], sys.executable, "crawlspace_no_such_module"),
        Contender("no folder", Keeps.NOTHING, "no", lambda _: [], sys.executable, needs=tmp_path / "node_modules"),
    ]
    assert present([here, *away]) == [here]
    assert [line.split(";")[0] for line in capsys.readouterr().err.splitlines()] == [
        f"left out: {each.name}" for each in away
    ]


def test_the_peers_of_node_are_run_from_their_folder_wherever_a_crawl_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = {each.name: each for each in contenders("python3", Path("node"))}
    assert found["spider"].command("http://a/")[1] == str(tmp_path / "node" / "spider.mjs")
    assert found["crawlee-js"].needs == tmp_path / "node" / "node_modules"


def test_a_slow_contender_takes_part_in_its_first_rounds_only(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = Contender("quick", Keeps.NOTHING, "no", lambda _: [])
    slow = Contender("slow", Keeps.NOTHING, "no", lambda _: [], most_rounds=2)
    monkeypatch.setattr("bench.rounds.measure", lambda contender, *others: (contender.name, others[-1]))
    plan = Plan([quick, slow], {}, 4, 1, Path())
    runs = list(run_rounds(plan, None))  # type: ignore[arg-type]
    assert sorted(runs) == [*(("quick", number) for number in range(4)), ("slow", 0), ("slow", 1)]


def test_the_large_site_is_the_first_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "index.html").write_text("<title>b</title>")
    first, second = Site("large", tmp_path / "a", "package-a"), Site("large", tmp_path / "b", "package-b")
    monkeypatch.setattr(sites, "LARGE_SITES", (first, second))
    assert site_called("large") is second
    monkeypatch.setattr(sites, "LARGE_SITES", (first,))
    assert "apt-get install package-a" in site_called("large").missing()


@pytest.mark.parametrize(
    ("arguments", "sections"),
    [
        ([], ["crawls", *command.SECTIONS]),
        (["--quick"], ["crawls"]),
        (["--only", "wget"], ["crawls"]),
        (["--section", "hosts"], ["hosts"]),
        (["--only", "wget", "--section", "identity"], ["identity"]),
    ],
)
def test_all_sections_run_unless_one_asks_for_less(arguments: list[str], sections: list[str]) -> None:
    assert command._options(arguments).section == sections


def test_a_section_is_a_command_of_its_own_and_its_failure_ours(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    fine, broken = ("what works", ["timeit", "-n1", "1"]), ("what does not", ["crawlspace_no_such_module"])
    monkeypatch.setattr(command, "SECTIONS", {"fine": fine, "broken": broken})
    assert command.main(["--section", "fine"]) == 0
    assert command.main(["--section", "broken", "--section", "fine"]) == 1
    printed = capfd.readouterr()
    assert printed.out.count("fine: what works") == 2
    assert "broken ended with exit status 1" in printed.err
