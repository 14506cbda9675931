"""Batches travel as array literals: what comes back is what went in, or as near as PostgreSQL can keep it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawlspace.frontier.postgres.columns import blobs, keys, lists, numbers, text, texts

QUICK = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def connection(server: str) -> Iterator[psycopg.Connection[tuple[object]]]:
    with psycopg.connect(server, autocommit=True) as connection:
        yield connection


def returned(connection: psycopg.Connection[tuple[object]], literal: str, kind: str) -> object:
    row = connection.execute(f"SELECT %s::{kind}[]".encode(), [literal]).fetchone()
    assert row is not None
    return row[0]


@QUICK
@given(values=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_numbers_come_back(connection: psycopg.Connection[tuple[object]], values: list[int | None]) -> None:
    assert returned(connection, numbers(values), "bigint") == values


@QUICK
@given(values=st.lists(st.none() | st.booleans()))
def test_truth_values_come_back(connection: psycopg.Connection[tuple[object]], values: list[bool | None]) -> None:
    assert returned(connection, numbers(values), "boolean") == values


@QUICK
@given(values=st.lists(st.none() | st.text()))
def test_texts_come_back(connection: psycopg.Connection[tuple[object]], values: list[str | None]) -> None:
    expected = [None if value is None else value.replace("\0", "\N{REPLACEMENT CHARACTER}") for value in values]
    assert returned(connection, texts(values), "text") == expected


def test_text_that_is_no_text_is_kept_as_near_as_can_be(connection: psycopg.Connection[tuple[object]]) -> None:
    odd = ["a\ud800b", '{"x", NULL}', "NULL", "null", "", "\\", "  "]
    assert returned(connection, texts(odd), "text") == ["a?b", *odd[1:]]
    assert text("a\0\ud800") == "a\N{REPLACEMENT CHARACTER}?"


@QUICK
@given(values=st.lists(st.none() | st.binary()))
def test_byte_strings_come_back(connection: psycopg.Connection[tuple[object]], values: list[bytes | None]) -> None:
    assert returned(connection, blobs(values), "bytea") == values


@QUICK
@given(values=st.lists(st.binary(min_size=16, max_size=16)))
def test_keys_come_back(connection: psycopg.Connection[tuple[object]], values: list[bytes]) -> None:
    found = returned(connection, keys(values), "uuid")
    assert isinstance(found, list)
    assert [each.bytes for each in found] == values


def test_lists_of_numbers_come_back(connection: psycopg.Connection[tuple[object]]) -> None:
    found = returned(connection, lists([[1, 2], [], [3]]), "text")
    assert isinstance(found, list)
    assert [returned(connection, each, "bigint") for each in found] == [[1, 2], [], [3]]
