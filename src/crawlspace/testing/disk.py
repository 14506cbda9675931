"""A disk that fails when told to, and one that loses power: real files underneath, so that readers see real bytes.

Every call that changes something is a *step*, counted from 1. `Fault` says at which steps the disk refuses and how.
`lose_power` leaves what a real disk may leave: each file whole up to its last sync, then any part of what came after,
some of it zeros; a file whose directory was not synced since is gone or not.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from crawlspace.archive.disk import AppendFile, Disk, RealDisk
from crawlspace.clock import Chance


class Fault(Struct, frozen=True):
    """Which steps fail, and how."""

    step: int
    """The first that fails."""
    error: int = errno.EIO
    """An `errno`; 0 makes a write take only a part, which is no failure."""
    taken: int = 0
    """Bytes that a failing or short write takes first."""
    lasting: bool = False
    """All later steps fail too, until the fault is lifted."""

    def strikes(self, step: int) -> bool:
        return step == self.step or (self.lasting and step > self.step)


class FaultyDisk:
    """Wraps a disk; `fault` may be set and lifted at any time."""

    def __init__(self, fault: Fault | None = None, inner: Disk | None = None) -> None:
        self.fault = fault
        self.steps = 0
        """Changes asked for so far."""
        self._inner: Disk = inner or RealDisk()
        self.grows = self._inner.grows
        self._synced: dict[Path, int] = {}
        self._unnamed: set[Path] = set()

    def make_directory(self, path: Path) -> None:
        self.step()
        self._inner.make_directory(path)

    def create(self, path: Path) -> AppendFile:
        self.step()
        file = self._inner.create(path)
        self._synced[path] = 0
        self._unnamed.add(path)
        return _FaultyFile(self, file, path)

    def names(self, directory: Path) -> list[str]:
        return self._inner.names(directory)

    def size(self, path: Path) -> int:
        return self._inner.size(path)

    def read(self, path: Path, offset: int, length: int) -> bytes:
        return self._inner.read(path, offset, length)

    def cut(self, path: Path, size: int) -> None:
        self.step()
        self._inner.cut(path, size)
        self._synced[path] = size

    def remove(self, path: Path) -> None:
        self.step()
        self._inner.remove(path)
        self._synced.pop(path, None)
        self._unnamed.discard(path)

    def join(self, path: Path, parts: Sequence[Path]) -> None:
        self.step()
        self._inner.join(path, parts)
        self._synced[path] = self._inner.size(path)
        self._unnamed.add(path)

    def sync_directory(self, path: Path) -> None:
        self.step()
        self._inner.sync_directory(path)
        self._unnamed = {file for file in self._unnamed if file.parent != path}

    def free(self, path: Path) -> int:
        return self._inner.free(path)

    def step(self) -> None:
        """Count a change; raises `OSError` when it is to fail."""
        fault = self.next_fault()
        if fault and fault.error:
            raise OSError(fault.error, os.strerror(fault.error))

    def next_fault(self) -> Fault | None:
        """Count a change; the fault that strikes it."""
        self.steps += 1
        return self.fault if self.fault and self.fault.strikes(self.steps) else None

    def synced(self, path: Path) -> None:
        """Told by a file: all of it is durable."""
        self._synced[path] = self._inner.size(path)

    def lose_power(self, chance: Chance) -> None:
        """Leave in the real files what a loss of power may leave. The disk's handles must not be used again."""
        for path, durable in sorted(self._synced.items()):
            if path in self._unnamed and chance.random() < 0.5:
                self._inner.remove(path)
                continue
            kept = chance.randint(durable, max(durable, self._inner.size(path)))
            zeros_from = chance.randint(durable, kept)
            self._inner.cut(path, zeros_from)
            if chance.random() < 0.5:
                # The length reached the disk before the bytes did.
                os.truncate(path, kept)


class _FaultyFile:
    """A file whose every change is a step of its disk."""

    __slots__ = ("_disk", "_file", "_path")

    def __init__(self, disk: FaultyDisk, file: AppendFile, path: Path) -> None:
        self._disk = disk
        self._file = file
        self._path = path

    def write(self, data: bytes | memoryview) -> int:
        fault = self._disk.next_fault()
        if fault is None:
            return self._file.write(data)
        taken = self._file.write(data[: fault.taken]) if fault.taken else 0
        if fault.error:
            raise OSError(fault.error, os.strerror(fault.error))
        return taken

    def truncate(self, size: int) -> None:
        self._disk.step()
        self._file.truncate(size)

    def sync(self) -> None:
        self._disk.step()
        self._file.sync()
        self._disk.synced(self._path)

    def close(self) -> None:
        self._file.close()
