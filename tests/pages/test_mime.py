"""The type of an answer is the one that browsers read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crawlspace.exchange import Headers
from crawlspace.pages.encoding import encoding_of
from crawlspace.pages.mime import ContentType, content_type, is_html, looks_like_html

DATA = Path(__file__).parent.parent / "data" / "encoding"


def typed(*values: str) -> Headers:
    return Headers(tuple((b"Content-Type", value.encode("latin-1", "replace")) for value in values))


@pytest.mark.parametrize(
    "row", [row for row in json.loads((DATA / "mime-types.json").read_text()) if isinstance(row, dict)]
)
def test_a_content_type_is_read_as_the_standard_has_it(row: dict[str, str | None]) -> None:
    read = content_type(typed(row["input"] or ""))
    expected = row.get("encoding")
    assert read.essence == (row["output"] or "").split(";")[0]
    assert encoding_of(read.charset) == (expected.lower() if expected else None)


@pytest.mark.parametrize("row", json.loads((DATA / "content-type-multi.json").read_text())["cases"])
def test_of_several_lines_the_last_that_can_be_read_holds(row: dict[str, object]) -> None:
    read = content_type(typed(*row["values"]))  # type: ignore[misc]
    assert read.essence == row["essence"]
    assert encoding_of(read.charset) == (str(row["encoding"]).lower() if row["encoding"] else None)


@pytest.mark.parametrize("row", json.loads((DATA / "sniff-unknown.json").read_text())["cases"])
def test_without_a_type_the_first_bytes_decide(row: dict[str, str]) -> None:
    assert is_html(Headers(), bytes.fromhex(row["hex"])) == (row["type"] == "text/html")


@pytest.mark.parametrize(
    ("value", "body", "expected"),
    [
        ("text/html", b"", True),
        ("Text/HTML; charset=utf-8", b"", True),
        ("application/xhtml+xml", b"", True),
        ("text/plain", b"<html>", False),
        ("application/xml", b"<html>", False),
        ("image/png", b"<!doctype html>", False),
        ("nonsense", b"<!DOCTYPE html>", True),
        ("nonsense", b"%PDF-1.7", False),
    ],
)
def test_a_declared_type_is_believed_and_an_unreadable_one_is_none(value: str, body: bytes, expected: bool) -> None:
    assert is_html(typed(value), body) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<!DOCTYPE HTML>", True),
        (b"\n\t <html lang=en>", True),
        (b"\xef\xbb\xbf<!-- x -->", True),
        (b"<p>text", True),
        (b"<pre>", False),
        (b"<?xml version='1.0'?>", False),
        (b"text <html>", False),
        (b"", False),
        (b" " * 2000 + b"<html>", False),
    ],
)
def test_html_is_known_by_its_first_tag(body: bytes, expected: bool) -> None:
    assert looks_like_html(body) is expected


def test_no_content_type_is_an_empty_one() -> None:
    assert content_type(Headers()) == ContentType("", "")
