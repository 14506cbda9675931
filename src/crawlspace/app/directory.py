"""The crawl directory: what lies where, and who may write to it.

One process owns it at a time, by a lock that the system drops when the process ends, however it ends. Reading verbs
need no lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from crawlspace.errors import CrawlDirError, CrawlDirInUse, DiskFull
from crawlspace.settings import FILE, Settings, as_toml

DEFAULT = "crawl"


@dataclass(frozen=True, slots=True)
class CrawlDirectory:
    """The places of one crawl."""

    path: Path

    @property
    def database(self) -> Path:
        """The frontier."""
        return self.path / "frontier.db"

    @property
    def archive(self) -> Path:
        """The WARC files."""
        return self.path / "archive"

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
    def locked(self) -> Iterator[None]:
        """Own the directory; raises `CrawlDirInUse` when another process does."""
        lock = self.path / "crawl.lock"
        with _translated(lock):
            handle = lock.open("a+", encoding="utf-8")
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CrawlDirInUse(
                    f"{self.path} is in use by {_owner(handle)}",
                    hint="wait for it to end, stop it with Ctrl-C, or choose another --dir",
                ) from None
            with _translated(lock):
                handle.truncate(0)
                handle.write(f"process {os.getpid()}\n")
                handle.flush()
            yield


def _replace(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    with _translated(file):
        new.write_text(text, encoding="utf-8")
        new.replace(file)


def _owner(handle: IO[str]) -> str:
    handle.seek(0)
    return handle.readline(100).strip() or "another process"


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"no space left to write {path}", hint="free some and start again") from error
        why = (error.strerror or str(error)).lower()
        raise CrawlDirError(f"{path} cannot be written: {why}", hint="choose another --dir") from error
