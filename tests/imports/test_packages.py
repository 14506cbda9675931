"""Packages (WACZ) are imported by their archive files, ours and others, whole and broken."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

SAMPLES = Path(__file__).parents[1] / "data" / "warc"


def package(path: Path, *names: str, how: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w") as out:
        for name in names:
            out.writestr(f"archive/{name}", (SAMPLES / name).read_bytes(), how)
        out.writestr("archive/../../evil.txt", b"x")
        out.writestr("datapackage.json", b"{}")
    return path


def test_what_was_exported_comes_back(crawlspace: Run, known: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    crawlspace("import", first, SAMPLES / "post-test.warc.gz")
    assert crawlspace("export", first, "-o", tmp_path / "a.wacz").code == 0
    (second / ".import-killed").mkdir(parents=True)
    assert crawlspace("import", second, tmp_path / "a.wacz", "--json").facts["captures"] == 3
    assert known(first).states == known(second).states == {"done": 3}
    assert crawlspace("check", second).code == 0
    assert not list(second.glob(".import-*"))


def test_all_archive_files_of_a_package_are_taken(crawlspace: Run, tmp_path: Path) -> None:
    source = package(tmp_path / "a.wacz", "example.warc.gz", "post-test.warc.gz")
    assert crawlspace("import", tmp_path / "crawl", source, "--json").facts["captures"] == 4


@pytest.mark.parametrize("broken", ["no zip at all", "cut", "compressed"])
def test_a_broken_package_is_refused_with_a_reason(crawlspace: Run, tmp_path: Path, broken: str) -> None:
    how = zipfile.ZIP_DEFLATED if broken == "compressed" else zipfile.ZIP_STORED
    source = package(tmp_path / "a.wacz", "example.warc.gz", how=how)
    if broken != "compressed":
        source.write_bytes(b"PK no" if broken == "no zip at all" else source.read_bytes()[:-40])
    ran = crawlspace("import", tmp_path / "crawl", source, "--json")
    assert (ran.code, ran.facts["captures"], ran.facts["damaged"]) == (7, 0, 1)
