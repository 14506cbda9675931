"""One WARC record as bytes, and back (WARC 1.1, sections 4 to 6). Pure.

A record is a version line, named fields, an empty line, a block of exactly Content-Length bytes, and two empty
lines. Nothing that comes from outside can add a field: values lose their control characters on the way in. On the way
out nothing is taken on trust: lengths must fit and a digest that is there must be right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b, sha1
from typing import NamedTuple

HEAD_LIMIT = 64 * 1024
"""Bytes of version line and fields: far above what anybody writes; a limit for hostile files."""

_VERSION = re.compile(r"WARC/(?:0\.1[78]|1\.[01])")
_LENGTH = re.compile(r"[0-9]{1,18}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_SPELLED = re.compile(r"[a-z0-9]+")
_ACRONYMS = frozenset({"warc", "id", "uri", "ip"})
_END_OF_HEAD = b"\r\n\r\n"
_TAIL = b"\r\n\r\n"
_BASE32 = bytes(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" * 8)


_PAD = bytes(12)
"""What a SHA-1 lacks of the 32 bytes that its digits take."""


def _halves(lane: int, digests: int) -> tuple[int, int, int]:
    """How the bits of each lane get into its two halves: how far the upper ones move, and where both are then."""
    half = lane // 2
    bits = (1 << half * 5 // 8) - 1
    lower = sum(bits << place for place in range(0, 256 * digests, lane))
    return half - half * 5 // 8, lower << half, lower


_APART = {count: [_halves(lane, count) for lane in (256, 128, 64, 32, 16)] for count in range(1, 6)}
"""By how many digests there are."""
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
"""The digit of a UUID that also says its variant: its upper two bits are 10."""


class BrokenRecord(Exception):
    """These bytes are no WARC record, or one that contradicts itself."""


class Record(NamedTuple):
    """A record as read. Field names are in lower case; of a repeated field the last stands."""

    fields: Mapping[str, str]
    block: bytes

    @property
    def kind(self) -> str:
        """`response`, `request`, `warcinfo` or another of the standard's types."""
        return self.fields.get("warc-type", "")


def encode(fields: Iterable[tuple[str, str]], block: bytes) -> bytes:
    """The bytes of a record with these fields, its Content-Length and its block."""
    lines = ["WARC/1.1", *(f"{name}: {plain(value)}" for name, value in fields)]
    head = "\r\n".join((*lines, f"Content-Length: {len(block)}\r\n\r\n"))
    return b"".join((head.encode("utf-8", "replace"), block, _TAIL))


def lay_out(kind: str, fields: str, *block: bytes) -> bytes:
    """The same of fields that are text already: the id, then lines without the end of the last. For those in a hurry.

    Whatever in it comes from outside must have gone through `plain`.
    """
    length = sum(map(len, block))
    head = f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {fields}\r\nContent-Length: {length}\r\n\r\n"
    return b"".join((head.encode("utf-8", "replace"), *block, _TAIL))


def decode(data: bytes) -> Record:
    """The one record that `data` holds; raises `BrokenRecord` unless it is one from the first byte to the last."""
    end = data.find(_END_OF_HEAD, 0, HEAD_LIMIT)
    if end < 0:
        raise BrokenRecord("its fields do not end")
    version, *lines = data[:end].decode("utf-8", "replace").split("\r\n")
    if not _VERSION.fullmatch(version):
        raise BrokenRecord("it does not begin with a WARC version")
    fields = _fields(lines)
    length = _content_length(fields)
    start = end + len(_END_OF_HEAD)
    if data[start + length :] != _TAIL:
        raise BrokenRecord(f"its block is not the {length} bytes that it says")
    block = data[start : start + length]
    _verify(fields.get("warc-block-digest"), block)
    return Record(fields, block)


def head_of(text: str) -> tuple[dict[str, str], int]:
    """The fields in the lines of a record's head, and the length of its block; raises `BrokenRecord`."""
    version, *lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    if not _VERSION.fullmatch(version.strip()):
        raise BrokenRecord("it does not begin with a WARC version")
    fields = _fields(lines)
    return fields, _content_length(fields)


def verified(record: Record) -> Record:
    """The record; raises `BrokenRecord` when its block is not the one whose digest it states."""
    _verify(record.fields.get("warc-block-digest"), record.block)
    return record


