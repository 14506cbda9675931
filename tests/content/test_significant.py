"""Fields whose difference forbids a merge."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content import significant
from crawlspace.content.significant import (
    FieldName,
    SignificantSettings,
    differing,
    kin,
    significant_fields,
)

FIELDS = st.dictionaries(
    st.text(max_size=5), st.lists(st.text(max_size=5), min_size=1, max_size=3).map(tuple), max_size=3
)


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("price", "now $1,234.50 only", ("$1,234.50",)),
        ("price", "19,99 € or EUR 20", ("19,99 €", "eur 20")),
        ("price", "twelve dollars, 12 dollars", ("12 dollars",)),
        ("price", "12 views of 20 items", ()),
        ("date", "on 2024-03-01 and 7 June 1999, or May 4", ("2024-03-01", "7 june 1999", "may 4")),
        ("date", "3.4.2024", ("3.4.2024",)),
        ("date", "you may 12", ("may 12",)),
        ("date", "maybe 12", ()),
        ("year", "Copyright (C) 1999-2005, 2007 Someone", ("1999-2005", "2007")),
        ("year", "the 12000 of 3024", ()),
        ("sku", "SKU: AB-12/3, ISBN 978-3-16-148410-0", ("isbn 978-3-16-148410-0", "sku: ab-12/3")),
        ("sku", "Article no. 4711", ("article no. 4711",)),
        ("sku", "skus and skulls", ()),
        ("version", "Version 2.2.1 (v3, release 4.0-rc1)", ("release 4.0-rc1", "v3", "version 2.2.1")),
        ("version", "foo-1.2 License (DRL) 1.1", ("(drl) 1.1", "foo-1.2")),
        ("version", "the versions differ", ()),
        ("clause", "text. 9. More; 10. Section 4.2) ends", ("10", "9", "section 4.2")),
        ("clause", "in 9 cases", ()),
        ("number", "1 of 2.5, and 1", ("1", "2.5")),
    ],
)
def test_a_field_is_read_from_the_text(name: FieldName, text: str, values: tuple[str, ...]) -> None:
    assert significant_fields(text, (name,)).get(name, ()) == values


@pytest.mark.parametrize(
    ("one", "other", "fields"),
    [
        ("Chair, oak, 49 EUR, SKU: C-1", "Chair, oak, 59 EUR, SKU: C-1", ["price"]),
        ("Chair, oak, 49 EUR, SKU: C-1", "Chair, oak, 49 EUR, SKU: C-2", ["sku"]),
        ("Licence, Version 2.0, January 2004", "Licence, Version 2.1, January 2005", ["version", "year"]),
        ("Meeting of 3 May 2024", "Meeting of 4 May 2024", ["date"]),
        ("Chair, 49 EUR", "Chair, sold out", ["price"]),
        ("Chair, oak", "Chair, beech", []),
    ],
)
def test_pages_that_differ_in_a_field_are_told_apart_by_it(one: str, other: str, fields: list[str]) -> None:
    a, b = significant_fields(one), significant_fields(other)
    assert differing(a, b) == differing(b, a) == fields
    assert (kin("en", a) != kin("en", b)) is bool(fields)


def test_a_given_field_stands_in_place_of_the_rule_s() -> None:
    fields = significant_fields("was 59 EUR, now 49 EUR", given={"price": " 49  EUR ", "title": "", "name": "Chair"})
    assert fields == {"price": ("49 eur",), "name": ("chair",)}


def test_spaces_case_and_order_make_no_difference() -> None:
    assert significant_fields("SKU: A1 and EUR 5") == significant_fields("eur 5 and sku: a1")


def test_language_versions_are_of_another_kin() -> None:
    assert kin("en", {}) != kin("de", {})
    assert kin("en-US", {}) == kin("EN-us", {})


@given(FIELDS, FIELDS)
def test_pages_are_kin_exactly_when_no_field_differs(
    one: dict[str, tuple[str, ...]], other: dict[str, tuple[str, ...]]
) -> None:
    assert (kin("", one) == kin("", other)) == (not differing(one, other))


def test_kin_keeps_its_number_for_ever() -> None:
    """It may be stored: a change here is a change of every index."""
    assert kin("en", {"price": ("49 eur",)}) == 2319700062067728177


def test_a_field_that_no_rule_reads_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"fields": ["colour"]}, SignificantSettings)


PIECES = ["$ 5", "v1.2", "SKU: a1", "2024", "3 March", "12.", "word", "é", "(a) 1.2", "-", "99 usd", ";", "isbn"]


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from(["", " "]))
def test_no_field_is_missed_by_asking_first_which_there_are(pieces: list[str], between: str) -> None:
    text = between.join(pieces)
    found = {
        name: significant._values(each[0].decode() for each in pattern.finditer(text.encode()))
        for name, pattern in significant._COMPILED.items()
    }
    names = tuple(significant._COMPILED)
    assert significant_fields(text, names) == {name: values for name, values in found.items() if values}
    assert significant_fields(text.encode(), names) == significant_fields(text, names)
