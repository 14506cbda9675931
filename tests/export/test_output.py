"""A file appears under its name when it is whole, and not before."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import pytest

from crawlspace.app.output import STANDARD, directory_of, output, output_path
from crawlspace.errors import DiskFull, UsageError


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    with output(target) as file:
        file.write(b"half")
        assert not target.exists()
        file.write(b" and half")
    assert target.read_bytes() == b"half and half"
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    mask = os.umask(0o022)
    os.umask(mask)
    assert target.stat().st_mode & 0o777 == 0o644 & ~mask


@pytest.mark.parametrize("force", [False, True])
def test_what_is_raised_inside_leaves_everything_as_it_was(tmp_path: Path, force: bool) -> None:
    target = tmp_path / "out.csv"
    if force:
        target.write_bytes(b"older")

    def write() -> None:
        with output(target, force=force) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == ([b"older"] if force else [])


def test_nothing_is_written_over_unless_that_is_asked_for(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_bytes(b"older")
    with pytest.raises(UsageError, match="is there already"), output(target):
        pass
    assert target.read_bytes() == b"older"
    with output(target, force=True) as file:
        file.write(b"newer")
    assert target.read_bytes() == b"newer"


def test_a_file_that_somebody_else_made_meanwhile_stays(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"

    def write() -> None:
        with output(target) as file:
            file.write(b"ours")
            target.write_bytes(b"theirs")

    with pytest.raises(UsageError, match="is there already"):
        write()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"theirs"]


def test_a_link_that_leads_nowhere_is_a_file_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "out.csv").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is there already"), output(tmp_path / "out.csv"):
        pass
    with output(tmp_path / "out.csv", force=True) as file:
        file.write(b"here")
    assert not (tmp_path / "elsewhere").exists()


def test_a_disk_that_knows_no_links_is_served_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    with output(tmp_path / "out.csv") as file:
        file.write(b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


@pytest.mark.parametrize(
    ("failure", "told"), [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EIO, UsageError)]
)
def test_what_the_disk_says_is_told_in_words(tmp_path: Path, failure: int, told: type[Exception]) -> None:
    with pytest.raises(told, match=r"out\.csv"), output(tmp_path / "out.csv"):
        raise OSError(failure, os.strerror(failure))
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: no such file"), output(tmp_path / "no" / "out.csv"):
        pass


def test_standard_output_is_a_dash(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with output(STANDARD) as file:
        file.write(b"\x00\xff")
    assert capfdbinary.readouterr().out == b"\x00\xff"
    assert directory_of(STANDARD) == Path.cwd()


def test_a_reader_who_has_gone_is_no_fault_of_ours() -> None:
    with pytest.raises(BrokenPipeError), output(STANDARD):
        raise BrokenPipeError


class Screen:
    """Standard output on a terminal."""

    def __init__(self) -> None:
        self.buffer = io.BytesIO()

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_nothing_that_it_would_obey(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    text = 'a\t"\x1b[2J\x07\x9b1m\u202e\u2066\u061c"\r\n\u00e4\U0001f600\x00'
    with output(STANDARD) as file:
        for byte in text.encode():
            file.write(bytes([byte]))
        file.writelines([b"\x1b]0;x\x07\n"])
    assert screen.buffer.getvalue().decode() == (
        'a\t"\ufffd[2J\ufffd\ufffd1m\ufffd\ufffd\ufffd"\r\n\u00e4\U0001f600\ufffd\ufffd]0;x\ufffd\n'
    )
    with output_path(STANDARD) as path:
        path.write_bytes(b"\x1bx")
    assert screen.buffer.getvalue().endswith("\ufffdx".encode())
