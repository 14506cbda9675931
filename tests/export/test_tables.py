"""Rows as texts that other programs read back."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from crawlspace.exports.tables import Form, Row, guarded, table, unguarded

DANGEROUS = tuple("=+-@\t\r\n\0")
ODD = st.text(st.sampled_from("=+-@\t\r\n;,'\"a\0 \uff1d"))
TEXTS = ODD | st.text(st.characters(exclude_categories=["Cs"]))


def written(form: Form, rows: list[Row], columns: tuple[str, ...] = ("a", "b"), **ways: Any) -> bytes:
    out = io.BytesIO()
    with table(form, out, columns, **ways) as add:
        for row in rows:
            add(row)
    return out.getvalue()


def read_csv(data: bytes, delimiter: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline=""), delimiter=delimiter))


@given(TEXTS)
@example("=1+1")
@example("'=1")
@example("a;=1")
@example('a;"=1')
@example("\t=\r\n;'+")
def test_what_is_guarded_can_be_had_back(text: str) -> None:
    assert unguarded(guarded(text)) == text


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("", ""),
        ("http://a.test/=1", "http://a.test/=1"),
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("\uff1d1", "'\uff1d1"),
        ("'=1", "''=1"),
        ("http://a.test/;=1", "http://a.test/;'=1"),
        ("it's", "it's"),
    ],
)
def test_an_apostrophe_goes_before_what_a_spreadsheet_would_compute(text: str, cell: str) -> None:
    assert guarded(text) == cell


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=5))
def test_a_table_of_csv_can_be_read_back(rows: list[tuple[str, str]]) -> None:
    head, *cells = read_csv(written(Form.CSV, list(rows)))
    assert head == ["a", "b"]
    assert [tuple(map(unguarded, row)) for row in cells] == rows
    assert [tuple(row) for row in read_csv(written(Form.CSV, list(rows), guard=False))[1:]] == rows


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=5))
def test_no_cell_begins_dangerously_whichever_mark_splits_the_line(rows: list[tuple[str, str]]) -> None:
    """Some spreadsheets split at semicolons or tabs whatever the file says."""
    data = written(Form.CSV, list(rows))
    for delimiter in ",;\t":
        for line in read_csv(data, delimiter):
            assert not [cell for cell in line if cell.startswith(DANGEROUS)]


def test_numbers_and_nothing_stay_what_they_are() -> None:
    row: Row = (7, None, True, False, msgspec.Raw(b'{"x":1}'))
    assert written(Form.CSV, [row], tuple("abcde")).splitlines()[1] == b'7,"","true","false","{""x"":1}"'
    told = json.loads(written(Form.JSON_LINES, [row], tuple("abcde")))
    assert told == {"a": 7, "b": None, "c": True, "d": False, "e": {"x": 1}}


@given(st.lists(st.tuples(TEXTS, st.none() | st.integers(-(2**63), 2**63 - 1)), max_size=5))
def test_json_lines_are_one_object_a_line_and_can_be_read_back(rows: list[tuple[str, int | None]]) -> None:
    plain = written(Form.JSON_LINES, list(rows))
    assert [tuple(json.loads(line).values()) for line in plain.split(b"\n")[:-1]] == rows
    packed = written(Form.JSON_LINES_ZSTD, list(rows))
    assert zstandard.ZstdDecompressor().stream_reader(packed).read() == plain


def test_a_list_holds_the_first_column() -> None:
    assert written(Form.LIST, [("http://a.test/", 1), ("http://b.test/", 2)]) == b"http://a.test/\nhttp://b.test/\n"
