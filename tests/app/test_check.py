"""`check` finds what is not as it should be, and `backup` makes a copy that goes on like the crawl itself."""

from __future__ import annotations

import asyncio
import fcntl
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import crawlspace
from crawlspace.app.backup import back_up
from crawlspace.app.check import Checker, Report, told
from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli.options import settings_used
from crawlspace.clock import SystemClock
from crawlspace.errors import CrawlDirError, CrawlDirInUse, DiskFull, StoreDamaged, UsageError
from crawlspace.events import Ending
from crawlspace.states import UrlState
from crawlspace.testing.toyweb import LIGHT, ToyWeb


@pytest.fixture(scope="module")
def web() -> Iterator[ToyWeb]:
    with ToyWeb(seed=5, features=LIGHT, tls=False) as web:
        yield web


def settings_for(web: ToyWeb) -> dict[str, Any]:
    return {
        "contact": "tests@crawlspace.test",
        "host.delay": 0,
        "retry.wait": 0.05,
        "network.resolve": dict(web.resolve),
        "network.allow": ["127.0.0.1"],
        "identity.hosts": [dict(rule) for rule in web.truth.own_folds],
    }


@pytest.fixture(scope="module")
def crawled(web: ToyWeb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of some pages, with more in its queue."""
    path = tmp_path_factory.mktemp("module") / "crawl"
    settings = {**settings_for(web), "budget.pages": 60}
    assert crawlspace.Crawl(path, list(web.seeds), settings=settings).run().ending is Ending.BUDGET
    return path


@pytest.fixture
def crawl(crawled: Path, tmp_path: Path) -> CrawlDirectory:
    """That crawl, to be damaged."""
    return CrawlDirectory(Path(shutil.copytree(crawled, tmp_path / "crawl")))


def check(crawl: CrawlDirectory, *, deep: bool = False, repair: bool = False) -> Report:
    return Checker(crawl, settings_used(crawl), SystemClock(), deep, repair).run()


def change(crawl: CrawlDirectory, statement: str) -> None:
    with closing(sqlite3.connect(crawl.database)) as connection:
        connection.execute(statement)
        connection.commit()


def captures(crawl: CrawlDirectory) -> list[tuple[int, str, int, int]]:
    """Number, file, offset and length of the captures of pages that are done, in their order."""
    with closing(sqlite3.connect(crawl.database)) as connection:
        return connection.execute(
            "SELECT o.id, s.name, o.offset, o.length FROM outcome o JOIN segment s ON s.id = o.segment "
            "WHERE o.state = 3 ORDER BY s.name, o.offset"
        ).fetchall()


# -- check --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("repair", [False, True])
def test_a_sound_crawl_has_no_faults(crawl: CrawlDirectory, deep: bool, repair: bool) -> None:
    report = check(crawl, deep=deep, repair=repair)
    assert (report.found, report.faults) == (0, [])
    assert report.captures >= 50
    assert list(told(report)) == [f"nothing is wrong; {report.captures} captures looked at"]


def test_counters_that_are_wrong_are_repaired(crawl: CrawlDirectory) -> None:
    change(crawl, "UPDATE tally SET n = n + 5 WHERE name = 'done'")
    report = check(crawl)
    assert (report.found, report.repaired, report.left) == (1, 0, 1)
    assert "the total of done is" in report.faults[0]
    assert check(crawl, repair=True).left == 0
    assert check(crawl).found == 0


def test_an_archive_file_that_is_gone_takes_its_pages_back_to_the_queue(crawl: CrawlDirectory, web: ToyWeb) -> None:
    """They are fetched again, and the crawl ends as if nothing had been lost."""
    before = len(captures(crawl))
    for file in crawl.archive.iterdir():
        file.unlink()
    report = check(crawl)
    assert report.found >= before
    assert "has 0 bytes where" in report.faults[0]
    assert "is not there" in report.faults[-1]
    repaired = check(crawl, repair=True)
    assert (repaired.left, repaired.repaired) == (0, report.found)
    assert list(told(repaired))[-1].endswith("captures looked at")
    result = crawlspace.Crawl(crawl.path, settings=settings_for(web)).run()
    assert result.ending is Ending.FINISHED
    assert result.counts.states[UrlState.DONE] > before
    assert check(crawl, deep=True).found == 0


def test_a_file_that_is_cut_is_told_by_its_length(crawl: CrawlDirectory) -> None:
    number, file, offset, length = captures(crawl)[-1]
    with (crawl.archive / file).open("rb+") as handle:
        handle.truncate(offset + length - 1)
    report = check(crawl)
    # What was written after the last page, such as a redirect, is lost with it and told too.
    [told] = [fault for fault in report.faults if fault.startswith(f"URL {number}, http")]
    assert f"its capture ends beyond the end of {file}" in told
    assert check(crawl, repair=True).left == 0
    assert check(crawl, deep=True).found == 0


def test_a_byte_that_flipped_is_found_by_reading(crawl: CrawlDirectory) -> None:
    """And only by that."""
    _, file, offset, length = captures(crawl)[3]
    with (crawl.archive / file).open("rb+") as handle:
        handle.seek(offset + length // 2)
        [byte] = handle.read(1)
        handle.seek(-1, 1)
        handle.write(bytes([byte ^ 0xFF]))
    assert check(crawl).found == 0
    assert check(crawl, deep=True).found == 1
    assert check(crawl, deep=True, repair=True).left == 0
    assert check(crawl, deep=True).found == 0


@pytest.mark.parametrize(
    ("change_to", "said"),
    [
        ("digest = zeroblob(32)", "is not the one that was read"),
        ("status = 299", "has status 200, and 299 is noted"),
        ("segment = NULL", "it has no capture"),
        ("offset = offset + 1", "cannot be read"),
    ],
)
def test_a_capture_that_is_another_than_the_store_says_is_found(
    crawl: CrawlDirectory, change_to: str, said: str
) -> None:
    change(crawl, f"UPDATE outcome SET {change_to} WHERE id = {captures(crawl)[5][0]}")
    assert any(said in fault for fault in check(crawl, deep=True).faults)


def test_a_crawl_that_runs_is_checked_and_not_repaired(crawl: CrawlDirectory) -> None:
    with (crawl.path / "crawl.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert check(crawl, deep=True).found == 0
        with pytest.raises(CrawlDirInUse):
            check(crawl, repair=True)


def test_a_report_lists_so_many_faults_and_counts_the_rest() -> None:
    report = Report()
    for number in range(1002):
        report.add(f"fault {number}", repaired=number < 2)
    lines = list(told(report))
    assert (len(lines), report.left) == (1002, 1000)
    assert lines[-2:] == ["and 2 more", "1002 faults, 2 of them repaired; 0 captures looked at"]


# -- backup -------------------------------------------------------------------------------------------------


def test_a_copy_is_sound_and_goes_on_by_itself(crawl: CrawlDirectory, web: ToyWeb, tmp_path: Path) -> None:
    copied = back_up(crawl, tmp_path / "copy", settings_used(crawl))
    copy = CrawlDirectory(tmp_path / "copy")
    assert copied.files == len(list(copy.archive.iterdir()))
    assert check(copy, deep=True).found == 0
    shutil.rmtree(crawl.path)
    result = crawlspace.Crawl(copy.path, settings=settings_for(web)).run()
    assert result.ending is Ending.FINISHED
    assert check(copy, deep=True).found == 0


def test_a_crawl_is_copied_while_it_runs(web: ToyWeb, tmp_path: Path) -> None:
    """Each copy is of one moment, whatever is written meanwhile."""
    crawl = crawlspace.Crawl(tmp_path / "crawl", list(web.seeds), settings=settings_for(web))
    copies: list[CrawlDirectory] = []

    async def copy_again() -> None:
        target = tmp_path / f"copy{len(copies)}"
        await asyncio.to_thread(back_up, crawl.directory, target, settings_used(crawl.directory))
        copies.append(CrawlDirectory(target))

    async def main() -> None:
        running = asyncio.create_task(crawl.run_async())
        while not running.done():
            await asyncio.sleep(0.05)
            if crawl.directory.effective.exists() and len(copies) < 4:
                await copy_again()
        assert running.result().ending is Ending.FINISHED

    asyncio.run(main())
    assert copies
    assert [check(copy, deep=True).faults for copy in copies] == [[]] * len(copies)


def test_a_target_that_is_there_or_inside_is_refused(crawl: CrawlDirectory, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for target, said in [(tmp_path / "there", "is there already"), (crawl.path / "in", "into itself")]:
        with pytest.raises(UsageError, match=said):
            back_up(crawl, target, settings_used(crawl))
    with pytest.raises(CrawlDirError, match="no crawl"):
        back_up(CrawlDirectory(tmp_path / "there"), tmp_path / "new", settings_used(crawl))


@pytest.mark.parametrize("cut", [False, True])
def test_a_crawl_that_lacks_captures_is_not_copied_as_if_it_were_whole(
    crawl: CrawlDirectory, tmp_path: Path, cut: bool
) -> None:
    for file in crawl.archive.iterdir():
        if cut:
            file.write_bytes(file.read_bytes()[:100])
        else:
            file.unlink()
    with pytest.raises(StoreDamaged, match="shorter than its settled captures"):
        back_up(crawl, tmp_path / "copy", settings_used(crawl))
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(("number", "error"), [(28, DiskFull), (5, CrawlDirError)])
def test_a_disk_that_fails_is_said_so_and_the_next_try_begins_anew(
    crawl: CrawlDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    def fail(_handle: int) -> None:
        raise OSError(number, "the disk says no")

    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", fail)
        with pytest.raises(error):
            back_up(crawl, tmp_path / "copy", settings_used(crawl))
    assert not (tmp_path / "copy").exists()
    back_up(crawl, tmp_path / "copy", settings_used(crawl))
    assert check(CrawlDirectory(tmp_path / "copy")).found == 0
