"""What a person asks of a crawl while it runs, as values that are written down and answered.

A verb writes one of these into the crawl's store; whoever owns the crawl carries it out and writes the answer. The
text is JSON with the command's name under `type`, and is read with the same care as any other input.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, unique
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct

from crawlspace.errors import StoreDamaged
from crawlspace.policy.patterns import Patterns
from crawlspace.policy.priority import LAST

SEEDS_AT_ONCE = 1000
"""Seeds that one command carries."""
PATTERN_LIMIT = 2000

_Pattern = Annotated[str, Meta(min_length=1, max_length=PATTERN_LIMIT)]


@unique
class Hold(StrEnum):
    """What a person says of a host that is not to be visited."""

    PAUSED = "paused"
    BLOCKED = "blocked"


class Asked(Struct, frozen=True):
    """A command as it is kept, and how far it is."""

    number: int
    command: str
    progress: str = ""
    """How far it is, or its answer when it is done; the affair of whoever carries it out."""
    done: bool = False


class News(Struct, frozen=True):
    """What whoever works on a crawl must hear of, also when others brought it about."""

    edition: int
    """Grows with each change; what was heard of has no greater one."""
    facts: Mapping[str, str]
    """All facts of the crawl: its scope as it has grown and what it ignores are among them."""
    held: frozenset[str]
    """Names of leased hosts that are paused or blocked: their visits are to end."""


class Letter(NamedTuple):
    """What a selection asks of a dead letter."""

    id: int
    error: str | None
    status: int | None
    host: str
    url: str
    at: int
    """When it died."""


class Selection(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which dead letters are meant: those for which all that is set holds."""

    error: str | None = None
    """Class, such as `http_404`."""
    status: int | None = None
    host: str | None = None
    pattern: _Pattern | None = None
    """RE2, or a glob behind `glob:`, on the fetch URL."""
    before: int | None = None
    """Died before this time, in milliseconds since 1970 UTC."""
    since: int | None = None
    """Died at this time or later."""
    ids: tuple[int, ...] = ()

    def patterns(self) -> Patterns:
        """The pattern, ready to be asked; raises `ConfigError` when it cannot be read."""
        return Patterns.of(() if self.pattern is None else (self.pattern,), "pattern")

    def takes(self, letter: Letter, patterns: Patterns) -> bool:
        """Whether this dead letter is meant; `patterns` are the selection's own."""
        return (
            (not self.ids or letter.id in self.ids)
            and self.error in (None, letter.error)
            and self.status in (None, letter.status)
            and self.host in (None, letter.host)
            and (self.before is None or letter.at < self.before)
            and (self.since is None or letter.at >= self.since)
            and (not patterns.texts or patterns.match(letter.url))
        )


class Seed(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A URL to begin with, and how it is asked for."""

    url: str
    label: str | None = None
    meta: dict[str, object] = {}
    method: str = "GET"
    body: bytes = b""
    content_type: str = ""


class Pause(Struct, frozen=True, forbid_unknown_fields=True, tag="pause"):
    """Ask a host for nothing until it is resumed; its URLs stay queued."""

    host: str


class Block(Struct, frozen=True, forbid_unknown_fields=True, tag="block"):
    """Refuse a host's URLs, those that are queued and those found later."""

    host: str


class Resume(Struct, frozen=True, forbid_unknown_fields=True, tag="resume"):
    """Visit a host again that was paused or blocked."""

    host: str


class Requeue(Struct, frozen=True, forbid_unknown_fields=True, tag="requeue"):
    """Queue dead letters again, with all their tries."""

    selection: Selection


class Drop(Struct, frozen=True, forbid_unknown_fields=True, tag="drop"):
    """Take dead letters off the list for good: they stay known and are not asked for again."""

    selection: Selection


class Inject(Struct, frozen=True, forbid_unknown_fields=True, tag="inject"):
    """Add seeds."""

    seeds: Annotated[list[Seed], Meta(max_length=SEEDS_AT_ONCE)]


class Ignore(Struct, frozen=True, forbid_unknown_fields=True, tag="ignore"):
    """Refuse what fits a pattern from now on, and clean the queue of it."""

    pattern: _Pattern


class Heed(Struct, frozen=True, forbid_unknown_fields=True, tag="heed"):
    """Ignore a pattern no longer, and queue what only it had refused."""

    pattern: _Pattern


class Prioritize(Struct, frozen=True, forbid_unknown_fields=True, tag="prioritize"):
    """Give queued URLs that fit a pattern another front class."""

    pattern: _Pattern
    front_class: Annotated[int, Meta(ge=0, le=LAST)]


class Rejudge(Struct, frozen=True, forbid_unknown_fields=True, tag="rejudge"):
    """Judge all waiting and refused URLs by the settings of now."""

    why: str


Command = Pause | Block | Resume | Requeue | Drop | Inject | Ignore | Heed | Prioritize | Rejudge

_decoder = msgspec.json.Decoder(Command)


def encode(command: Command) -> str:
    """The command as it is stored."""
    return msgspec.json.encode(command).decode()


def decode(text: str) -> Command:
    """A stored command; raises `StoreDamaged` when it is none."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise StoreDamaged(f"a command in the store cannot be read: {error}") from error
