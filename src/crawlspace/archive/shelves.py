"""Several archives read as one: what one does not have is looked for in the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from crawlspace.archive.disk import ReadDisk

T = TypeVar("T")


class Shelves:
    """Reads below one directory what lies there or, under the same name, in another. Files are told apart by names
    that end with the number of their worker, so no two directories of a crawl have one name for two files.
    """

    def __init__(self, disk: ReadDisk, directory: Path, others: Sequence[tuple[ReadDisk, Path]]) -> None:
        self._places = [(disk, directory), *others]

    def names(self, directory: Path) -> list[str]:  # noqa: ARG002 -- all are one
        """Names of the files in all of them."""
        return list({name for disk, place in self._places for name in disk.names(place)})

    def size(self, path: Path) -> int:
        """Length of a file in bytes."""
        return self._first(lambda disk, place: disk.size(place / path.name))

    def read(self, path: Path, offset: int, length: int) -> bytes:
        """A slice of a file; shorter only where the file ends."""
        return self._first(lambda disk, place: disk.read(place / path.name, offset, length))

    def _first(self, call: Callable[[ReadDisk, Path], T]) -> T:
        missed: FileNotFoundError | None = None
        for disk, place in self._places:
            try:
                return call(disk, place)
            except FileNotFoundError as error:
                missed = missed or error
        assert missed is not None, "there is at least one place"
        raise missed
