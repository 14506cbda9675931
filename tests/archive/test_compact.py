"""Small files become large ones; wherever that is interrupted, the archive says the same."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from warcio.checker import Checker as WarcioChecker

from crawlspace.app import compact
from crawlspace.app.backup import back_up
from crawlspace.app.check import Checker
from crawlspace.app.compact import Compacter
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.index import index_archive
from crawlspace.archive.disk import Disk, RealDisk
from crawlspace.archive.joins import LIST, MARK, Joins
from crawlspace.archive.reader import Reader
from crawlspace.archive.warc import ArchiveSettings, WarcArchive
from crawlspace.cli import main
from crawlspace.errors import CrawlDirError, CrawlDirInUse, CrawlspaceError, DiskFull
from crawlspace.exchange import Capture, Reference
from crawlspace.frontier.sqlite.store import SqliteFrontier
from crawlspace.settings import Settings, convert, load, nested
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.disk import Fault, FaultyDisk
from crawlspace.types import Address, Claim, Evidence, Finished, Pace, Pointer, Released, Wish
from crawlspace.urls import Identity, policy_from

MakeCapture = Callable[..., Capture]

T0 = 1_700_000_000_123
PAYLOAD = b"<p>the same page</p>" * 50


def settings(**archive: object) -> Settings:
    return convert(nested({f"archive.{name}": value for name, value in archive.items()}), "test")


@pytest.fixture
def crawled(tmp_path: Path, capture: MakeCapture) -> Callable[..., CrawlDirectory]:
    """A crawl directory whose archive has a file for each of six pages, the last a revisit of the first."""

    def make(workers: tuple[int, ...] = (0,), **archive: object) -> CrawlDirectory:
        place = CrawlDirectory(tmp_path / "crawl")
        place.create()
        place.write_effective(settings(**archive))
        asyncio.run(_crawl(place, capture, workers))
        return place

    return make


async def _crawl(place: CrawlDirectory, capture: MakeCapture, workers: tuple[int, ...]) -> None:
    used = settings()
    identity = Identity(policy_from(used.identity))
    clock = ManualClock(T0)
    store = await SqliteFrontier.open(place.database, used.frontier(), clock)
    claims = []
    for number in range(6):
        address = identity.identify(f"http://a.test/{number}")
        assert isinstance(address, Address)
        claims.append(Claim(address))
    await store.claim(claims)
    [lease] = await store.lease(Wish(1, 10, 10, 60_000, 10**9))
    first: Pointer | None = None
    for number, url in enumerate(lease.urls):
        worker = workers[number % len(workers)]
        archive = WarcArchive(
            place.archive, _archive_settings(place), clock, crawl="crawl", software="test", worker=worker
        )
        payload = PAYLOAD if number in (0, 5) else b"<p>page %d</p>" % number
        made = capture(url=url.url, payload=payload, refers_to=Reference("", 0, first) if number == 5 else None)
        pointer = await archive.append(made)
        await archive.close()
        first = first or pointer
        evidence = Evidence(T0, 200, pointer=pointer, digest=sha256(payload).digest(), size=10)
        await store.settle([Finished(lease.token, lease.host.hid, url, evidence)], [])
    await store.settle([Released(lease.token, lease.host.hid, Pace())], [])
    await store.close()


def _archive_settings(place: CrawlDirectory) -> ArchiveSettings:
    return load(place.effective, {}).archive


def joined(place: CrawlDirectory) -> compact.Compacted:
    return asyncio.run(Compacter(place, settings(), ManualClock(T0)).run())


def faults(place: CrawlDirectory) -> list[str]:
    return Checker(place, settings(), ManualClock(T0), deep=True).run().faults


def captures(place: CrawlDirectory, tmp_path: Path) -> list[tuple[str, str]]:
    """URL and digest of each line of the index."""
    target = tmp_path / "made.cdxj"
    index_archive(place, settings(), target, force=True)
    facts = [json.loads(line.split(" ", 2)[2]) for line in target.read_text().splitlines()]
    return sorted((each["url"], each["digest"]) for each in facts)


def files(place: CrawlDirectory) -> list[str]:
    return sorted(path.name for path in place.archive.glob("*.warc*"))


def test_the_files_become_one_and_every_capture_is_where_the_store_says(
    crawled: Callable[..., CrawlDirectory], tmp_path: Path
) -> None:
    place = crawled()
    before, old = captures(place, tmp_path), files(place)
    done = joined(place)
    assert (done.before, done.after) == (6, 1)
    (whole,) = files(place)
    assert MARK in whole
    assert faults(place) == []
    assert captures(place, tmp_path) == before
    assert joined(place).after == 1
    checker = WarcioChecker(SimpleNamespace(inputs=[str(place.archive / whole)], verbose=False))
    assert checker.process_all() == 0
    # Whoever kept a pointer into a part, as a revisit does, is led on.
    part = next(each for each in Joins.of(RealDisk(), place.archive, [whole.partition(".warc")[0] + LIST]).wholes())
    assert [name for name, _ in part.parts] == old
    found = dict(Reader(RealDisk(), place.archive, 1 << 20).scan({whole: part.length}))
    last = next(capture for capture in found.values() if capture.refers_to)
    assert last.payload == PAYLOAD


def test_each_worker_keeps_files_of_its_own_and_large_ones_stay(
    crawled: Callable[..., CrawlDirectory], tmp_path: Path
) -> None:
    place = crawled(workers=(0, 3))
    large = place.archive / "crawl-20200101000000-00000-0.warc.gz"
    first = next(path for path in place.archive.iterdir())
    limit = 1 << 20
    large.write_bytes(first.read_bytes() * (limit // first.stat().st_size))
    asyncio.run(Compacter(place, settings(max_file=limit), ManualClock(T0)).run())
    assert len(files(place)) == 3
    assert large.exists()
    assert {name.partition(".warc")[0].rpartition("-")[2] for name in files(place)} == {"0", "3"}
    assert faults(place) == []


def test_files_are_joined_with_those_that_are_packed_alike(
    crawled: Callable[..., CrawlDirectory], tmp_path: Path
) -> None:
    place = crawled(compression="zstd")
    before = captures(place, tmp_path)
    assert joined(place).after == 1
    (whole,) = files(place)
    assert whole.endswith(".warc.zst")
    assert captures(place, tmp_path) == before
    assert faults(place) == []


def test_wherever_it_stops_the_archive_says_the_same_and_the_next_call_goes_on(
    crawled: Callable[..., CrawlDirectory], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fails for good at the first change, then at the second, and so on; a kill leaves no more than that."""
    place = crawled()
    before = captures(place, tmp_path)
    original = {path: path.read_bytes() for path in [*place.archive.iterdir(), place.database]}
    for step in range(1, 40):
        disk = FaultyDisk(Fault(step, errno.EIO, lasting=True))
        monkeypatch.setattr(compact, "disk_of", _always(disk))
        try:
            joined(place)
        except CrawlspaceError:
            assert captures(place, tmp_path) == before, step
            assert faults(place) == [], step
        else:
            break
        monkeypatch.undo()
        assert joined(place).after == 1
        assert len(files(place)) == 1
        assert captures(place, tmp_path) == before
        assert faults(place) == []
        for path in place.archive.iterdir():
            path.unlink()
        for path, data in original.items():
            path.write_bytes(data)
    assert step > 8


