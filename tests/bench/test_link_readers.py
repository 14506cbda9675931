"""The benchmark of link readers: the links it reads, and the figures it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import urls


def page(folder: Path, name: str, *links: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(f"<a href='{link}'>a</a>" for link in links))


def test_no_more_links_are_taken_than_wanted_each_with_the_address_of_its_page(tmp_path: Path) -> None:
    page(tmp_path / "site", "a.html", "b.html", "#top")
    page(tmp_path / "site", "b.html", "a.html", "https://elsewhere.test/?q=1")
    taken = urls.links_of(tmp_path / "site", 3)
    assert sum(len(links) for _, links in taken) == 3
    assert {base for base, _ in taken} == {f"{urls.BASE}/a.html", f"{urls.BASE}/b.html"}


def test_without_repeats_no_two_links_are_one() -> None:
    (alone,) = urls.without_repeats([(urls.BASE, ["a", "a", "a#b"])])
    assert len(set(alone[1])) == 3


def test_every_reader_reads_whatever_stands_in_a_link() -> None:
    pages = [(urls.BASE, ["a", "http://[", "mailto:x", "", "http://a:99999999/?é", "\ud800"])]
    readers = {
        "the recipe": urls.read_by_recipe,
        "crawlspace forms": urls.read_forms,
        "crawlspace keys": urls.read_keys,
    }
    spent = urls.measure(readers, pages, rounds=2)
    assert set(spent) == set(readers)
    assert all(figure > 0 for figure in spent.values())


def test_the_table_says_how_many_times_ours_the_others_take() -> None:
    table = urls.table("t", {"crawlspace keys": 2.0, "the recipe": 10.0})
    assert "| crawlspace keys | 2.00 | 5.0 times |" in table
    assert "| the recipe | 10.00 |  |" in table


@pytest.mark.realsite
def test_the_whole_benchmark_runs_on_the_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    if problem := urls.REAL_SITES["py"].missing():
        pytest.skip(problem)
    assert urls.main(["--rounds", "1", "--links", "200"]) == 0
    assert "200 links of" in capsys.readouterr().out
