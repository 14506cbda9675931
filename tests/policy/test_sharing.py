"""Parts of the hosts, and what is above them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.policy.sharing import left_alone, part, surplus
from crawlspace.types import Crew


@pytest.mark.parametrize(
    ("most", "others", "hosts", "expected"),
    [
        (100, (100,), 16, 8),
        (100, (100,), 17, 9),
        (100, (100,), 1, 1),
        (100, (100,), 0, 1),
        (100, (3,), 16, 13),
        (3, (100,), 16, 3),
        (100, (3, 2), 20, 15),
        (5, (5, 5), 1_000, 5),
        (100, (), 16, 16),
        (10, (), 16, 10),
        (100, (100,) * 9, 16, 2),
    ],
)
def test_a_part_is_what_is_left_when_all_are_filled_alike(
    most: int, others: tuple[int, ...], hosts: int, expected: int
) -> None:
    assert part(most, Crew(others, hosts, 0)) == expected


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.integers(0, 300))
def test_parts_together_are_all_hosts_and_hardly_more(capacities: list[int], hosts: int) -> None:
    parts = [
        part(most, Crew(tuple(capacities[:place] + capacities[place + 1 :]), hosts, 0))
        for place, most in enumerate(capacities)
    ]
    assert min(hosts, sum(capacities)) <= sum(parts) < max(hosts, 1) + len(capacities)
    assert all(1 <= each <= most for each, most in zip(parts, capacities, strict=True))
    level = max(parts)
    assert all(each == min(most, level) for each, most in zip(parts, capacities, strict=True))


@pytest.mark.parametrize(
    ("held", "its_part", "free", "expected"),
    [
        (16, 8, 0, 8),
        (16, 8, 1, 0),
        (10, 8, 0, 0),
        (11, 8, 0, 3),
        (2, 1, 0, 1),
        (1, 1, 0, 0),
        (3, 2, 0, 1),
        (0, 8, 0, 0),
    ],
)
def test_what_is_well_above_a_part_is_given_back(held: int, its_part: int, free: int, expected: int) -> None:
    assert surplus(held, its_part, Crew((9,), 16, free)) == expected


def test_hosts_of_groups_are_left_whatever_the_part_is() -> None:
    assert left_alone([False, True, False, True, False], 1) == [True, True, False, True, False]
    assert left_alone([False, True, False], 0) == [False, True, False]
    assert left_alone([False, True], -3) == [False, True]
    assert left_alone([False, False, True], None) == [True, True, True]
