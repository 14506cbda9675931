"""What an export is asked for, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum, unique
from pathlib import Path

from msgspec import Struct

from crawlspace.app.snapshot import Elsewhere
from crawlspace.errors import UsageError
from crawlspace.exports.pipeline import Stage
from crawlspace.states import TERMINAL, UrlState

DAMAGES_KEPT = 1000
"""Captures that could not be read and are named; the rest is counted."""


@unique
class What(StrEnum):
    """What an export has a row for."""

    URLS = "urls"
    """Each URL known, in any state."""
    CAPTURES = "captures"
    """Each URL with a capture."""
    LINKS = "links"
    """Each link on the captured pages, and each redirect."""
    PAGES = "pages"
    """Each page that was read whole, with its title and its text."""
    RECORDS = "records"
    """Each thing that a parser found, as it was seen last."""


@unique
class Format(StrEnum):
    """How it is written; also the suffix of the file's name. Longer suffixes stand before those they end in."""

    JSON_LINES_ZSTD = "jsonl.zst"
    JSON_LINES_GZIP = "jsonl.gz"
    JSON_LINES = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    SQLITE = "sqlite"
    LIST = "txt"
    GRAPHML = "graphml"
    SITEMAP = "xml"
    CDXJ = "cdxj"
    WET = "wet.gz"
    WAT = "wat.gz"
    WARC = "warc.gz"
    WACZ = "wacz"

    @property
    def of_captures(self) -> bool:
        """It holds captures, and nothing else."""
        return self in _OF_CAPTURES

    @property
    def of_rows(self) -> bool:
        """It holds rows, of whatever."""
        return self in _OF_ROWS


_OF_CAPTURES = frozenset({Format.CDXJ, Format.WARC, Format.WACZ, Format.WET, Format.WAT})
_OF_ROWS = frozenset(
    {
        *(Format.JSON_LINES, Format.JSON_LINES_ZSTD, Format.JSON_LINES_GZIP),
        *(Format.CSV, Format.PARQUET, Format.SQLITE, Format.LIST),
    }
)
_ALL_STATES = frozenset(UrlState)


class Wanted(Struct, frozen=True):
    """What is to be exported, and how."""

    format: Format
    what: What = What.URLS
    states: frozenset[UrlState] = _ALL_STATES
    host: str | None = None
    guard: bool = True
    """Texts in CSV are written so that no spreadsheet computes them."""
    unique: bool = False
    """Of pages that say the same only the one that represents them."""
    stages: Sequence[Stage] = ()
    """What rows go through on their way."""
    parser: str | None = None
    """Records of this parser only."""
    base: str | None = None
    """Address of the directory in which a sitemap's parts will lie."""

    @property
    def telling(self) -> frozenset[UrlState]:
        """Those of the states in which a URL can have something to tell: the others need not be read."""
        if self.format is Format.SITEMAP or self.what is What.PAGES:
            return self.states & {UrlState.DONE}
        if self.what is What.LINKS:
            return self.states & {UrlState.DONE, UrlState.STORED, UrlState.REDIRECTED}
        return self.states & TERMINAL if self.what is What.CAPTURES else self.states

    def require(self) -> None:
        """Raise `UsageError` for what has no such form."""
        if self.format.of_captures and self.what is not What.CAPTURES:
            raise UsageError(f"{self.format} holds captures, not {self.what}", hint="leave out --what")
        if self.format is Format.GRAPHML and self.what is not What.LINKS:
            raise UsageError(f"a graph has links, not {self.what}", hint="leave out --what")
        if self.format is Format.SITEMAP and self.what is not What.URLS:
            raise UsageError(f"a sitemap has URLs, not {self.what}", hint="leave out --what")
        if self.format is Format.LIST and self.what is What.LINKS:
            raise UsageError("a list has one column, a link has two ends", hint="use .csv or .jsonl")
        if self.what is What.RECORDS and (self.states != _ALL_STATES or self.unique):
            raise UsageError("records have no state, and are there once", hint="leave out --state and --unique")
        if self.parser is not None and self.what is not What.RECORDS:
            raise UsageError("only records have a parser", hint="say --what records")
        if self.stages and not self.format.of_rows:
            raise UsageError(f"{self.format} has no rows that a pipeline could change", hint="use .jsonl or .csv")


@dataclass(slots=True)
class Exported:
    """What became of an export."""

    rows: int = 0
    """Rows, lines or captures written."""
    damages: list[str] = field(default_factory=list)
    """What could not be read, in words, no more than `DAMAGES_KEPT`."""
    damaged: int = 0
    elsewhere: Elsewhere = field(default_factory=Elsewhere)
    """Captures in the archives of other workers, which were left out."""
    caution: str = ""
    """Why there may be less than it seems."""
    dropped: Counter[str] = field(default_factory=Counter)
    """What the pipeline dropped, by reason."""
    failed: int = 0
    """Rows that a stage of the pipeline failed on; they are told among the damages."""

    def lost(self, why: str) -> None:
        """Count a capture that could not be read."""
        self.damaged += 1
        self._tell(why)

    def broke(self, why: str) -> None:
        """Count a row that the pipeline failed on."""
        self.failed += 1
        self._tell(why)

    def _tell(self, why: str) -> None:
        if len(self.damages) < DAMAGES_KEPT:
            self.damages.append(why)


def format_of(path: Path) -> Format:
    """The format that a file's name asks for; raises `UsageError` when it asks for none."""
    for each in Format:
        if path.name.lower().endswith(f".{each}"):
            return each
    known = ", ".join(f".{each}" for each in Format)
    raise UsageError(f"the name {path.name!r} tells no format", hint=f"end it in one of {known}, or use --format")


def usual(form: Format) -> What:
    """What a format holds when nothing else is said."""
    if form.of_captures:
        return What.CAPTURES
    return What.LINKS if form is Format.GRAPHML else What.URLS
