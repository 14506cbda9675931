"""In which order URLs leave."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.policy.priority import Order, PrioritySettings, front_class
from crawlspace.types import Relation

DEPTHS = (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 14, 15, 1000)


@pytest.mark.parametrize(
    ("order", "classes"),
    [
        (Order.BREADTH, [1, 2, 3, 4, 5, 6, 6, 7, 7, 8, 8, 9, 9]),
        (Order.DEPTH, [9, 8, 7, 6, 5, 4, 4, 3, 3, 2, 2, 1, 1]),
        (Order.ARRIVAL, [5] * 13),
    ],
)
def test_a_depth_has_its_class_under_each_order(order: Order, classes: list[int]) -> None:
    """Near first, far first, or all alike."""
    settings = PrioritySettings(order=order)
    assert [front_class(settings, depth, Relation.HYPERLINK) for depth in DEPTHS] == classes


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("source", [0, 3, 9])
def test_a_redirects_target_keeps_the_class_of_its_source(order: Order, source: int) -> None:
    """It is the same page at another address; 0 is a class like any other."""
    assert front_class(PrioritySettings(order=order), 12, Relation.REDIRECT, source) == source


def test_a_redirect_whose_source_is_unknown_goes_by_its_depth() -> None:
    """And the source's class of any other link is no matter."""
    assert front_class(PrioritySettings(), 2, Relation.REDIRECT) == 3
    assert front_class(PrioritySettings(), 2, Relation.HYPERLINK, 9) == 3


@pytest.mark.parametrize(("order", "classes"), [(Order.BREADTH, [5, 5, 7]), (Order.DEPTH, [9, 8, 3])])
def test_a_sitemap_yields_to_links_near_a_seed_in_breadth_first_order(order: Order, classes: list[int]) -> None:
    """It may list millions."""
    settings = PrioritySettings(order=order)
    assert [front_class(settings, depth, Relation.SITEMAP) for depth in (0, 1, 8)] == classes


@given(st.sampled_from(Order), st.integers(0, 10**6), st.sampled_from(Relation))
def test_every_class_is_one_of_nine_and_order_never_turns(order: Order, depth: int, relation: Relation) -> None:
    """One link further is never before in breadth-first order, never after in depth-first order."""
    settings = PrioritySettings(order=order)
    here, further = (front_class(settings, at, relation) for at in (depth, depth + 1))
    assert 1 <= here <= 9
    assert {Order.BREADTH: here <= further, Order.DEPTH: here >= further, Order.ARRIVAL: here == further}[order]
