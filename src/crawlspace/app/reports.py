"""What the owner of a crawl tells the processes that it starts, and what they tell it: JSON, one message a line.

A job goes down first, then nothing but the wish to stop. Events come up in small bundles, and how it ended at last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import msgspec

from crawlspace import errors, events
from crawlspace.errors import CrawlspaceError, StoreError
from crawlspace.events import Ending, Event
from crawlspace.settings import Settings

STOP = b"stop\n"
LONGEST_LINE = 64 << 20

_EVENTS: dict[str, type] = {kind.__name__: kind for kind in get_args(events.Event)}


class Job(msgspec.Struct, frozen=True):
    """What a process is to do."""

    directory: str
    number: int
    lock: int | None
    """Descriptor of the directory's lock, which it holds too."""
    settings: Settings
    bytes: int | None = None
    """Its share of the budget of bytes."""


class Happened(msgspec.Struct, frozen=True, tag="happened"):
    """Events, each as the name of its kind and its fields."""

    events: list[tuple[str, dict[str, Any]]]

    @classmethod
    def of(cls, seen: Iterable[Event]) -> Happened:
        """These events as a message."""
        return cls([(type(event).__name__, msgspec.to_builtins(event)) for event in seen])

    def __iter__(self) -> Any:
        """The events again."""
        return (msgspec.convert(fields, _EVENTS[kind]) for kind, fields in self.events)


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The process has come to its end."""

    ending: Ending


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The process could not go on, and neither could another in its place."""

    kind: str
    message: str
    hint: str

    @classmethod
    def of(cls, error: CrawlspaceError) -> Failed:
        """This error as a message."""
        return cls(type(error).__name__, error.message, error.hint)

    def error(self) -> CrawlspaceError:
        """The error again."""
        kind = getattr(errors, self.kind, StoreError)
        if not (isinstance(kind, type) and issubclass(kind, CrawlspaceError)) or kind is errors.IllegalMove:
            kind = errors.Bug
        return kind(self.message, hint=self.hint)


Report = Happened | Ended | Failed

_decode = msgspec.json.Decoder(Report).decode


def line(message: Job | Report) -> bytes:
    """A message on a line of its own."""
    return msgspec.json.encode(message) + b"\n"


def read_job(text: bytes) -> Job:
    """A job from its line."""
    return msgspec.json.decode(text, type=Job)


def read_report(text: bytes) -> Report:
    """A report from its line; raises `msgspec.DecodeError` for anything else."""
    return _decode(text)
