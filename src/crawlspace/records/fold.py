"""From journals to columns: complete journals become a part, parts become fewer, and rows that were replaced go.

Each step writes a new file, makes it durable, and then replaces the manifest; killed anywhere, it is begun again and
ends the same. One process folds at a time. Memory is that of one journal, or of what DuckDB is given.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from crawlspace.records import columns
from crawlspace.records.journal import complete, is_sealed, numbers, path_of, read, unusable
from crawlspace.records.manifest import Manifest, Part, read_manifest, write_manifest
from crawlspace.records.rules import Rules
from crawlspace.records.sink import settled
from crawlspace.records.views import merged

FAN: Final = 8
"""Parts of one level that become one of the next."""
WASTE: Final = 0.5
"""Share of rows that were replaced above which all parts are written anew."""


class Folded(msgspec.Struct, frozen=True):
    """What a fold did."""

    journals: int = 0
    rows: int = 0
    """Rows that came from journals."""
    merged: int = 0
    """Parts that were joined or written anew."""


def fold(directory: Path, rules: Rules, *, tidy: bool = False) -> Folded:
    """Fold what is complete; with `tidy` also write parts anew of which most was replaced, or whose rules are old.

    Does nothing when another process folds. Raises `UsageError` without the extra `records`, or `StoreError`.
    """
    columns.arrow()
    with _alone(directory) as mine:
        if not mine:
            return Folded()
        _sweep(directory)
        journals, rows = _fold_journals(directory, rules)
        count = _merge_level(directory, rules)
        if tidy:
            count += _tidy(directory, rules)
        return Folded(journals, rows, count)


def _fold_journals(directory: Path, rules: Rules) -> tuple[int, int]:
    manifest = read_manifest(directory)
    with ExitStack() as held:
        before = settled(directory)
        waiting = [number for number in numbers(directory) if number not in manifest.folded]
        safe = [number for number in waiting if number <= before or is_sealed(directory, number)]
        ready = [number for number in safe if held.enter_context(complete(directory, number))]
        if not ready:
            return 0, 0
        placed = (each for number in ready for each in read(directory, number))
        part, serial = _write(directory, manifest, columns.tables(placed, rules.canonical), rules)
        folded = msgspec.structs.replace(
            manifest,
            last=max(manifest.last, *ready),
            serial=serial,
            parts=(*manifest.parts, *([part] if part.rows else [])),
            folded=(*manifest.folded, *ready),
        )
        write_manifest(directory, folded)
        for number in ready:
            path_of(directory, number).unlink(missing_ok=True)
        return len(ready), part.rows


def _write(
    directory: Path, manifest: Manifest, batches: Iterator[Any], rules: Rules, level: int = 0
) -> tuple[Part, int]:
    serial = manifest.serial + 1
    name = f"part-{serial:08d}.parquet"
    rows = columns.write(directory / name, batches)
    if not rows:
        (directory / name).unlink(missing_ok=True)
    return Part(name, rows, rules.identifier, level), serial


def _merge_level(directory: Path, rules: Rules) -> int:
    """Join parts while a level has too many of them."""
    count = 0
    while True:
        manifest = read_manifest(directory)
        levels = sorted({part.level for part in manifest.parts})
        full = [level for level in levels if sum(part.level == level for part in manifest.parts) >= FAN]
        if not full:
            return count
        chosen = [part for part in manifest.parts if part.level <= full[0]]
        _replace(directory, manifest, chosen, rules, full[0] + 1)
        count += len(chosen)


def _tidy(directory: Path, rules: Rules) -> int:
    manifest = read_manifest(directory)
    rows = sum(part.rows for part in manifest.parts)
    if not rows:
        return 0
    stale = any(part.rules != rules.identifier for part in manifest.parts)
    live = merged(directory, manifest.parts, manifest.parts, rules).count()
    if not stale and rows - live <= rows * WASTE:
        return 0
    _replace(directory, manifest, manifest.parts, rules, max(part.level for part in manifest.parts))
    return len(manifest.parts)


def _replace(directory: Path, manifest: Manifest, chosen: Sequence[Part], rules: Rules, level: int) -> None:
    batches = merged(directory, manifest.parts, chosen, rules).batches()
    part, serial = _write(directory, manifest, batches, rules, level)
    names = {each.file for each in chosen}
    left = tuple(each for each in manifest.parts if each.file not in names)
    write_manifest(
        directory,
        msgspec.structs.replace(
            manifest,
            serial=serial,
            parts=(*left, *([part] if part.rows else [])),
            dropped=tuple(sorted({*manifest.dropped, *names})),
        ),
    )


def _sweep(directory: Path) -> None:
    """Remove what the manifest of before replaced, and what no manifest ever named."""
    manifest = read_manifest(directory)
    live = {part.file for part in manifest.parts}
    for path in directory.glob("part-*.parquet"):
        if path.name not in live:
            path.unlink(missing_ok=True)
    for number in manifest.folded:
        path_of(directory, number).unlink(missing_ok=True)
    if manifest.folded or manifest.dropped:
        write_manifest(directory, msgspec.structs.replace(manifest, folded=(), dropped=()))


@contextmanager
def _alone(directory: Path) -> Iterator[bool]:
    """Whether this process is the one that folds."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / "fold.lock").open("ab")
    except OSError as error:
        raise unusable(directory, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
