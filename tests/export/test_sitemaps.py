"""Sitemaps: one file when that is enough, otherwise parts and an index that appear together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from crawlspace.app.exporting.sitemaps import write_sitemap
from crawlspace.app.output import STANDARD, Target
from crawlspace.errors import UsageError
from crawlspace.exports import sitemap
from crawlspace.exports.sitemap import URLS_MAX, Entry

SPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
BASE = "https://a.test/maps"


def entries(n: int) -> Iterator[Entry]:
    return (Entry(f"http://a.test/{number}?a=1&b=<>") for number in range(n))


def locations(path: Path) -> list[str]:
    return [each.findtext(f"{SPACE}loc") or "" for each in ElementTree.parse(path).getroot()]


def test_what_fits_is_one_file_and_needs_no_base(tmp_path: Path) -> None:
    target = tmp_path / "sitemap.xml"
    assert write_sitemap(Target(target), entries(URLS_MAX), None) == URLS_MAX
    assert [path.name for path in tmp_path.iterdir()] == ["sitemap.xml"]
    assert len(locations(target)) == URLS_MAX
    assert locations(target)[7] == "http://a.test/7?a=1&b=<>"


def test_more_is_parts_that_an_index_names(tmp_path: Path) -> None:
    target = tmp_path / "sitemap.xml"
    assert write_sitemap(Target(target), entries(2 * URLS_MAX + 1), BASE) == 2 * URLS_MAX + 1
    assert locations(target) == [f"{BASE}/sitemap-{n}.xml" for n in (1, 2, 3)]
    listed = [locations(tmp_path / f"sitemap-{n}.xml") for n in (1, 2, 3)]
    assert [len(part) for part in listed] == [URLS_MAX, URLS_MAX, 1]
    assert len({url for part in listed for url in part}) == 2 * URLS_MAX + 1
    assert len(list(tmp_path.iterdir())) == 4


def test_a_part_ends_at_its_bytes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "BYTES_MAX", 1000)
    write_sitemap(Target(tmp_path / "a.xml"), entries(100), BASE)
    parts = [path for path in tmp_path.iterdir() if path.name != "a.xml"]
    assert len(parts) > 5
    assert all(path.stat().st_size <= 1000 for path in parts)


@pytest.mark.parametrize("target", ["a.xml", str(STANDARD)])
def test_without_an_address_for_the_parts_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.setattr(sitemap, "URLS_MAX", 3)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="one sitemap cannot hold"):
        write_sitemap(Target(Path(target)), entries(10), None)
    assert list(tmp_path.iterdir()) == []


def test_a_part_of_an_earlier_run_is_never_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "URLS_MAX", 3)
    (tmp_path / "a-2.xml").write_bytes(b"older")
    with pytest.raises(UsageError, match=r"a-2\.xml is there already"):
        write_sitemap(Target(tmp_path / "a.xml"), entries(10), BASE)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"older"]
    write_sitemap(Target(tmp_path / "a.xml", force=True), entries(10), BASE)
    assert len(locations(tmp_path / "a.xml")) == 4
