"""Exports that go to object storage: there whole or not at all, and never over an earlier one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli import main


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["crawlspace", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    told = capsys.readouterr()
    assert isinstance(left.value.code, int)
    return left.value.code, told.out + told.err


def test_an_export_becomes_one_object(
    tmp_path: Path,
    gated: object,
    address: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gate = gated
    for name, value in gate.environment.items():  # type: ignore[attr-defined]
        monkeypatch.setenv(name, value)
    crawl = CrawlDirectory(tmp_path / "crawl").path
    assert run(monkeypatch, capsys, "inject", crawl, "http://a.test/", "-s", "contact=me@a.test")[0] == 0
    target = f"{address}/urls.jsonl"
    export = ("export", crawl, "-o", target)
    code, told = run(monkeypatch, capsys, *export, "--json")
    assert (code, json.loads(told)["rows"]) == (0, 1)
    assert gate.writes == ["urls.jsonl"]  # type: ignore[attr-defined]
    code, told = run(monkeypatch, capsys, *export)
    assert (code, "is there already" in told) == (2, True)
    assert gate.writes == ["urls.jsonl"]  # type: ignore[attr-defined]
    assert run(monkeypatch, capsys, *export, "--force")[0] == 0
    assert run(monkeypatch, capsys, "export", crawl, "-o", f"{address}/urls.sqlite")[0] == 0
    assert gate.writes == ["urls.jsonl", "urls.jsonl", "urls.sqlite"]  # type: ignore[attr-defined]
    code, told = run(monkeypatch, capsys, "export", crawl, "-o", "s3://bucket", "--format", "csv")
    assert (code, "names no object" in told) == (2, True)
