"""URLs that were visited before, with the time if it is told: feeds in JSON and CSV, plain lists, and indexes.

Everything is read in a stream. What has no URL, or no date where one should be, is told with its place and passed
over.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
import zstandard

from crawlspace.app.importing.imported import Imported
from crawlspace.app.importing.kinds import Kind, Source
from crawlspace.errors import UsageError
from crawlspace.pages.timestamps import read_time

ITEM_LIMIT = 16 << 20
"""Characters of one item of a feed, or one line."""
DATE_FIELDS = ("date", "timestamp", "at", "fetched_at", "crawled_at", "visited_at", "scraped_at")
"""Where a visit's time is looked for when nobody says where it is."""

_CHUNK = 1 << 16
_MS_FROM = 10**11
"""A number from here on counts milliseconds since 1970, a smaller one seconds."""


class Listed(NamedTuple):
    """A URL that was visited before."""

    url: str
    at: int | None = None
    """When, in milliseconds since 1970; None when that is not told."""


class Fields(msgspec.Struct, frozen=True):
    """Where an item of a feed has what we need."""

    url: str = "url"
    date: str | None = None
    """None: the first of `DATE_FIELDS` that an item has."""


def listed(source: Source, fields: Fields, done: Imported) -> Iterator[Listed]:
    """The URLs in a feed, a list or an index. Raises `OSError` or, for what is no such file, `UsageError`."""
    with _opened(source.path) as file:
        try:
            match source.kind:
                case Kind.JSON:
                    yield from _of_items(_objects(file, source.path, done), source.path, fields, done)
                case Kind.CSV:
                    yield from _of_items(enumerate(_table(file), 2), source.path, fields, done)
                case _:
                    yield from _of_lines(file, source.path, done)
        except (UnicodeDecodeError, EOFError, gzip.BadGzipFile, zstandard.ZstdError, csv.Error) as error:
            done.lost(f"{source.path.name}: it cannot be read further: {error}")


def _opened(path: Path) -> IO[str]:
    name = path.name.lower()
    if name.endswith(".zst"):
        raw = zstandard.ZstdDecompressor().stream_reader(path.open("rb"), read_across_frames=True, closefd=True)
        return io.TextIOWrapper(io.BufferedReader(raw), encoding="utf-8-sig", newline="")
    if name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


# -- items of feeds -----------------------------------------------------------------------------------------


def _of_items(items: Iterable[tuple[int, object]], path: Path, fields: Fields, done: Imported) -> Iterator[Listed]:
    for number, item in items:
        url = item.get(fields.url) if isinstance(item, Mapping) else None
        if not isinstance(url, str) or not url:
            done.passed[f"items without {fields.url!r}"] += 1
            continue
        assert isinstance(item, Mapping)
        told = _date_of(item, fields)
        at = None if told in (None, "") else _moment(told)
        if told not in (None, "") and at is None:
            done.lost(f"{path.name}, item {number}: {str(told)[:40]!r} is no date")
            continue
        yield Listed(url, at)


def _date_of(item: Mapping[str, object], fields: Fields) -> object:
    if fields.date is not None:
        return item.get(fields.date)
    return next((item[name] for name in DATE_FIELDS if item.get(name) not in (None, "")), None)


def _moment(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _of_number(float(value))
    if not isinstance(value, str):
        return None
    text = value.strip()
    digits = text.replace(".", "", 1)
    # Four digits are a year, fourteen a time as indexes write it.
    if digits.isascii() and digits.isdigit() and len(text) > 4 and len(digits) != 14:
        return _of_number(float(text))
    return read_time(_spelled_out(text))


def _of_number(number: float) -> int | None:
    if not 0 <= number < 10**15:
        return None
    return int(number) if number >= _MS_FROM else int(number * 1000)


def _spelled_out(text: str) -> str:
    """A time of fourteen digits as ISO 8601."""
    if len(text) == 14 and text.isascii() and text.isdigit():
        return f"{text[:4]}-{text[4:6]}-{text[6:8]}T{text[8:10]}:{text[10:12]}:{text[12:]}Z"
    return text


def _objects(file: IO[str], path: Path, done: Imported) -> Iterator[tuple[int, object]]:
    """The items of an array, or of lines; which it is shows the first letter."""
    head = file.read(_CHUNK).lstrip()
    if head.startswith("["):
        yield from enumerate(_array(file, head[1:], path), 1)
        return
    lines = _lines(file, head, path)
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield number, msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError) as error:
                done.lost(f"{path.name}, line {number}: {error}")


