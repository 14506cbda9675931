"""What a crawl writes its records to; implements `ports.RecordSink`.

Records of a page are in the journal, durable, before the page is settled: a crash loses none. Those of a capture that
did not become the page's own are taken back, at once when the crawl learns of it, or at the next start: `recover`
looks into journals that did not end in peace, once; how far it came is kept in the file `settled`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from crawlspace.parsers import Parsed
from crawlspace.records.entries import Entry, again_line, line_of, void_line
from crawlspace.records.journal import ROTATE_AT, Journal, complete, is_sealed, numbers, read, unusable
from crawlspace.records.manifest import read_manifest
from crawlspace.types import Captured

SETTLED: Final = "settled"


def _nothing() -> None:
    """Nobody asks."""


class Records:
    """The records of one crawl directory, as one process writes them."""

    def __init__(self, directory: Path, *, rotate_at: int = ROTATE_AT, ended: Callable[[], None] = _nothing) -> None:
        """`ended` is called when a journal was ended that can be folded."""
        self._journal = Journal(directory, read_manifest(directory).last, rotate_at)
        self._ended = ended

    async def write(self, captured: Captured, parsed: Sequence[Parsed]) -> None:
        """Take what parsers made of a capture; durable only after `flush`."""
        if self._journal.is_over and not self._journal.dirty:
            # What it holds was settled before the next group came.
            self._journal.seal()
            self._ended()
        for each in parsed:
            self._journal.write(line_of(captured, each))

    async def again(self, captured: Captured) -> None:
        """A visit that found the page as it was: its records were seen again; durable only after `flush`."""
        self._journal.write(again_line(captured))

    async def void(self, captured: Sequence[Captured]) -> None:
        """Captures that did not become their page's own: what was written of them does not count."""
        for each in captured:
            self._journal.write(void_line(each))
        await self.flush()

    async def flush(self) -> None:
        """Return when all is durable; raises `DiskFull` or `ArchiveSuspect`, and nothing since then counts."""
        if self._journal.dirty:
            await asyncio.to_thread(self._journal.flush)

    async def close(self) -> None:
        """Flush and let go; what was written and is not settled is looked at by the next start."""
        try:
            await self.flush()
        finally:
            self._journal.close()

    def seal(self) -> None:
        """Let go when all that was written is settled."""
        self._journal.seal()

    def write_lines(self, lines: Sequence[bytes]) -> None:
        """Take lines that were made elsewhere, durable on return."""
        for line in lines:
            self._journal.write(line)
        self._journal.flush()
        if self._journal.is_over:
            self._journal.seal()


def recover(
    directory: Path, reach: Mapping[str, int], mine: Callable[[str], bool], *, everything: bool = True
) -> int:
    """After a crash, before the first write: take back what was never settled; how many captures.

    `reach` says how far settled captures reach into each file of the archive, `mine` which of its files were written
    by who starts now. With `everything` no other process writes, and the next start need not look again.
    """
    before = settled(directory)
    known = numbers(directory)
    lost: dict[tuple[str, int], Entry] = {}
    for number in known:
        if number > before and not is_sealed(directory, number):
            _look(directory, number, lambda file, end: mine(file) and end > reach.get(file, 0), lost)
    if lost:
        journal = Journal(directory, read_manifest(directory).last)
        for each in lost.values():
            journal.write(void_line(Captured(each.id, each.generation, each.url, each.pointer, each.at)))
        journal.flush()
        journal.seal()
    if everything and known and known[-1] > before:
        _note(directory, known[-1])
    return len(lost)


def settled(directory: Path) -> int:
    """The last journal of which all that counts is known to be settled."""
    try:
        return int((directory / SETTLED).read_text("ascii"))
    except FileNotFoundError:
        return 0
    except (OSError, ValueError) as error:
        raise unusable(directory, error if isinstance(error, OSError) else OSError(str(error))) from error


def _look(
    directory: Path, number: int, is_lost: Callable[[str, int], bool], lost: dict[tuple[str, int], Entry]
) -> None:
    with complete(directory, number) as is_complete:
        if not is_complete:
            return
        for _, entry in read(directory, number):
            key = (entry.file, entry.offset)
            if entry.is_again:
                # The store keeps the pointer of the page's last capture; and it is true, settled or not.
                continue
            if not entry.parser:
                lost.pop(key, None)
            elif is_lost(entry.file, entry.offset + entry.length):
                lost[key] = entry


def _note(directory: Path, number: int) -> None:
    new = directory / f"{SETTLED}.new"
    try:
        new.write_text(str(number), "ascii")
        new.replace(directory / SETTLED)
    except OSError as error:
        raise unusable(directory, error) from error
