"""One archive file while it is written: grows by whole members, and can go back to its last durable length.

A file is in one of two states. *Sound*: everything up to `flushed` is on the disk, and what comes after it can be
given up by `roll_back`. *Suspect*: the system failed to say what is on the disk (a failed fsync may drop pages and
then report success); the file is closed and never written again. Raises `OSError` only.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path

from crawlspace.archive.disk import AppendFile, Disk

_SPILL = 1 << 20
"""Bytes held back before they are handed to the system: a group of a hundred usual pages."""


class Segment:
    """A file of the archive, written by one task at a time."""

    def __init__(self, disk: Disk, path: Path, created_at: int) -> None:
        """Makes the file; raises `FileExistsError` when there is one already."""
        self._file: AppendFile = disk.create(path)
        self._disk = disk
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._named = False
        self.path = path
        self.created_at = created_at
        self.end = 0
        """Length with all that was added."""
        self.flushed = 0
        """Length that survives a loss of power."""
        self.warcinfo = ""
        """Id of its first record."""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def dirty(self) -> bool:
        """Whether something was added since the last `sync`."""
        return self.end > self.flushed

    def add(self, member: bytes) -> None:
        """Put a member at the end; written out when enough has gathered."""
        self._held.append(member)
        self._held_bytes += len(member)
        self.end += len(member)
        if self._held_bytes >= _SPILL:
            self.spill()

    def spill(self) -> None:
        """Hand what was held back to the system."""
        view = memoryview(b"".join(self._held))
        while view:
            took = self._file.write(view)
            if took <= 0:
                raise OSError(errno.EIO, "the disk took nothing and gave no reason")
            view = view[took:]
        self._let_go()

    def sync(self) -> None:
        """Make all that was spilled durable, and the file's name with its first bytes."""
        self._file.sync()
        if not self._named:
            self._disk.sync_directory(self.path.parent)
            self._named = True
        self.flushed = self.end

    def roll_back(self) -> None:
        """Forget what was added since the last `sync`."""
        self._let_go()
        self._file.truncate(self.flushed)
        self.end = self.flushed

    def close(self) -> None:
        """Give the file back. An error says nothing new: what counts was synced before, the rest is suspect."""
        with suppress(OSError):
            self._file.close()

    def _let_go(self) -> None:
        self._held.clear()
        self._held_bytes = 0
