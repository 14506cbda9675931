"""Where two texts differ, word by word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content.difference import CHANGES_LIMIT, WORDS_LIMIT, Change, Difference, difference

WORDS = st.lists(st.sampled_from("abcd"), max_size=30).map(" ".join)


@pytest.mark.parametrize(
    ("one", "other", "changes"),
    [
        ("a b c", "a b c", ()),
        ("a  b\nc", "a b c", ()),
        ("a b c", "a x c", (Change(1, "b", "x"),)),
        ("a b c", "a c", (Change(1, "b", ""),)),
        ("a c", "a b c", (Change(1, "", "b"),)),
        ("p a b c q", "r a b c s", (Change(0, "p", "r"), Change(4, "q", "s"))),
        ("", "a b", (Change(0, "", "a b"),)),
        ("", "", ()),
    ],
)
def test_changes_are_told_with_their_place(one: str, other: str, changes: tuple[Change, ...]) -> None:
    assert difference(one, other) == Difference(changes, whole=True)


@given(WORDS, WORDS)
def test_the_changes_make_the_second_text_of_the_first(one: str, other: str) -> None:
    words = one.split()
    for change in reversed(difference(one, other).changes):
        removed = change.removed.split()
        assert words[change.at : change.at + len(removed)] == removed
        words[change.at : change.at + len(removed)] = change.added.split()
    assert words == other.split()


def test_one_change_in_a_long_text_is_found_wherever_it_is() -> None:
    """What both begin and end with costs nothing."""
    words = [f"w{number}" for number in range(100_000)]
    changed = [*words[:70_000], "new", *words[70_001:]]
    assert difference(" ".join(words), " ".join(changed)) == Difference(
        (Change(70_000, "w70000", "new"),), whole=True
    )


def test_what_is_beyond_the_limit_is_said_to_be_left_out() -> None:
    one = " ".join(f"a{number}" for number in range(WORDS_LIMIT + 1))
    found = difference(one, "b")
    assert not found.whole
    assert len(found.changes[0].removed.split()) == WORDS_LIMIT
    assert difference(one.rpartition(" ")[0], "b").whole


def test_many_changes_are_cut() -> None:
    one = " ".join(f"same{number} x{number}" for number in range(CHANGES_LIMIT + 1))
    found = difference(one, one.replace("x", "y"))
    assert len(found.changes) == CHANGES_LIMIT
    assert not found.whole


def test_a_word_without_end_is_cut() -> None:
    assert difference("x" * 1000, "y").changes[0].removed == "x" * 100 + "…"
