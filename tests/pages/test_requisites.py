"""What a browser fetches to show a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.pages.requisites import candidates, requisites

DATA = Path(__file__).parent.parent / "data" / "html-links"


@pytest.mark.parametrize("row", json.loads((DATA / "srcset.json").read_text()))
def test_a_srcset_holds_what_a_browser_selects_from_it_and_nothing_where_it_selects_nothing(
    row: dict[str, str | None],
) -> None:
    found = candidates(row["srcset"] or "")
    assert found == [] if row["selected"] is None else row["selected"] in found


@pytest.mark.parametrize(
    ("srcset", "expected"),
    [
        ("a.png, b.png 2x", ["a.png", "b.png"]),
        ("a.png 100w, b.png 200w 50h,c.png", ["a.png", "b.png", "c.png"]),
        ("a.png (x, y) 2x, b.png", ["b.png"]),
        ("a.png 1x 2x", []),
        ("a.png 1x 2w", []),
        ("a.png 50h", []),
        ("a.png 0w", []),
        ("a.png -1x", []),
        ("a.png -0x", ["a.png"]),
        ("data:,x 1x", ["data:,x"]),
    ],
)
def test_candidates_with_descriptors_that_cannot_be_read_are_left_out(srcset: str, expected: list[str]) -> None:
    assert candidates(srcset) == expected


@pytest.mark.parametrize(
    ("tag", "attributes", "expected"),
    [
        ("img", {"src": "a", "srcset": "b 2x"}, ["a", "b"]),
        ("source", {"srcset": "b"}, ["b"]),
        ("video", {"src": "a", "poster": "p"}, ["a", "p"]),
        ("object", {"data": "d"}, ["d"]),
        ("script", {"src": None}, []),
        ("body", {"background": "bg"}, ["bg"]),
        ("a", {"href": "x"}, []),
    ],
)
def test_each_element_has_its_own_attributes(
    tag: str, attributes: dict[str, str | None], expected: list[str]
) -> None:
    assert requisites(tag, attributes) == expected


@pytest.mark.parametrize(
    ("relations", "expected"),
    [({"stylesheet"}, ["s"]), ({"alternate", "stylesheet"}, ["s"]), ({"icon"}, ["s"]), ({"next"}, []), (set(), [])],
)
def test_a_link_element_counts_by_its_relation(relations: set[str], expected: list[str]) -> None:
    assert requisites("link", {"href": "s"}, frozenset(relations)) == expected


@given(st.text("a ,()12xwh.-", max_size=60))
def test_no_srcset_is_too_odd_to_be_read(srcset: str) -> None:
    assert all(address and not address.endswith(",") for address in candidates(srcset))
