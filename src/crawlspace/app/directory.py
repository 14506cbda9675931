"""The crawl directory: what lies where, and who may write to it.

One process owns it at a time, by a lock that the system drops when the process ends, however it ends. Processes that
the owner starts to help it hold the lock too, so that nobody else comes before the last of them has ended. Reading
verbs need no lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from msgspec import Struct

from crawlspace.archive.columns import DIRECTORY as CAPTURES
from crawlspace.errors import CrawlDirError, CrawlDirInUse, DiskFull
from crawlspace.settings import FILE, Settings, as_toml

DEFAULT = "crawl"
ORPHANS_SECONDS = 10.0
"""Workers whose owner was killed end at once; so long is waited for them."""
LOOK_SECONDS = 0.05


class CrawlDirectory(Struct, frozen=True):
    """The places of one crawl."""

    path: Path
    also: tuple[Path, ...] = ()
    """Directories of other workers of the same crawl, whose archive and records are read too by who only reads."""

    @property
    def beside(self) -> list[CrawlDirectory]:
        """The others."""
        return [CrawlDirectory(path) for path in self.also]

    @property
    def database(self) -> Path:
        """The frontier."""
        return self.path / "frontier.db"

    @property
    def archive(self) -> Path:
        """The WARC files."""
        return self.path / "archive"

    @property
    def captures(self) -> Path:
        """The table of captures."""
        return self.path / CAPTURES

    @property
    def config(self) -> Path:
        """Settings, for people to edit."""
        return self.path / FILE

    @property
    def effective(self) -> Path:
        """The settings of the latest run, all of them."""
        return self.path / "effective.toml"

    @property
    def shared(self) -> Path:
        """Where the frontier lies, when workers share it."""
        return self.path / "frontier.toml"

    @property
    def exists(self) -> bool:
        """True when a crawl has been started here."""
        return self.database.exists() or self.shared.exists()

    def require(self) -> None:
        """Raise `CrawlDirError` unless a crawl has been started here."""
        if not self.exists:
            what = "no crawl has been started in" if self.path.is_dir() else "there is no crawl directory"
            raise CrawlDirError(f"{what} {self.path}", hint=f"start one with: crawlspace crawl URL --dir {self.path}")

    def create(self) -> None:
        """Make the directory; raises `CrawlDirError` when that cannot be."""
        with _translated(self.path):
            self.path.mkdir(parents=True, exist_ok=True)

    def write_config(self, text: str) -> None:
        """Write `crawl.toml` unless there is one."""
        with _translated(self.config):
            if not self.config.exists():
                self.config.write_text(text, encoding="utf-8")

    def write_effective(self, settings: Settings) -> None:
        """Say what this run really uses; replaced in one step."""
        text = "# Written at every start: the settings in effect. Edit crawl.toml instead.\n\n" + as_toml(settings)
        _replace(self.effective, text)

    def write_shared(self, text: str) -> None:
        """Say where the shared frontier lies; replaced in one step."""
        _replace(self.shared, text)

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Own the directory; raises `CrawlDirInUse` when another process does.

        Gives the lock's descriptor, for processes that shall hold it too.
        """
        lock = self.path / "crawl.lock"
        with _translated(lock):
            handle = lock.open("a+", encoding="utf-8")
        with handle:
            if not (_take(handle) or _outlives_its_owner(handle)):
                raise CrawlDirInUse(
                    f"{self.path} is in use by {_owner(handle)}",
                    hint="wait for it to end, stop it with Ctrl-C, or choose another --dir",
                )
            with _translated(lock):
                handle.truncate(0)
                handle.write(f"{_PROCESS}{os.getpid()}\n")
                handle.flush()
            yield handle.fileno()


def _replace(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    with _translated(file):
        new.write_text(text, encoding="utf-8")
        new.replace(file)


_PROCESS = "process "


def _take(handle: IO[str]) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _outlives_its_owner(handle: IO[str]) -> bool:
    """Whether the lock was only held by workers of an owner that was killed, and is ours now that they have ended."""
    deadline = time.monotonic() + ORPHANS_SECONDS
    while not _is_alive(_owner(handle)) and time.monotonic() < deadline:
        if _take(handle):
            return True
        time.sleep(LOOK_SECONDS)
    return False


def _owner(handle: IO[str]) -> str:
    handle.seek(0)
    return handle.readline(100).strip() or "another process"


def _is_alive(owner: str) -> bool:
    """Whether the process of this name runs, as far as one can know."""
    number = owner.removeprefix(_PROCESS)
    if number == owner or not number.isdecimal():
        return True
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"no space left to write {path}", hint="free some and start again") from error
        why = (error.strerror or str(error)).lower()
        raise CrawlDirError(f"{path} cannot be written: {why}", hint="choose another --dir") from error
