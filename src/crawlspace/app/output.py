"""Where a command's result goes: a file that appears under its name when it is whole, or standard output.

Nothing is written over unless that was asked for. While it grows, a file has another name in the same directory; a
kill leaves that one behind, with `.partial` at its end, and never half a file under the right name.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkstemp
from typing import Any, BinaryIO, NamedTuple, cast

from crawlspace.archive.objects import ObjectDisk
from crawlspace.errors import DiskFull, UsageError

STANDARD = Path("-")
"""The name that means standard output."""
PARTIAL = ".partial"
REMOTE = "s3://"

_MODE = 0o644
_OBEYED = re.compile("[^\t\n\r -~\xa0-\u061b\u061d-\u200d\u2010-\u2027\u202f-\u2065\u206a-\U0010ffff]")
"""Controls, and marks that turn the direction of a text."""


@contextmanager
def output(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """Where to write what will be at `path`; raises `UsageError` when something is there and `force` is not given.

    What is raised inside leaves nothing behind, and what was there before as it was. A disk that is full raises
    `DiskFull`.
    """
    if path == STANDARD:
        with _translated(path):
            yield _standard()
            sys.stdout.buffer.flush()
        return
    with output_path(path, force=force) as partial, _translated(path), partial.open("wb") as file:
        yield file


@contextmanager
def output_path(path: Path, *, force: bool = False) -> Iterator[Path]:
    """An empty file for others to fill, which will be at `path`; as `output`. Standard output gets it whole."""
    with partials(path, force=force) as grow:
        partial = grow(path)
        with _translated(path):
            yield partial


class Target(NamedTuple):
    """Where a result goes."""

    path: Path
    force: bool = False
    """Write over what is there."""

    def stream(self) -> AbstractContextManager[BinaryIO]:
        """See `output`."""
        return output(self.path, force=self.force)

    def file(self) -> AbstractContextManager[Path]:
        """See `output_path`."""
        return output_path(self.path, force=self.force)


@contextmanager
def reached(text: str, *, force: bool = False) -> Iterator[Target]:
    """Where the result goes that `text` names: a path, `-`, or an object as `s3://bucket/key`.

    What is to be an object is made in a temporary directory, and put into its place when it is whole.
    """
    if not text.startswith(REMOTE):
        yield Target(Path(text), force)
        return
    prefix, _, name = text.rpartition("/")
    if not name or len(prefix) <= len(REMOTE):
        raise UsageError(f"{text} names no object", hint="write s3://bucket/name")
    storage = ObjectDisk(prefix, os.environ)
    with _translated(text):
        if not force:
            storage.require_free(name)
        with TemporaryDirectory(prefix="crawlspace-") as folder:
            target = Path(folder, name)
            yield Target(target)
            # The parts of a sitemap before the index that names them.
            for file in sorted(Path(folder).iterdir(), key=lambda each: (each == target, each)):
                storage.publish(file, force=force)


class Partials:
    """Files that grow beside their names, and get them together."""

    def __init__(self, *, force: bool) -> None:
        self._force = force
        self._grown: list[tuple[Path, Path]] = []

    def __call__(self, path: Path) -> Path:
        """A new empty file that is to be at `path`."""
        if not self._force and path != STANDARD:
            _require_free(path)
        with _translated(path):
            handle, name = mkstemp(PARTIAL, path.name + ".", _directory(path))
        os.close(handle)
        self._grown.append((Path(name), path))
        return Path(name)

    def rename(self, partial: Path, path: Path) -> None:
        """Let a file that grows get another name."""
        if not self._force and path != STANDARD:
            _require_free(path)
        self._grown = [(each, path if each == partial else name) for each, name in self._grown]

    def publish(self) -> None:
        """Give all files their names, in the order in which they were begun."""
        for partial, path in self._grown:
            with _translated(path):
                _settle(partial)
                if path == STANDARD:
                    _print(partial)
                else:
                    _publish(partial, path, force=self._force)

    def remove(self) -> None:
        """Leave nothing under any other name."""
        for partial, _ in self._grown:
            partial.unlink(missing_ok=True)


@contextmanager
def partials(path: Path, *, force: bool = False) -> Iterator[Partials]:
    """Files that become visible together at the end, or not at all; nothing may be at `path` from the start."""
    if not force and path != STANDARD:
        _require_free(path)
    growing = Partials(force=force)
    try:
        yield growing
        growing.publish()
    finally:
        growing.remove()


def directory_of(path: Path) -> Path:
    """The directory in which a file at `path` is made; the current one for standard output."""
    return Path.cwd() if path == STANDARD else path.absolute().parent


def _directory(path: Path) -> Path:
    return Path(tempfile.gettempdir()) if path == STANDARD else path.parent


def _settle(partial: Path) -> None:
    """Make a file durable, and as readable as any other."""
    handle = os.open(partial, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(handle)
        os.fchmod(handle, _MODE & ~_umask())
    finally:
        os.close(handle)


def _print(partial: Path) -> None:
    with partial.open("rb") as file:
        shutil.copyfileobj(file, _standard())
    sys.stdout.buffer.flush()


def _standard() -> BinaryIO:
    """Standard output; a terminal gets no controls, since it would obey them, and pages hold what they like."""
    return cast("BinaryIO", _Terminal()) if sys.stdout.isatty() else sys.stdout.buffer


class _Terminal(io.RawIOBase):
    """Standard output without what a terminal obeys."""

    def __init__(self) -> None:
        super().__init__()
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Write bytes, of whatever kind."""
        plain = bytes(data)
        sys.stdout.buffer.write(_OBEYED.sub("\ufffd", self._decode(plain)).encode())
        return len(plain)


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
def _translated(path: Path | str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except FileExistsError as error:
        raise UsageError(
            f"{path} is there already", hint="choose another name, or write over it with --force"
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"no space left to write {path}", hint="free some and start again") from error
        raise UsageError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from error
