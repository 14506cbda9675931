"""Rows as the texts that other programs read: JSON lines, CSV, and plain lists.

What came from the web is written so that a spreadsheet takes it for text. A program that computes when it opens a
file does so with cells that begin with `=`, `+`, `-`, `@` or a control (CWE-1236), and some split lines at semicolons
or tabs whatever the file says; so an apostrophe goes before such a beginning, at the start of a cell and behind
each mark that could start one. `unguarded` takes exactly those away again.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum, unique
from typing import BinaryIO, Protocol

import msgspec
import zstandard

from crawlspace.exports.columns import Cell

Row = Sequence[Cell]
AddRow = Callable[[Row], None]
AddItem = Callable[[Mapping[str, object]], None]


@unique
class Form(StrEnum):
    """How rows are written."""

    JSON_LINES = "jsonl"
    """An object a line, with the names of the columns."""
    JSON_LINES_ZSTD = "jsonl.zst"
    """The same, compressed (RFC 8878)."""
    JSON_LINES_GZIP = "jsonl.gz"
    """The same in gzip (RFC 1952)."""
    CSV = "csv"
    """RFC 4180, with a line of names; texts in quotation marks, numbers without."""
    LIST = "txt"
    """The first column only, one a line."""


class _Text(Protocol):
    def write(self, data: bytes, /) -> object: ...


_ZSTD_LEVEL = 6
_GZIP_LEVEL = 6
_DANGEROUS = "=+\\-@\t\r\n\x00\uff1d\uff0b\uff0d\uff20"
# Behind a mark at the very end comes our own quotation mark, and for who splits there it opens the next cell.
_BEGINNING = rf"""["']*[{_DANGEROUS}]"""
_START = re.compile(rf"""^(?={_BEGINNING})|([;\t\r\n])(?={_BEGINNING}|["']*\Z)""")
_GUARDED = re.compile(rf"""^'(?={_BEGINNING})|([;\t\r\n])'(?={_BEGINNING}|["']*\Z)""")


JSON_FORMS = frozenset({Form.JSON_LINES, Form.JSON_LINES_ZSTD, Form.JSON_LINES_GZIP})


@contextmanager
def table(form: Form, out: BinaryIO, columns: Sequence[str], *, guard: bool = True) -> Iterator[AddRow]:
    """Write a table to `out`: gives the function that takes its rows. `guard` protects those who open CSV."""
    match form:
        case Form.JSON_LINES | Form.JSON_LINES_ZSTD | Form.JSON_LINES_GZIP:
            with items(form, out) as add:
                yield lambda row: add(dict(zip(columns, row, strict=True)))
        case Form.CSV:
            yield _csv(out, columns, guarded if guard else str)
        case Form.LIST:
            yield lambda row: _write(out, f"{_cell(row[0], str)}\n")


@contextmanager
def items(form: Form, out: BinaryIO) -> Iterator[AddItem]:
    """Write JSON lines to `out`, `form` being one of `JSON_FORMS`: gives the function that takes its objects."""
    match form:
        case Form.JSON_LINES_ZSTD:
            compressor = zstandard.ZstdCompressor(_ZSTD_LEVEL, write_checksum=True)
            with compressor.stream_writer(out, closefd=False) as packed:
                yield _json(packed)
        case Form.JSON_LINES_GZIP:
            with gzip.GzipFile("", "wb", _GZIP_LEVEL, out, mtime=0) as file:
                yield _json(file)
        case _:
            yield _json(out)


def guarded(text: str) -> str:
    """`text` as a cell that no spreadsheet computes."""
    return _START.sub(lambda mark: f"{mark[1] or ''}'", text)


def unguarded(cell: str) -> str:
    """The text that `guarded` made this cell from."""
    return _GUARDED.sub(lambda mark: mark[1] or "", cell)


def _json(out: _Text) -> AddItem:
    encode = msgspec.json.Encoder().encode

    def add(item: Mapping[str, object]) -> None:
        out.write(encode(item) + b"\n")

    return add


def _csv(out: BinaryIO, columns: Sequence[str], plain: Callable[[str], str]) -> AddRow:
    writer = csv.writer(_Encoded(out), quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    writer.writerow(columns)

    def add(row: Row) -> None:
        writer.writerow([_cell(value, plain) for value in row])

    return add


def _cell(value: Cell, plain: Callable[[str], str]) -> str | int:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int():
            return value
        case msgspec.Raw():
            return plain(bytes(value).decode("utf-8", "replace"))
        case str():
            return plain(value)


class _Encoded:
    """Bytes out of the text that the csv module writes."""

    __slots__ = ("_out",)

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, text: str) -> None:
        _write(self._out, text)


def _write(out: BinaryIO, text: str) -> None:
    out.write(text.encode("utf-8", "replace"))
