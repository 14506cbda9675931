"""What a frontier keeps of the content of pages, as rows; and the keys under which it is looked up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple

from msgspec import Struct

from crawlspace.types import (
    Claim,
    Claimed,
    Fingerprints,
    Finished,
    PageContent,
    Reason,
    Settlement,
    Verdict,
)

TEXT_BYTES: Final = 16
"""Of a text's digest: enough to tell all texts there are from each other."""
_CUT: Final = frozenset({Reason.DEPTH, Reason.HOST_BUDGET})
_BITS: Final = 1 << 63
_KNOWN: Final = Claimed.KNOWN
_NEW: Final = Claimed.NEW


class Arrival(NamedTuple):
    """A page that a transaction has made done."""

    id: int
    hid: int
    fingerprints: Fingerprints | None
    is_copy: bool
    """Another URL had its bytes first."""
    links: int = 0
    """URLs that it names."""


class Found(Struct, frozen=True):
    """What the links of a transaction came to, by the page that has them."""

    new: Mapping[int, Sequence[Claim]]
    """Those that were not known, and are queued now."""
    cut: Collection[int]
    """Pages of which some links were refused for depth or budget."""
    unknown: Mapping[int, int] = {}
    """How many were not known, refused ones too."""

    @classmethod
    def of(cls, claims: Sequence[Claim], answers: Sequence[Claimed], refused: Mapping[bytes, Reason]) -> Found:
        """`refused` is what the frontier itself turned away, by key."""
        new: dict[int, list[Claim]] = {}
        cut: set[int] = set()
        unknown: dict[int, int] = {}
        for claim, answer in zip(claims, answers, strict=True):
            parent = claim.parent
            if parent is None:
                continue
            reason = claim.refusal
            if reason is None and refused:
                reason = refused.get(claim.address.key)
            if answer is not _KNOWN:
                unknown[parent] = unknown.get(parent, 0) + 1
            if reason is None and answer is _NEW:
                queued = new.get(parent)
                if queued is None:
                    queued = new[parent] = []
                queued.append(claim)
            elif reason in _CUT or (reason is None and answer is Claimed.OVER_BUDGET):
                cut.add(parent)
        return cls(new, cut, unknown)


class PageRow(NamedTuple):
    """A page that is done. Numbers of 64 bits have a sign, as databases want them."""

    id: int
    text: bytes
    follow: int
    near: int | None
    kin: int | None
    length: int
    language: str
    verdict: int
    copy_of: int | None
    grp: int | None
    stopped_by: int | None
    sign: str | None
    whole: bool
    """All its links were claimed."""


@dataclass(slots=True)
class ShapeRow:
    """Pages of one host and shape. `latest` holds what the last different ones said, 4 bytes each."""

    pages: int = 0
    new: int = 0
    exact: int = 0
    near: int = 0
    dry: int = 0
    """Pages in a row that said nothing new."""
    run: int = 0
    """Those of them that led only to more of the same."""
    last: int | None = None
    """The last page of the run."""
    latest: bytes = b""


@dataclass(slots=True)
class HostRow:
    """What a host's pages brought. `pairs`: see `PAIRS`."""

    pages: int = 0
    exact: int = 0
    near: int = 0
    shapes: int = 0
    pairs: int = 0
    links: int = 0
    """URLs that its pages named."""
    known: int = 0
    """Those of them that were known already."""


@dataclass(slots=True)
class YieldRow:
    """What the pages of one host and hour brought."""

    pages: int = 0
    copies: int = 0
    exact: int = 0
    near: int = 0
    links: int = 0
    known: int = 0


@dataclass(slots=True)
class Known:
    """What was read ahead."""

    said: dict[int, int] = field(default_factory=dict)
    """Who said a text first, by the text's key; or a text with its links, by theirs."""
    rows: dict[int, bytes] = field(default_factory=dict)
    """Rows of the index of near-duplicates."""
    shapes: dict[tuple[int, str], ShapeRow] = field(default_factory=dict)
    hosts: dict[int, HostRow] = field(default_factory=dict)
    pages: dict[int, PageRow] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    """Which of these pages are done."""


@dataclass(slots=True)
class Written:
    """What judging has changed."""

    said: dict[int, int] = field(default_factory=dict)
    rows: set[int] = field(default_factory=set)
    shapes: set[tuple[int, str]] = field(default_factory=set)
    hosts: set[int] = field(default_factory=set)
    pages: set[int] = field(default_factory=set)
    yields: dict[tuple[int, int], YieldRow] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)


def text_key(text: bytes, language: str) -> int:
    """The number under which a text in a language is looked up: language versions stay apart."""
    return number_of(blake2b(text + language.encode("utf-8", "replace"), digest_size=8).digest())


def signed(number: int) -> int:
    """64 bits as a number with a sign."""
    return number - 2 * _BITS if number >= _BITS else number


def unsigned(number: int) -> int:
    """And back."""
    return number + 2 * _BITS if number < 0 else number


def number_of(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "big", signed=True)


def content_of(row: PageRow) -> PageContent:
    """A row for those who ask."""
    return PageContent(
        id=row.id,
        text=row.text,
        length=row.length,
        simhash=None if row.near is None else unsigned(row.near),
        kin=None if row.kin is None else unsigned(row.kin),
        language=row.language,
        verdict=Verdict(row.verdict),
        copy_of=row.copy_of,
        group=row.grp,
        stopped_by=row.stopped_by,
        sign=row.sign,
    )


def finished(settlements: Sequence[Settlement], done: Mapping[int, bool]) -> list[Arrival]:
    """The pages that these settlements have finished, the last of each URL.

    `done` holds the numbers of those that are done with a page, and whether another URL had its bytes first.
    """
    found = {
        settlement.url.id: Arrival(
            settlement.url.id,
            settlement.hid,
            settlement.evidence.fingerprints,
            done[settlement.url.id],
            settlement.links,
        )
        for settlement in settlements
        if isinstance(settlement, Finished) and settlement.url.id in done
    }
    return list(found.values())
