"""Near-duplicates among many texts."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content.minhash import (
    MISSED,
    PLACES,
    Document,
    MinHashSettings,
    NearDuplicates,
    Pair,
    band_keys,
    rows_of,
    signature,
)
from crawlspace.content.shingles import distinct, jaccard, shingles
from crawlspace.content.significant import kin, significant_fields
from crawlspace.content.text import plain_text

SETS = st.frozensets(st.integers(0, 2**64 - 1), max_size=40)


def found_in(texts: dict[str, str], settings: MinHashSettings | None = None) -> NearDuplicates[str]:
    found = NearDuplicates(texts.__getitem__, settings)
    for name, text in texts.items():
        found.add(Document(name, text))
    return found


def prose(chance: random.Random, words: int) -> str:
    return " ".join(f"w{chance.randrange(5000)}" for _ in range(words))


def reworded(text: str, chance: random.Random, changes: int) -> str:
    words = text.split()
    for place in chance.sample(range(len(words)), changes):
        words[place] = f"new{chance.randrange(10**6)}"
    return " ".join(words)


def test_at_09_precision_is_099_and_recall_095_or_better(texts: Any) -> None:
    pairs = {frozenset(pair[:2]) for pair in found_in(texts.texts).pairs()}
    true = texts.at(0.9)
    assert len(pairs & true) >= 0.99 * len(pairs)
    assert len(pairs & true) >= 0.95 * len(true)


@pytest.mark.parametrize("threshold", [0.7, 0.9])
def test_a_pair_is_given_once_with_its_exact_similarity(texts: Any, threshold: float) -> None:
    pairs = list(found_in(texts.texts, MinHashSettings(threshold=threshold)).pairs())
    assert len({frozenset(pair[:2]) for pair in pairs}) == len(pairs)
    for one, other, similarity in pairs:
        sets = [distinct(shingles(texts.texts[name])) for name in (one, other)]
        assert similarity == jaccard(*sets) >= threshold


def test_nothing_marked_apart_is_merged_and_all_marked_together_is(
    all_texts: dict[str, str], marked: dict[str, list[list[str]]]
) -> None:
    """Licences that differ, and versions with significant changes, under the default fields and the title."""
    found = NearDuplicates(lambda name: plain_text(all_texts[name]))
    for name, text in all_texts.items():
        title = text.lstrip().partition("\n")[0]
        plain = plain_text(text)
        found.add(Document(name, plain, kin("en", significant_fields(plain, given={"title": title}))))
    group_of = {name: number for number, group in enumerate(found.groups()) for name in group}
    for one, other, why in marked["apart"]:
        assert group_of.get(one, one) != group_of.get(other, other), why
    for one, other in marked["together"]:
        assert group_of.get(one, one) == group_of.get(other, other)


def test_the_pairs_that_bands_miss_at_the_threshold_are_fewer_than_promised() -> None:
    """Texts of 200 words with seven words changed are 0.8 alike; of 400 such pairs, four may be missed."""
    chance = random.Random(4)
    texts: dict[str, str] = {}
    for number in range(400):
        texts[f"{number}a"] = prose(chance, 200)
        texts[f"{number}b"] = reworded(texts[f"{number}a"], chance, 7)
    sets = {name: distinct(shingles(text)) for name, text in texts.items()}
    true = {n for n in range(400) if jaccard(sets[f"{n}a"], sets[f"{n}b"]) >= 0.8}
    pairs = {int(pair.one[:-1]) for pair in found_in(texts, MinHashSettings(threshold=0.8)).pairs()}
    assert len(true) > 100
    assert len(true - pairs) <= 2 * MISSED * len(true)


def test_a_row_of_small_changes_is_one_group_and_the_order_is_that_of_arrival() -> None:
    chance = random.Random(8)
    texts = {"z": prose(chance, 300), "alone": prose(chance, 300)}
    for before, after in ("zy", "yx", "xw"):
        texts[after] = reworded(texts[before], chance, 3)
    texts |= {"q": "one two three four", "p": "One, two, three: four!"}
    assert list(found_in(texts).groups()) == [("z", "y", "x", "w"), ("q", "p")]


def test_texts_of_another_kin_never_meet() -> None:
    """Language versions, and pages with other significant fields."""
    text = "the same words in every one of them"
    found: NearDuplicates[int] = NearDuplicates(lambda _: text)
    for number, of in enumerate([1, 2, 1, 3, 2]):
        found.add(Document(number, text, of))
    assert sorted(found.groups()) == [(0, 2), (1, 4)]


def test_texts_without_words_are_no_duplicates_of_each_other() -> None:
    assert list(found_in({"a": "", "b": "", "c": "—"}).groups()) == []
    assert list(found_in({}).pairs()) == []


def test_equal_texts_are_joined_without_being_read_again() -> None:
    """A page behind many addresses costs no more than its first reading."""
    read: list[int] = []
    found: NearDuplicates[int] = NearDuplicates(lambda key: str(read.append(key)))
    for number in range(200):
        found.add(Document(number, "a page that is there under many addresses"))
    assert [len(group) for group in found.groups()] == [200]
    assert read == []


def test_a_text_is_compared_with_a_limited_number_of_others() -> None:
    """Texts that meet in a bucket and are not alike enough: each is compared with its neighbours, not with all."""
    chance = random.Random(3)
    core = prose(chance, 100)
    texts = {f"{n}": f"{core} {prose(chance, 30)}" for n in range(200)}
    asked: list[str] = []

    def text_of(name: str) -> str:
        asked.append(name)
        return texts[name]

    found: NearDuplicates[str] = NearDuplicates(text_of, MinHashSettings(threshold=0.7, neighbours=2))
    for name, text in texts.items():
        found.add(Document(name, text))
    list(found.pairs())
    bands = PLACES // rows_of(0.7)
    assert 0 < len(asked) <= 2 * 2 * 200 * bands


def test_texts_too_many_to_keep_are_read_again() -> None:
    """Fewer shingles are kept than the texts have; the pairs are the same."""
    chance = random.Random(6)
    base = prose(chance, 60_000)
    texts = {name: reworded(base, chance, 500) for name in "abc"}
    assert {pair[:2] for pair in found_in(texts).pairs()} == {("a", "b"), ("a", "c"), ("b", "c")}


@given(SETS, SETS)
def test_equal_sets_have_equal_signatures_and_these_are_made_of_their_own(
    one: frozenset[int], other: frozenset[int]
) -> None:
    assert signature(one) == signature(sorted(one))
    assert set(signature(one)) <= one
    assert len(signature(one)) == (PLACES if one else 0)
    assert (signature(one) == signature(other)) or one != other


def test_places_agree_as_often_as_the_similarity_says() -> None:
    """The mean over 200 pairs of sets of 60 and 600, half alike, within four standard errors; borrowed places too."""
    chance = random.Random(9)
    for size in (60, 600):
        agreed = 0
        for _ in range(200):
            of = [chance.getrandbits(64) for _ in range(size * 3 // 2)]
            one, other = signature(of[:size]), signature(of[size // 2 :])
            agreed += sum(a == b for a, b in zip(one, other, strict=True))
        assert agreed / (200 * PLACES) == pytest.approx(1 / 3, abs=0.02)


def test_a_signature_keeps_its_band_keys_for_ever() -> None:
    """They may be stored: a change here is a change of every index."""
    of = signature(distinct(shingles("It was a bright cold day in April, and the clocks were striking thirteen.")))
    assert band_keys(of, 8)[:2] == (8352344917270543737, 9641224448644124763)
    assert band_keys(of, 8, kin=1)[0] not in band_keys(of, 8)


@pytest.mark.parametrize(("threshold", "rows"), [(1.0, 64), (0.95, 16), (0.9, 8), (0.8, 4), (0.6, 2), (0.5, 2)])
def test_bands_are_as_narrow_as_the_threshold_needs(threshold: float, rows: int) -> None:
    assert rows_of(threshold) == rows
    assert (1 - threshold**rows) ** (PLACES // rows) <= MISSED


@pytest.mark.parametrize("wrong", [{"threshold": 0.4}, {"threshold": 1.1}, {"neighbours": 0}, {"bands": 16}])
def test_settings_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, MinHashSettings)


def test_a_pair_names_its_texts_in_their_order() -> None:
    assert list(found_in({"b": "one two three", "a": "one two three"}).pairs()) == [Pair("b", "a", 1.0)]