def _always(disk: Disk) -> Callable[..., Disk]:
    return lambda *_: disk


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_around_the_move_of_the_pointers_is_made_good(
    crawled: Callable[..., CrawlDirectory], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    place = crawled()
    before = captures(place, tmp_path)
    real = SqliteFrontier.relocate

    async def killed(self: SqliteFrontier, moves: Any) -> None:
        if when == "after":
            await real(self, moves)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SqliteFrontier, "relocate", killed)
        with pytest.raises(KeyboardInterrupt):
            joined(place)
    assert captures(place, tmp_path) == before
    assert faults(place) == []
    assert joined(place).after == 1
    assert captures(place, tmp_path) == before
    assert faults(place) == []


def test_a_torn_file_is_cut_before_anything_is_put_behind_it(
    crawled: Callable[..., CrawlDirectory], tmp_path: Path
) -> None:
    place = crawled()
    before = captures(place, tmp_path)
    with (place.archive / files(place)[2]).open("ab") as file:
        file.write(b"\x1f\x8b\x08torn")
    assert joined(place).after == 1
    assert captures(place, tmp_path) == before


@pytest.mark.parametrize("listing", [b"", b"{", b'["x"]', b"\xff"])
def test_a_list_that_was_never_finished_counts_nothing(
    crawled: Callable[..., CrawlDirectory], tmp_path: Path, listing: bytes
) -> None:
    place = crawled()
    before = captures(place, tmp_path)
    (place.archive / f"crawl-1{MARK}2-00000-0{LIST}").write_bytes(listing)
    (place.archive / f"crawl-1{MARK}2-00000-0.warc.gz").write_bytes(b"half of it")
    assert captures(place, tmp_path) == before
    assert joined(place).after == 1
    assert faults(place) == []
    assert not (place.archive / f"crawl-1{MARK}2-00000-0{LIST}").exists()


