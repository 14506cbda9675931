"""What a page says beyond its own address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content import novelty as novelty_module
from crawlspace.content.novelty import novelty

WORDS = "Meetings are held in the hall behind the mill, and everybody is welcome. "


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("http://a.test/month/2026/01", "Events of 2026-01"), ("http://a.test/month/2031/11", "Events of 2031-11")),
        (
            ("http://a.test/?year=2026&month=12", "12/2026, next: 2027, before: 11"),
            ("http://a.test/?year=2030&month=11", "11/2030, next: 2031, before: 10"),
        ),
        (("http://a.test/?q=Blue+jar", "No blue jar here"), ("http://a.test/?q=red%20cup", "No RED cup here")),
        (("http://a.test/r/09/", "Day 09, then 10"), ("http://a.test/r/11/", "Day 11, then 12")),
    ],
)
def test_pages_that_only_repeat_their_address_say_the_same(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert novelty(WORDS + one[1], one[0]) == novelty(WORDS + other[1], other[0])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # Numbers that the address does not have are what the page is about.
        (("http://a.test/draw/2024", "Numbers: 5 12 33"), ("http://a.test/draw/2025", "Numbers: 5 12 34")),
        (("http://a.test/news/2025/01/03", "It rained."), ("http://a.test/news/2025/01/04", "It snowed.")),
        # One digit stands in too many places.
        (("http://a.test/page/3", "Page 3 of 9"), ("http://a.test/page/4", "Page 4 of 9")),
        # A long number is an id, and has no neighbours.
        (("http://a.test/1234567", "1234568"), ("http://a.test/2234567", "2234568 x")),
    ],
)
def test_what_the_address_does_not_say_is_new(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert novelty(WORDS + one[1], one[0]) != novelty(WORDS + other[1], other[0])


def test_the_host_is_no_piece() -> None:
    assert novelty("mill", "http://mill.test/") != novelty("hall", "http://hall.test/")


def test_a_number_before_the_first_is_left_alone() -> None:
    assert novelty("-1 01", "http://a.test/00") == novelty("-1 01", "http://b.test/00")


def test_only_so_many_pieces_are_looked_for() -> None:
    many = "/".join(f"piece{chr(97 + number)}" for number in range(20))
    assert novelty("piecet", f"http://a.test/{many}") != novelty("pieces", f"http://a.test/{many}")


def test_a_lone_surrogate_stops_nothing() -> None:
    assert novelty("\ud800", "http://a.test/%ED%A0%80") >= 0


@given(st.text("aAb1é \0", max_size=60), st.lists(st.text("ab1é", min_size=1, max_size=3), max_size=5))
def test_compiled_and_not_the_same_is_left_out(text: str, pieces: list[str]) -> None:
    plain, left_out = text.encode(), [piece.encode() for piece in pieces]
    assert novelty_module._without(plain, left_out) == novelty_module._replaced(plain, left_out)
