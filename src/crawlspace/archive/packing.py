"""How the files of one crawl are packed: gzip members, or Zstandard frames by a dictionary learnt from the crawl.

A dictionary is made once, from the first records that come; until then files have none. Each later file begins with
it, so that it opens by itself. A crawl that goes on takes the dictionary out of its own newest file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from crawlspace.archive import zstd
from crawlspace.archive.disk import Disk
from crawlspace.archive.members import FASTEST, deflate
from crawlspace.archive.settings import ArchiveSettings
from crawlspace.archive.tape import BrokenMember

SAMPLES = 256
SAMPLE_BYTES = 8 << 20
"""Records to learn from: a hundred times the dictionary is what its makers advise."""
SAMPLE_LIMIT = 128 << 10
"""Of one record: what is common stands in the front."""
SMALL = 4096
"""Bytes of a record for which a code of its own takes longer than the packing, and spares a few hundred bytes."""


class Packer(Protocol):
    """Packs the records of one file."""

    head: bytes
    """What the file begins with, before its first record."""

    def pack(self, record: bytes) -> bytes:
        """One member."""
        ...


class Packing(Protocol):
    """Packs the files of one crawl."""

    suffix: str
    """End of the files' names."""

    def packer(self) -> Packer:
        """What packs a new file."""
        ...

    def learn(self, record: bytes) -> None:
        """A record that was written."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether enough was learnt to `train`, after which new files are packed better."""
        ...

    def train(self) -> None:
        """Work out what was learnt; takes a while."""
        ...


class _GzipPacker:
    head = b""

    def __init__(self, level: int) -> None:
        self._level = level
        # Whoever asks for more than the usual wants the space.
        self._small = FASTEST if level <= 1 else level

    def pack(self, record: bytes) -> bytes:
        return deflate(record, self._level if len(record) > SMALL else self._small)


class GzipPacking:
    """Gzip members; there is nothing to learn."""

    suffix = ".warc.gz"
    is_ready = False

    def __init__(self, level: int) -> None:
        self._packer = _GzipPacker(level)

    def packer(self) -> Packer:
        return self._packer

    def learn(self, record: bytes) -> None:
        """Nothing."""

    def train(self) -> None:
        """Nothing."""


class ZstdPacking:
    """Zstandard frames."""

    suffix = ".warc.zst"

    def __init__(self, level: int, dictionary: bytes = b"", *, learns: bool = True) -> None:
        self._level = level
        self._dictionary = dictionary
        self._learns = learns and not dictionary
        self._samples: list[bytes] = []
        self._bytes = 0
        self._packer: zstd.Packer | None = None

    def packer(self) -> Packer:
        # One for all files: to digest a dictionary takes as long as to pack a hundred pages.
        if self._packer is None:
            self._packer = zstd.Packer(self._level, self._dictionary)
        return self._packer

    def learn(self, record: bytes) -> None:
        if self._learns and not self.is_ready:
            self._samples.append(record[:SAMPLE_LIMIT])
            self._bytes += len(self._samples[-1])

    @property
    def is_ready(self) -> bool:
        return self._learns and (len(self._samples) >= SAMPLES or self._bytes >= SAMPLE_BYTES)

    def train(self) -> None:
        self._dictionary = zstd.train(self._samples)
        self._learns = False
        self._samples.clear()
        self._packer = None


def packing_of(settings: ArchiveSettings, dictionary: bytes = b"") -> Packing:
    """As the settings have it; `dictionary` is the one that the crawl has already."""
    if settings.compression == "gzip":
        return GzipPacking(settings.level)
    return ZstdPacking(settings.level, dictionary, learns=settings.dictionary)


def known_dictionary(disk: Disk, directory: Path, crawl: str) -> bytes:
    """That of the newest file of a crawl which has one; a storage that must not be listed is not asked."""
    try:
        names = sorted(disk.names(directory), reverse=True) if disk.grows else []
        ours = (name for name in names if name.startswith(crawl) and name.endswith(ZstdPacking.suffix))
        return next(filter(None, (_dictionary_in(disk, directory / name) for name in ours)), b"")
    except OSError:
        return b""


def _dictionary_in(disk: Disk, path: Path) -> bytes:
    try:
        return zstd.dictionary_of(lambda offset, length: disk.read(path, offset, length))
    except BrokenMember:
        return b""
