"""The shingles of a text."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content.shingles import distinct, jaccard, shingles

UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
TEXTS = st.text(st.sampled_from("ab1_ .,-\n\u00a0éÉßΣςİ’—漢あ"), max_size=60)


def counted(text: str) -> set[tuple[str, ...]]:
    """Shingles as they are defined, the slow way: sets of three words."""
    words = re.findall(r"\w+", UNSPACED.sub(r" \g<0> ", text).casefold())
    return {tuple(words[at : at + 3]) for at in range(max(len(words) - 2, min(len(words), 1)))}


@given(TEXTS)
def test_a_text_has_as_many_shingles_as_it_has_different_runs_of_three_words(text: str) -> None:
    assert len(distinct(shingles(text))) == len(counted(text))


@given(TEXTS, TEXTS)
def test_similarity_is_that_of_the_sets_of_three_words(one: str, other: str) -> None:
    a, b = counted(one), counted(other)
    expected = len(a & b) / len(a | b) if a | b else 0.0
    assert jaccard(distinct(shingles(one)), distinct(shingles(other))) == expected


def test_similarity_agrees_with_the_truth_that_was_worked_out_by_brute_force(texts: Any) -> None:
    """All pairs of the data set at 0.5 or more and a sample of the others, to the four digits that it gives."""
    sets = {name: distinct(shingles(text)) for name, text in texts.texts.items()}
    chinese = {"lic:MulanPSL-1.0", "lic:MulanPSL-2.0"}
    pairs = {**texts.near, **texts.sampled}
    assert len(pairs) > 300
    for pair, expected in pairs.items():
        if not pair & chinese:
            one, other = pair
            assert jaccard(sets[one], sets[other]) == pytest.approx(expected, abs=0.00006)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("the quick brown", 0x7F11E41C256A2FC1),
        ("The  QUICK, (brown)", 0x7F11E41C256A2FC1),
        ("quick", 0x369DBA38079D1030),
    ],
)
def test_a_shingle_keeps_its_number_for_ever(text: str, number: int) -> None:
    """Fingerprints are stored: a change here is a change of every crawl directory."""
    assert shingles(text).tolist() == [number]


def test_words_count_in_their_order() -> None:
    assert shingles("one two three").tolist() != shingles("three two one").tolist()


def test_repeats_are_kept_until_a_set_is_asked_for() -> None:
    found = shingles("a b a b a b")
    assert len(found) == 4
    assert len(distinct(found)) == 2


@pytest.mark.parametrize("text", ["", " .,;— ", "’", "\ud800"])
def test_a_text_without_words_has_no_shingles(text: str) -> None:
    assert len(shingles(text)) == 0
    assert jaccard(distinct(shingles(text)), distinct(shingles(text))) == 0.0


def test_each_character_is_a_word_where_words_have_no_spaces_between_them() -> None:
    """One changed character in a sentence leaves most of its shingles."""
    one, other = (
        distinct(shingles(text)) for text in ("木兰宽松许可证第一版在此发布", "木兰宽松许可证第二版在此发布")
    )
    assert len(one) == 12
    assert len(one & other) == 9


def test_forgetting_words_changes_no_number() -> None:
    """More different words than are remembered, and one that is too long for it."""
    text = "here comes the " + "x" * 100
    before = shingles(text).tolist()
    shingles(" ".join(f"w{number}" for number in range(70_000)))
    assert shingles(text).tolist() == before
