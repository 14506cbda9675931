"""In which order URLs leave."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.errors import ConfigError, UsageError
from crawlspace.policy.priority import (
    FRESH_MS,
    STALE_MS,
    Candidate,
    Found,
    Order,
    PriorityRule,
    PrioritySettings,
    Ranking,
    Score,
    announced_class,
    front_class,
)
from crawlspace.types import Address, Relation

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
    """One link further is never before but in depth-first order, and there never after."""
    settings = PrioritySettings(order=order)
    here, further = (front_class(settings, at, relation) for at in (depth, depth + 1))
    assert 1 <= here <= 9
    right = {Order.DEPTH: here >= further, Order.ARRIVAL: here == further}
    assert right.get(order, here <= further)


@pytest.mark.parametrize(
    ("priority", "age", "classes"),
    [
        (None, None, [5, 8, 5, 4]),
        (0.5, FRESH_MS + 1, [5, 8, 5, 4]),
        (0.8, None, [4, 7, 5, 2]),
        (None, FRESH_MS, [4, 7, 5, 2]),
        (1.0, 0, [4, 7, 5, 2]),
        (0.2, None, [6, 9, 5, 6]),
        (None, STALE_MS + 1, [6, 9, 5, 6]),
        (0.0, STALE_MS + 1, [6, 9, 5, 6]),
        (0.9, STALE_MS + 1, [5, 8, 5, 4]),
        (None, -1, [5, 8, 5, 4]),
    ],
)
def test_what_a_sitemap_says_of_a_page_moves_it_by_one_class(
    priority: float | None, age: int | None, classes: list[int]
) -> None:
    """Praise and freshness forward, neglect and age back; a time that has not come says nothing."""
    found = [announced_class(PrioritySettings(order=order), 1, priority, age) for order in Order]
    assert found == classes


def test_a_class_that_was_moved_is_still_one_of_nine() -> None:
    """The first cannot get better, the last not worse."""
    deep = PrioritySettings(order=Order.DEPTH)
    assert announced_class(deep, 10**6, 1.0, None) == 1
    assert announced_class(deep, 0, 0.0, None) == 9


# -- what people say ----------------------------------------------------------------------------------------


def ranked(
    url: str, *rules: tuple[str, int], score: Score | None = None, relation: Relation = Relation.HYPERLINK
) -> int:
    """The class of a link whose depth gives it class 4."""
    settings = PrioritySettings(
        rules=tuple(PriorityRule(pattern=pattern, front_class=number) for pattern, number in rules)
    )
    address = Address(url, url, "a.test", bytes(16))
    return Ranking.of(settings, score).front_class(address, Found(3, relation), 4)


@pytest.mark.parametrize(
    ("url", "rules", "front_class"),
    [
        ("http://a.test/x", [], 4),
        ("http://a.test/x", [("/y", 0)], 4),
        ("http://a.test/news/1", [("/news/", 0), ("/1$", 9)], 0),
        ("http://a.test/old/1", [("/news/", 0), ("/1$", 9)], 9),
        ("http://a.test/a/b", [("glob:http://a.test/*", 1), ("glob:http://a.test/**", 2)], 2),
    ],
)
def test_the_first_pattern_that_fits_gives_the_class(
    url: str, rules: list[tuple[str, int]], front_class: int
) -> None:
    assert ranked(url, *rules) == front_class


def test_a_function_has_the_last_word_and_may_leave_it() -> None:
    asked: list[Candidate] = []

    def score(candidate: Candidate) -> int | None:
        asked.append(candidate)
        return 7 if candidate.url.endswith("late") else None

    assert ranked("http://a.test/late", ("late", 1), score=score) == 7
    assert ranked("http://a.test/x", ("x", 1), score=score) == 1
    assert ranked("http://a.test/y", score=score) == 4
    assert asked[0] == Candidate("http://a.test/late", "a.test", 3, Relation.HYPERLINK, 1)


def test_sitemap_files_are_not_asked_about() -> None:
    assert ranked("http://a.test/map", ("map", 9), score=lambda _: 9, relation=Relation.SITEMAP_FILE) == 4


@pytest.mark.parametrize("answer", [-1, 10, "first", 1.5])
def test_a_function_that_answers_no_class_is_told_so(answer: Any) -> None:
    with pytest.raises(UsageError, match="a scorer answered"):
        ranked("http://a.test/x", score=lambda _: answer)


def test_a_rule_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ConfigError, match=r"priority\.rules, rule 2"):
        ranked("http://a.test/x", ("fine", 1), ("(", 2))


@pytest.mark.parametrize(
    ("text", "front_class"),
    [("", 4), ("Buy it now", 2), ("buy", 2), ("Imprint", 9), ("buy the imprint", 7), ("cheap and buy", 1)],
)
def test_rules_on_the_words_of_a_link_add_up(text: str, front_class: int) -> None:
    rules = [
        {"text": "(?i)buy", "shift": -2},
        {"text": "(?i)imprint", "shift": 5},
        {"text": "cheap", "pattern": "/x", "shift": -1},
        {"text": "cheap", "pattern": "/y", "shift": 9},
    ]
    ranking = Ranking.of(msgspec.convert({"rules": rules}, PrioritySettings))
    address = Address("http://a.test/x", "http://a.test/x", "a.test", bytes(16))
    assert ranking.front_class(address, Found(3, Relation.HYPERLINK, text), 4) == front_class


def test_a_shift_moves_the_class_that_a_rule_names_and_never_beyond_the_last() -> None:
    rules = [{"pattern": "x", "class": 8}, {"text": "now", "shift": 3}, {"pattern": "x", "class": 1}]
    settings = msgspec.convert({"rules": rules}, PrioritySettings)
    assert settings.reads_text
    assert not PrioritySettings().reads_text
    address = Address("http://a.test/x", "http://a.test/x", "a.test", bytes(16))
    assert Ranking.of(settings).front_class(address, Found(1, Relation.HYPERLINK, "now"), 4) == 9


@pytest.mark.parametrize("rule", [{"class": 1}, {"pattern": "x"}, {"text": "x", "class": 1, "shift": 1}])
def test_a_rule_says_of_which_urls_and_what(rule: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError, match="a rule needs"):
        msgspec.convert(rule, PriorityRule)


def test_the_best_come_first_and_depth_counts_little() -> None:
    best = PrioritySettings(order=Order.BEST)
    assert [front_class(best, depth, Relation.HYPERLINK) for depth in (0, 1, 2, 7, 8)] == [4, 4, 5, 5, 6]
    assert [announced_class(best, 2, praise, None) for praise in (0.0, 0.5, 1.0)] == [7, 5, 3]


def test_a_rule_is_written_with_the_word_class() -> None:
    rule = msgspec.convert({"pattern": "x", "class": 3}, PriorityRule)
    assert rule.front_class == 3
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"pattern": "x", "class": 10}, PriorityRule)
