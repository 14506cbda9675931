"""The few things the archive asks of a disk, so that a test can make any one of them fail.

Every call raises `OSError` and nothing else; what an error means is decided by who called. Nothing here follows a
symbolic link at the end of a path, and nothing is ever opened for writing that was there before: a file is made
once, appended to by the handle that made it, and afterwards only cut or read.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}\.warc(?:\.gz|\.zst)?")
"""Names of archive files: what does not have this form is never opened as one."""

_MODE = 0o644
_PIECE = 1 << 20
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""Not blocking matters for what is no file: a named pipe in the directory must not hang a reader."""


class Unreachable(OSError):
    """A remote disk did not answer, or not as it should."""


class AppendFile(Protocol):
    """A file that grows at its end."""

    def write(self, data: bytes | memoryview) -> int:
        """Append; the number of bytes taken, which may be fewer than given."""
        ...

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes; the next write goes there."""
        ...

    def sync(self) -> None:
        """Return when what was written is on the disk."""
        ...

    def close(self) -> None:
        """Give the file back; the last call."""
        ...


class ReadDisk(Protocol):
    """What those need who only read."""

    def names(self, directory: Path) -> list[str]:
        """Names of the plain files in `directory`, in no order."""
        ...

    def size(self, path: Path) -> int:
        """Length of a file in bytes."""
        ...

    def read(self, path: Path, offset: int, length: int) -> bytes:
        """A slice of a file; shorter only where the file ends."""
        ...


class Disk(ReadDisk, Protocol):
    """A directory's worth of files."""

    grows: bool
    """Whether a file can be added to when it was synced."""

    def make_directory(self, path: Path) -> None:
        """Make the directory and its parents unless they are there."""
        ...

    def create(self, path: Path) -> AppendFile:
        """A new empty file; `FileExistsError` when anything has that name."""
        ...

    def cut(self, path: Path, size: int) -> None:
        """Cut a file that nobody writes; durable on return."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file."""
        ...

    def join(self, path: Path, parts: Sequence[Path]) -> None:
        """Make a new file of others, put one behind the other; durable on return. In bounded memory."""
        ...

    def sync_directory(self, path: Path) -> None:
        """Return when the names of new and removed files are on the disk."""
        ...

    def free(self, path: Path) -> int:
        """Bytes that may still be written to the disk that holds `path`."""
        ...


class _RealFile:
    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def write(self, data: bytes | memoryview) -> int:
        return os.write(self._fd, data)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        os.fsync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


class RealDisk:
    """The operating system's own files."""

    grows = True

    def make_directory(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    def create(self, path: Path) -> AppendFile:
        return _RealFile(os.open(path, _CREATE, _MODE))

    def names(self, directory: Path) -> list[str]:
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]

    def size(self, path: Path) -> int:
        return path.lstat().st_size

    def read(self, path: Path, offset: int, length: int) -> bytes:
        fd = os.open(path, _READ)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise FileNotFoundError(f"{path} is no plain file")
            return _read_fully(fd, offset, length)
        finally:
            os.close(fd)

    def cut(self, path: Path, size: int) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.ftruncate(fd, size)
            os.fsync(fd)
        finally:
            os.close(fd)

    def remove(self, path: Path) -> None:
        path.unlink()

    def join(self, path: Path, parts: Sequence[Path]) -> None:
        with os.fdopen(os.open(path, _CREATE, _MODE), "wb", buffering=0) as whole:
            for part in parts:
                with os.fdopen(os.open(part, _READ), "rb", buffering=0) as file:
                    shutil.copyfileobj(file, whole, _PIECE)
            os.fsync(whole.fileno())

    def sync_directory(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def free(self, path: Path) -> int:
        return shutil.disk_usage(path).free


def _read_fully(fd: int, offset: int, length: int) -> bytes:
    pieces = []
    while length > 0 and (piece := os.pread(fd, length, offset)):
        pieces.append(piece)
        offset += len(piece)
        length -= len(piece)
    return b"".join(pieces)