def test_lists_that_name_each_other_in_a_circle_lead_nowhere(tmp_path: Path) -> None:
    """Nobody writes such lists, but files can be damaged: reading ends all the same."""
    joins = Joins(())
    assert joins.where(Pointer("a.warc.gz", 1, 2)) == Pointer("a.warc.gz", 1, 2)
    (tmp_path / f"a{LIST}").write_text('["a.warc.gz", 9, [["b.warc.gz", 0]]]')
    (tmp_path / f"b{LIST}").write_text('["b.warc.gz", 9, [["a.warc.gz", 5]]]')
    circle = Joins.of(RealDisk(), tmp_path, [f"a{LIST}", f"b{LIST}"])
    assert circle.where(Pointer("a.warc.gz", 1, 2)).length == 2


def test_a_crawl_in_use_or_none_at_all_is_refused(crawled: Callable[..., CrawlDirectory], tmp_path: Path) -> None:
    with pytest.raises(CrawlDirError, match="no crawl"):
        joined(CrawlDirectory(tmp_path / "nothing"))
    place = crawled()
    with place.locked(), pytest.raises(CrawlDirInUse):
        joined(place)


def test_a_full_disk_is_said(crawled: Callable[..., CrawlDirectory], monkeypatch: pytest.MonkeyPatch) -> None:
    place = crawled()
    monkeypatch.setattr(compact, "disk_of", _always(FaultyDisk(Fault(1, errno.ENOSPC))))
    with pytest.raises(DiskFull, match="no space left"):
        joined(place)


def test_the_verb_makes_the_indexes_that_are_there_anew(
    crawled: Callable[..., CrawlDirectory], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = crawled()

    def verb(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["crawlspace", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 0
        return capsys.readouterr().out

    verb("index", str(place.path))
    verb("index", str(place.path), "--table")
    told = json.loads(verb("compact", str(place.path), "--json"))
    assert (told["before"], told["after"]) == (6, 1)
    (whole,) = files(place)
    assert (place.archive / "index.cdxj").read_text().count(whole) == 6
    assert "nothing to join" in verb("compact", str(place.path))


def test_a_backup_of_a_joined_archive_follows_old_pointers_too(
    crawled: Callable[..., CrawlDirectory], tmp_path: Path
) -> None:
    place = crawled()
    joined(place)
    back_up(place, tmp_path / "copy", settings())
    copy = CrawlDirectory(tmp_path / "copy")
    assert faults(copy) == []


def test_a_backup_has_all_records_of_each_capture(crawled: Callable[..., CrawlDirectory], tmp_path: Path) -> None:
    """The requests behind the last responses too, and nothing that is torn or belongs to what comes later."""
    place = crawled()
    whole = {name: (place.archive / name).read_bytes() for name in files(place)}
    with (place.archive / files(place)[0]).open("ab") as file:
        file.write(b"\x1f\x8b\x08torn")
    back_up(place, tmp_path / "copy", settings())
    copy = CrawlDirectory(tmp_path / "copy")
    assert {name: (copy.archive / name).read_bytes() for name in files(copy)} == whole