def sha1_name(data: bytes) -> str:
    """SHA-1 in base 32 with its label, as archives write digests."""
    (name,) = sha1_names((data,))
    return name


def sha1_names(*blocks: Sequence[bytes]) -> list[str]:
    """The same of at most five blocks, each in one or more parts that are not put together for it."""
    digests = []
    for first, *rest in blocks:
        digest = sha1(first, usedforsecurity=False)
        for part in rest:
            digest.update(part)
        digests.append(digest.digest())
    return [f"sha1:{text}" for text in base32(digests)]


def base32(digests: Sequence[bytes]) -> list[str]:
    """SHA-1s, of 20 bytes each and at most five, in base 32 (RFC 4648, section 6), without a loop over their digits.

    Each page has four of them, and all take as long as one. The bits are moved apart by halves: 80 and 80, then 40
    each, until every digit's five have a byte of their own.
    """
    count = len(digests)
    bits = int.from_bytes(_PAD.join((b"", *digests)))
    for distance, upper, lower in _APART[count]:
        bits = bits << distance & upper | bits & lower
    text = bits.to_bytes(32 * count).translate(_BASE32).decode()
    return [text[at : at + 32] for at in range(0, 32 * count, 32)]


def record_id(*parts: str) -> str:
    """A URN that is as unique as its parts together: a UUID of version 8 (RFC 9562, section 5.8).

    Made from what the record is rather than by chance, so that the same crawl writes the same bytes.
    """
    return record_ids(1, *parts)[0]


def record_ids(count: int, *parts: str) -> list[str]:
    """As many of them as records are made at once, at most four: all different."""
    text = blake2b("\n".join(parts).encode(), digest_size=16 * count).hexdigest()
    return [
        f"<urn:uuid:{text[at : at + 8]}-{text[at + 8 : at + 12]}-8{text[at + 13 : at + 16]}-"
        f"{_VARIANT[text[at + 16]]}{text[at + 17 : at + 20]}-{text[at + 20 : at + 32]}>"
        for at in range(0, 32 * count, 32)
    ]


def date_text(at: int) -> str:
    """Milliseconds since 1970 as WARC-Date, with its milliseconds."""
    return f"{_second_text(at // 1000)}.{at % 1000:03}Z"


@lru_cache(maxsize=64)
def _second_text(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def date_of(record: Record) -> int:
    """WARC-Date in milliseconds since 1970; raises `BrokenRecord` when it is none."""
    return moment(record.fields.get("warc-date", ""))


def moment(text: str) -> int:
    """A date as records have it, in milliseconds since 1970; raises `BrokenRecord` when it is none."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            raise ValueError(text)
        return int(found.replace(microsecond=0).timestamp()) * 1000 + found.microsecond // 1000
    except (ValueError, OverflowError):
        raise BrokenRecord(f"its date is {text[:40]!r}") from None


def spelled(field: str) -> str:
    """The usual spelling of a field's name, which compares without case: `WARC-Type` for `warc-type`."""
    return _SPELLED.sub(lambda word: word[0].upper() if word[0] in _ACRONYMS else word[0].title(), field)


def plain(value: str) -> str:
    """A value that ends no line: without control characters."""
    return value if value.isprintable() else _CONTROL.sub(" ", value)


def _fields(lines: list[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    name = ""
    for line in lines:
        if line[:1] in (" ", "\t") and name:
            fields[name] += " " + line.strip()
            continue
        name, colon, value = line.partition(":")
        name = name.strip().lower()
        if not colon or not name:
            raise BrokenRecord(f"{line[:40]!r} is no field")
        fields[name] = value.strip()
    return fields


def _content_length(fields: Mapping[str, str]) -> int:
    text = fields.get("content-length", "")
    if not _LENGTH.fullmatch(text):
        raise BrokenRecord(f"its Content-Length is {text[:40]!r}")
    return int(text)


def _verify(stated: str | None, block: bytes) -> None:
    """A SHA-1 in base 32 must be the block's; other kinds cannot be told and are left to the member's checksum."""
    if stated and stated.startswith("sha1:") and len(stated) == len("sha1:") + 32 and stated != sha1_name(block):
        raise BrokenRecord("its block has another digest")
