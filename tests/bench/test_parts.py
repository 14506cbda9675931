"""What the parts of a page's way cost, and who stands beside them."""

from __future__ import annotations

import sys

import pytest
from bench.parts import OURS, Figure

from bench import parts


def test_a_part_is_told_with_how_many_times_its_cost_others_take() -> None:
    rows = [Figure("key", "us a link", OURS, 2.0), Figure("key", "us a link", "urllib", 30.0)]
    assert "| key | us a link | 2 | urllib 30 (15 times) |" in parts.table(rows)
    assert "| key | us a link |  | urllib 30 |" in parts.table(rows[1:])


def test_the_frontier_s_three_parts_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_OFFERS", 2000)
    figures = {figure.part: figure.cost for figure in parts.frontier(1)}
    assert set(figures) == {"claim", "lease", "settle"}
    assert all(0 < cost < 10_000 for cost in figures.values())


def test_an_import_costs_what_a_new_process_uses_for_it() -> None:
    figures = {figure.part: figure.cost for figure in parts.imports(1)}
    assert 0 < figures["import crawlspace"] < figures["import crawlspace.cli"] < 10_000


def test_peers_that_are_not_there_are_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(parts, "_OFFERS", 5000)
    assert list(parts.peers(sys.executable, 1)) == []
    assert "left out: Scrapy and Crawlee" in capsys.readouterr().err


def test_a_peer_is_told_beside_a_part_of_ours_alone() -> None:
    ours = [Figure("claim", "us a URL", OURS, 8.0)]
    assert parts._is_beside(Figure("claim", "us a URL", "scrapy", 40.0), ours)
    assert not parts._is_beside(Figure("import crawlspace", "ms", "import scrapy", 300.0), ours)
