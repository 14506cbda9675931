"""The journal keeps what was flushed and nothing that was torn."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from crawlspace.errors import ArchiveSuspect, CrawlDirError, DiskFull, StoreDamaged, StoreError
from crawlspace.parsers import Parsed, Record
from crawlspace.records import Records
from crawlspace.records import journal as journals
from crawlspace.records.entries import line_of
from crawlspace.records.journal import Journal, complete, is_sealed, numbers, path_of, read
from crawlspace.records.manifest import Manifest, Part, read_manifest, write_manifest
from crawlspace.records.sink import recover, settled
from crawlspace.types import Captured, Pointer


def captured(number: int = 1, offset: int = 0, generation: int = 0) -> Captured:
    return Captured(number, generation, f"http://a.test/{number}", Pointer("f.warc.gz", offset, 10), 1000)


def parsed(*values: str, version: str = "1") -> Parsed:
    return Parsed("p", version, tuple(Record("k", "d", b'{"v":"%s"}' % value.encode()) for value in values))


def line(number: int = 1, value: str = "x", offset: int = 0) -> bytes:
    return line_of(captured(number, offset), parsed(value))


def ids(directory: Path, number: int = 1) -> list[int]:
    return [entry.id for _, entry in read(directory, number)]


def test_what_was_flushed_is_read_back_in_order(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for number in range(3):
        journal.write(line(number, "ä\\n"))
    assert journal.dirty
    journal.flush()
    assert not journal.dirty
    placed = list(read(tmp_path, 1))
    assert [entry.id for _, entry in placed] == [0, 1, 2]
    assert [place for place, _ in placed] == sorted(place for place, _ in placed)
    assert bytes(placed[0].entry.records[0].data) == '{"v":"ä\\n"}'.encode()


@pytest.mark.parametrize("cut", [1, 9, 30])
def test_a_torn_end_ends_the_reading(tmp_path: Path, cut: int) -> None:
    journal = Journal(tmp_path)
    for number in range(3):
        journal.write(line(number))
    journal.flush()
    path = path_of(tmp_path, 1)
    path.write_bytes(path.read_bytes()[:-cut])
    assert ids(tmp_path) == [0, 1]


def test_garbage_in_the_middle_ends_the_reading_too(tmp_path: Path) -> None:
    good = line(1)
    bad = good.replace(b"a.test", b"b.test")
    path_of(tmp_path, 1).write_bytes(good + bad + good)
    assert ids(tmp_path) == [1]
    text = b'["p"]'
    path_of(tmp_path, 2).write_bytes(b"%08x %s\n" % (__import__("zlib").crc32(text), text))
    assert ids(tmp_path, 2) == []
    assert list(read(tmp_path, 3)) == []


def test_each_writer_has_a_file_of_its_own_and_holds_it(tmp_path: Path) -> None:
    first, second = Journal(tmp_path), Journal(tmp_path, last=7)
    for journal in (first, second):
        journal.write(line())
        journal.flush()
    assert numbers(tmp_path) == [1, 8]
    with complete(tmp_path, 1) as is_complete:
        assert not is_complete
    first.close()
    with complete(tmp_path, 1) as is_complete:
        assert is_complete
    with complete(tmp_path, 99) as is_complete:
        assert not is_complete
    first.write(line())
    first.flush()
    assert numbers(tmp_path) == [1, 8, 9]


def test_a_seal_says_that_all_is_settled(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.seal()
    assert numbers(tmp_path) == []
    journal.write(line())
    journal.flush()
    assert not is_sealed(tmp_path, 1)
    journal.seal()
    assert is_sealed(tmp_path, 1)
    assert ids(tmp_path) == [1]
    assert not is_sealed(tmp_path, 2)


def test_a_full_disk_leaves_what_was_flushed_and_the_file_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path)
    journal.write(line(1))
    journal.flush()

    def half(fd: int, data: Any) -> int:
        os.pwrite(fd, b"torn", os.fstat(fd).st_size)
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as broken:
        broken.setattr(journals.os, "write", half)
        journal.write(line(2))
        with pytest.raises(DiskFull):
            journal.flush()
    assert not journal.dirty
    journal.write(line(3))
    journal.flush()
    assert ids(tmp_path) == [1, 3]


def test_a_file_whose_fsync_failed_is_never_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path)

    def fails(_: int) -> None:
        raise OSError(errno.EIO, "bad")

    journal.write(line(1))
    journal.flush()
    with monkeypatch.context() as broken:
        broken.setattr(journals.os, "fsync", fails)
        journal.write(line(2))
        with pytest.raises(ArchiveSuspect):
            journal.flush()
    journal.write(line(2))
    journal.flush()
    assert numbers(tmp_path) == [1, 2]
    assert ids(tmp_path, 2) == [2]


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    journal = Journal(tmp_path / "new")
    journal._directory = tmp_path / "file" / "below"
    journal.write(line())
    with pytest.raises(StoreError, match="cannot be used"):
        journal.flush()


def test_a_full_file_is_ended_before_the_next_group(tmp_path: Path) -> None:
    ended: list[int] = []
    records = Records(tmp_path, rotate_at=1, ended=lambda: ended.append(1))

    async def crawl() -> None:
        for number in range(2):
            await records.write(captured(number), [parsed("x")])
            await records.write(captured(number + 10), [parsed("x")])
            await records.flush()
        await records.close()

    asyncio.run(crawl())
    assert ended == [1]
    assert [ids(tmp_path, number) for number in numbers(tmp_path)] == [[0, 10], [1, 11]]
    assert [is_sealed(tmp_path, number) for number in numbers(tmp_path)] == [True, False]


def test_lines_that_were_made_elsewhere_are_durable_at_once(tmp_path: Path) -> None:
    records = Records(tmp_path, rotate_at=1)
    records.write_lines([line(1), line(2)])
    records.write_lines([line(3)])
    assert [ids(tmp_path, number) for number in numbers(tmp_path)] == [[1, 2], [3]]
    assert is_sealed(tmp_path, 1)


def test_after_a_crash_what_was_never_settled_is_taken_back_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for offset in (0, 10, 20):
        journal.write(line(offset, offset=offset))
    journal.flush()
    journal.close()
    assert recover(tmp_path, {"f.warc.gz": 20}, lambda _: True) == 1
    void = list(read(tmp_path, 2))
    assert [(entry.parser, entry.id) for _, entry in void] == [("", 20)]
    assert settled(tmp_path) == 1
    assert recover(tmp_path, {}, lambda _: True) == 0


def test_a_start_leaves_alone_what_others_wrote_or_what_ended_in_peace(tmp_path: Path) -> None:
    sealed = Journal(tmp_path)
    sealed.write(line(1))
    sealed.flush()
    sealed.seal()
    running = Journal(tmp_path)
    running.write(line(2))
    running.flush()
    assert recover(tmp_path, {}, lambda _: True) == 0
    running.close()
    assert recover(tmp_path, {}, lambda _: False, everything=False) == 0
    assert recover(tmp_path / "none", {}, lambda _: True) == 0


def test_a_manifest_that_is_damaged_or_newer_is_refused(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) == Manifest()
    write_manifest(tmp_path, Manifest(format=2))
    with pytest.raises(CrawlDirError, match="newer"):
        read_manifest(tmp_path)
    write_manifest(tmp_path, Manifest(parts=(Part("../x", 1, "r"),)))
    with pytest.raises(StoreDamaged, match="outside"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(StoreDamaged, match="cannot be read"):
        read_manifest(tmp_path)
