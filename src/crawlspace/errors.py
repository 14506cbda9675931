"""What can go wrong on our side, sorted by who must act.

The user's input is wrong (`UsageError`), a store or disk is unavailable or damaged (`StoreError`), or the
program itself is (`Bug`). What a web server did to us is no exception: it is a value in the fetch result.

The docstring of a class without a message of its own is its message, so that the two cannot drift apart.
"""

from __future__ import annotations


class CrawlspaceError(Exception):
    """Crawlspace could not go on."""

    exit_code = 1

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.hint = hint
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(CrawlspaceError):
    """The command or a value given to it is wrong."""

    exit_code = 2


class ConfigError(UsageError):
    """The configuration is wrong: an unknown key, or a value of the wrong kind or size."""


class CrawlDirError(UsageError):
    """The crawl directory cannot be used: missing, locked, read-only, or made by another version."""


class CrawlDirInUse(CrawlDirError):
    """The crawl directory belongs to another process for now."""


class Rekeyed(CrawlspaceError):
    """The crawl was taken to other URL rules while this process worked on it."""

    exit_code = 3


class OthersAtWork(CrawlDirInUse):
    """Other workers are at this crawl for now."""


class StoreError(CrawlspaceError):
    """The frontier's store is unavailable."""


class StoreDamaged(StoreError):
    """The store or the archive contradicts itself."""

    exit_code = 7


class DiskFull(StoreError):
    """No space is left on the disk; the crawl can be resumed once there is."""

    exit_code = 5


class ArchiveAway(DiskFull):
    """The storage of the archive cannot be reached; the crawl can be resumed once it can."""


class LeftOut(CrawlspaceError):
    """It is done, without what lies in the archives of other workers."""

    exit_code = 8


class ArchiveSuspect(StoreError):
    """An archive file could not be made durable: what was appended since its last flush must be written again."""


class Bug(CrawlspaceError):
    """Crawlspace contradicts itself; please report this."""


class IllegalMove(Bug):
    """A URL was asked to make a move that the table of states forbids."""

    def __init__(self, state: str, event: str) -> None:
        super().__init__(f"a URL in state {state!r} cannot take event {event!r}")
