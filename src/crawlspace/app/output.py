"""Where a command's result goes: a file that appears under its name when it is whole, or standard output.

Nothing is written over unless that was asked for. While it grows, a file has another name in the same directory; a
kill leaves that one behind, with `.partial` at its end, and never half a file under the right name.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkstemp
from typing import BinaryIO

from crawlspace.errors import DiskFull, UsageError

STANDARD = Path("-")
"""The name that means standard output."""
PARTIAL = ".partial"

_MODE = 0o644


@contextmanager
def output(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """Where to write what will be at `path`; raises `UsageError` when something is there and `force` is not given.

    What is raised inside leaves nothing behind, and what was there before as it was. A disk that is full raises
    `DiskFull`.
    """
    if path == STANDARD:
        with _translated(path):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    if not force:
        _require_free(path)
    with _translated(path):
        handle, name = mkstemp(PARTIAL, path.name + ".", path.parent)
    partial = Path(name)
    try:
        with _translated(path), os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(handle)
            os.fchmod(handle, _MODE & ~_umask())
        with _translated(path):
            _publish(partial, path, force=force)
    finally:
        partial.unlink(missing_ok=True)


def directory_of(path: Path) -> Path:
    """The directory in which a file at `path` is made; the current one for standard output."""
    return Path.cwd() if path == STANDARD else path.absolute().parent


def _require_free(path: Path) -> None:
    if path.is_symlink() or path.exists():
        raise UsageError(f"{path} is there already", hint="choose another name, or write over it with --force")


def _publish(partial: Path, path: Path, *, force: bool) -> None:
    if force:
        partial.replace(path)
        return
    try:
        # A link is never made over a file that somebody else has made meanwhile.
        path.hardlink_to(partial)
    except FileExistsError:
        _require_free(path)
        raise
    except OSError:
        # This disk knows no links.
        _require_free(path)
        partial.rename(path)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"no space left to write {path}", hint="free some and start again") from error
        raise UsageError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from error