def _array(file: IO[str], held: str, path: Path) -> Iterator[object]:
    decoder = json.JSONDecoder()
    while True:
        held = held.lstrip(" \t\r\n,")
        if held.startswith("]"):
            return
        try:
            item, end = decoder.raw_decode(held)
            # A number at the end of what is held may go on.
            whole = end < len(held)
        except (json.JSONDecodeError, RecursionError):
            whole = False
        if whole:
            yield item
            held = held[end:]
            continue
        more = file.read(max(_CHUNK, len(held)))
        if not more or len(held) > ITEM_LIMIT:
            raise UsageError(f"{path} is no array of JSON: an item does not end", hint="see that the file is whole")
        held += more


def _lines(file: IO[str], held: str, path: Path) -> Iterator[str]:
    """Lines, the first of which have been read already."""
    while True:
        *lines, held = held.split("\n")
        yield from lines
        if len(held) > ITEM_LIMIT:
            raise UsageError(f"{path} has a line of more than {ITEM_LIMIT} characters")
        more = file.read(_CHUNK)
        if not more:
            yield held
            return
        held += more


def _table(file: IO[str]) -> Iterator[Mapping[str, object]]:
    return iter(csv.DictReader(file))


# -- lines --------------------------------------------------------------------------------------------------


def _of_lines(file: IO[str], path: Path, done: Imported) -> Iterator[Listed]:
    for number, line in enumerate(_lines(file, "", path), 1):
        words = line.split(None, 1)
        if not words or words[0].startswith("#"):
            continue
        at = _moment(words[1]) if len(words) == 2 else None
        if len(words) == 2 and at is None:
            done.lost(f"{path.name}, line {number}: {words[1].strip()[:40]!r} is no date")
            continue
        yield Listed(words[0], at)


# -- indexes ------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A capture as an index names it."""

    url: str
    at: int | None
    file: str | None
    """Name of its archive file."""


def index_lines(path: Path, done: Imported) -> Iterator[Line]:
    """The lines of an index, CDXJ or CDX. Raises `OSError`."""
    with _opened(path) as file:
        try:
            yield from _of_index(_lines(file, "", path), path, done)
        except (UnicodeDecodeError, EOFError, gzip.BadGzipFile) as error:
            done.lost(f"{path.name}: it cannot be read further: {error}")


def _of_index(lines: Iterable[str], path: Path, done: Imported) -> Iterator[Line]:
    letters: list[str] = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("!"):
            continue
        if words[0] == "CDX":
            letters = words[1:]
            continue
        found = _of_letters(words, letters) if letters else _of_json(line)
        if found is None:
            done.lost(f"{path.name}, line {number}: no line of an index")
        else:
            yield found


class _Facts(msgspec.Struct):
    url: str
    filename: str | None = None


def _of_json(line: str) -> Line | None:
    words = line.split(" ", 2)
    try:
        facts = msgspec.json.decode(words[2], type=_Facts) if len(words) == 3 else None
    except msgspec.DecodeError:
        return None
    return None if facts is None else Line(facts.url, _moment(words[1]), facts.filename)


def _of_letters(words: list[str], letters: list[str]) -> Line | None:
    """A line of CDX: `a` is the URL, `b` the time, `g` the file."""
    if len(words) != len(letters) or "a" not in letters:
        return None
    told = dict(zip(letters, words, strict=True))
    return Line(told["a"], _moment(told.get("b", "")), told.get("g"))
