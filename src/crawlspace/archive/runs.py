"""Sorting more lines than fit into memory: sorted runs in nameless temporary files, merged at the end.

A run is written when its lines fill the room given; runs of one level are merged into one of the next when there are
too many to be open at once. The files have no names, so that nothing is left of them whatever ends the process.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

ROOM = 32 << 20
"""Bytes of lines held in memory."""
FAN = 32
"""Runs of a level before they become one of the next: a million million lines need fewer than 200 open files."""

_LINE_COST = 64
"""What a line takes beside its own bytes."""
_WRITTEN_AT_ONCE = 1000


class Runs:
    """Lines that come in any order and go out sorted by their bytes. Close it, or use it as a context."""

    def __init__(self, directory: Path, *, room: int = ROOM, fan: int = FAN) -> None:
        """Runs are written to the disk that holds `directory`."""
        self._directory = directory
        self._room = room
        self._fan = fan
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._levels: list[list[IO[bytes]]] = []
        self._open = ExitStack()

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, line: bytes) -> None:
        """Take a line, which ends with a newline and holds no other; raises `OSError` when the disk does."""
        self._held.append(line)
        self._held_bytes += len(line) + _LINE_COST
        if self._held_bytes >= self._room:
            self._spill()

    def sorted(self) -> Iterator[bytes]:
        """All lines in order, once; nothing may be added afterwards."""
        self._held.sort()
        runs = [run for level in self._levels for run in level]
        for run in runs:
            run.seek(0)
        return heapq.merge(*runs, self._held)

    def close(self) -> None:
        """Let go of the files."""
        self._open.close()
        self._held.clear()

    def _spill(self) -> None:
        self._held.sort()
        self._keep(self._write(iter(self._held)), 0)
        self._held.clear()
        self._held_bytes = 0

    def _keep(self, run: IO[bytes], level: int) -> None:
        while True:
            if level == len(self._levels):
                self._levels.append([])
            runs = self._levels[level]
            runs.append(run)
            if len(runs) < self._fan:
                return
            for each in runs:
                each.seek(0)
            run = self._write(heapq.merge(*runs))
            for each in runs:
                each.close()
            runs.clear()
            level += 1

    def _write(self, lines: Iterator[bytes]) -> IO[bytes]:
        run = TemporaryFile(dir=self._directory)  # noqa: SIM115 -- stays open beyond this call
        self._open.callback(run.close)
        while batch := list(islice(lines, _WRITTEN_AT_ONCE)):
            run.writelines(batch)
        run.flush()
        return run
