"""The journal: records as they come, durable with the pages that they are of, until they are folded into columns.

Files `journal-NNNNNNNN.jsonl`, numbered in the order of their making, each written by one process that holds a lock
on it; a file that nobody holds is complete, or its writer is dead and its end may be torn. Nothing counts before
`flush` has returned. Whatever goes wrong, the file is cut back to what was flushed, or is never written again.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from crawlspace.errors import ArchiveSuspect, DiskFull, StoreError
from crawlspace.records.entries import SEAL, Placed, entries

FILE_NAME: Final = re.compile(r"journal-([0-9]{8})\.jsonl")
ROTATE_AT: Final = 64 << 20
"""Bytes after which a new file begins, so that the one before can be folded."""
PLACES: Final = 1 << 40
"""Places within one file; a place is its byte, so that numbers of files come first."""

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class Journal:
    """The file that this process writes; made when there is something to write."""

    def __init__(self, directory: Path, last: int = 0, rotate_at: int = ROTATE_AT) -> None:
        """`last` is the highest number that was ever given, as far as is known from elsewhere."""
        self._directory = directory
        self._last = last
        self._rotate_at = rotate_at
        self._fd: int | None = None
        self._held: list[bytes] = []
        self._flushed = 0
        self.path: Path | None = None

    @property
    def dirty(self) -> bool:
        """Whether something was written since the last `flush`."""
        return bool(self._held)

    @property
    def is_over(self) -> bool:
        """Whether the file is as long as it may be."""
        return self._flushed >= self._rotate_at

    def write(self, line: bytes) -> None:
        """Take a line; durable only after `flush`."""
        self._held.append(line)

    def forget(self) -> None:
        """Drop what was written since the last `flush`."""
        self._held.clear()

    def flush(self) -> None:
        """Return when all lines are durable; raises `DiskFull`, `ArchiveSuspect` or `StoreError`, and none counts."""
        if not self._held:
            return
        lines = b"".join(self._held)
        self._held.clear()
        if self._fd is None:
            self._open()
        assert self._fd is not None
        try:
            _write(self._fd, lines)
        except OSError as error:
            raise self._write_failed(error) from error
        try:
            os.fsync(self._fd)
        except OSError as error:
            # What is on the disk is unknown for good: this file is never written again.
            name = self.path.name if self.path else ""
            self.close()
            raise ArchiveSuspect(
                f"the journal {name} could not be made durable: {error.strerror or error}"
            ) from error
        self._flushed += len(lines)

    def seal(self) -> None:
        """End the file in peace: all that was flushed is settled. What is written later begins a new one."""
        if self._fd is not None and not self._held:
            self.write(SEAL)
            self.flush()
        self.close()

    def close(self) -> None:
        """Let go of the file as it is; what is written later begins a new one."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd, self.path, self._flushed = None, None, 0

    def _open(self) -> None:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            while True:
                self._last = max([self._last, *numbers(self._directory)]) + 1
                path = self._directory / f"journal-{self._last:08d}.jsonl"
                try:
                    self._fd = os.open(path, _CREATE, 0o644)
                    break
                except FileExistsError:
                    continue
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            sync_directory(self._directory)
            self.path = path
        except OSError as error:
            self.close()
            raise unusable(self._directory, error) from error

    def _write_failed(self, error: OSError) -> StoreError:
        assert self._fd is not None
        try:
            os.ftruncate(self._fd, self._flushed)
        except OSError:
            self.close()
        return unusable(self._directory, error)


def numbers(directory: Path) -> list[int]:
    """Numbers of the journals in a directory, in order."""
    try:
        found = [FILE_NAME.fullmatch(name) for name in os.listdir(directory)]  # noqa: PTH208 -- names are wanted
    except FileNotFoundError:
        return []
    return sorted(int(each[1]) for each in found if each)


def path_of(directory: Path, number: int) -> Path:
    """The file of a journal."""
    return directory / f"journal-{number:08d}.jsonl"


def read(directory: Path, number: int) -> Iterator[Placed]:
    """What a journal holds, up to its torn end; nothing when it is gone."""
    try:
        data = path_of(directory, number).read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise unusable(directory, error) from error
    for end, entry in entries(data):
        yield Placed(number * PLACES + end, entry)


def is_sealed(directory: Path, number: int) -> bool:
    """Whether a journal was ended in peace."""
    try:
        with path_of(directory, number).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - len(SEAL)))
            return file.read() == SEAL
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unusable(directory, error) from error


@contextmanager
def complete(directory: Path, number: int) -> Iterator[bool]:
    """Whether a journal has no writer any more; nobody else asks the same of it meanwhile."""
    try:
        fd = os.open(path_of(directory, number), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(fd)


def sync_directory(directory: Path) -> None:
    """Return when the names of new files are on the disk."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def unusable(directory: Path, error: OSError) -> StoreError:
    """What an error of the disk means."""
    if error.errno in _FULL:
        return DiskFull(f"no space is left for records in {directory}", hint="make room and resume")
    return StoreError(f"the records in {directory} cannot be used: {error.strerror or error}")


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
