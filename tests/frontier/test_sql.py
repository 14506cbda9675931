"""Statements live in `.sql` files, each with a name and a purpose."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from crawlspace.frontier.sql import listed, statements


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An importable package that a test fills."""
    directory = tmp_path / "statements_of_a_test"
    directory.mkdir()
    (directory / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, directory.name, raising=False)
    return directory


def test_a_statement_is_found_by_name_without_its_comments(package: Path) -> None:
    one = "-- name: one\n-- Purpose.\nSELECT 1\n-- aside\nFROM t;\n\n"
    two = "-- name: two\n-- Why.\nSELECT 2;\n"
    (package / "x.sql").write_text(f"-- Head of the file.\n\n{one}{two}")
    assert statements(package.name, "x.sql") == {"one": "SELECT 1\nFROM t", "two": "SELECT 2"}


@pytest.mark.parametrize(
    "text",
    ["-- name: one\nSELECT 1;", "-- name: one\n-- Purpose.\nSELECT 1;\n-- name: one\n-- Purpose.\nSELECT 2;"],
    ids=["without purpose", "named twice"],
)
def test_a_statement_needs_a_name_of_its_own_and_a_purpose(package: Path, text: str) -> None:
    (package / "x.sql").write_text(text)
    with pytest.raises(ValueError, match="'one' needs a name of its own"):
        statements(package.name, "x.sql")


def test_a_list_of_parameters_is_written_out() -> None:
    assert listed("SELECT x FROM t WHERE y IN (?*) AND z = ?", 3) == "SELECT x FROM t WHERE y IN (?,?,?) AND z = ?"


def test_a_list_of_rows_is_written_out() -> None:
    assert listed("WITH v (a, b) AS (VALUES (?*2)) SELECT a FROM v", 3) == (
        "WITH v (a, b) AS (VALUES (?,?),(?,?),(?,?)) SELECT a FROM v"
    )
