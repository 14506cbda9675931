"""Seed lists: plain lines and JSON lines, with errors that name the line."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from crawlspace.app.seeds import LINE_LIMIT, parse_seeds, read_seeds
from crawlspace.engine.intake import Request
from crawlspace.errors import UsageError


def test_lines_comments_and_requests() -> None:
    lines = [
        "# a comment",
        "",
        "  https://a.test/ \n",
        '{"url": "https://b.test/", "label": "shop", "meta": {"n": 1}, "method": "POST", "body": "q=ü"}',
    ]
    assert list(parse_seeds(lines, "list")) == [
        Request("https://a.test/"),
        Request("https://b.test/", "shop", {"n": 1}, "POST", "q=ü".encode()),
    ]


@pytest.mark.parametrize(
    "line",
    [
        '{"url": 1}',
        '{"uri": "x"}',
        '{"url": "x", "meta": []}',
        "{",
        '{"url": "x", "meta": {"a": "' + "y" * 2000 + '"}}',
    ],
)
def test_a_bad_line_is_named(line: str) -> None:
    with pytest.raises(UsageError, match=r"list, line 2|the meta of x"):
        list(parse_seeds(["https://a.test/", line], "list"))


def test_a_line_without_end_is_refused() -> None:
    with pytest.raises(UsageError, match="longer than"):
        list(parse_seeds(["x" * (LINE_LIMIT + 1)], "list"))


def test_standard_input_is_a_list_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("https://a.test/\n"))
    assert list(read_seeds("-")) == [Request("https://a.test/")]


def test_a_file_is_read_as_it_is_needed(tmp_path: Path) -> None:
    file = tmp_path / "seeds"
    file.write_text("https://a.test/\nhttps://b.test/\n")
    assert [request.url for request in read_seeds(str(file))] == ["https://a.test/", "https://b.test/"]
    with pytest.raises(UsageError, match="cannot be read"):
        next(read_seeds(str(tmp_path)))
