"""SimHash and its banded index."""

from __future__ import annotations

import random
from array import array
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content.shingles import shingles
from crawlspace.content.significant import kin, significant_fields
from crawlspace.content.simhash import BandedIndex, Near, SimHashSettings, bands, simhash, text_simhash
from crawlspace.content.text import plain_text

VALUES = st.integers(0, 2**64 - 1)
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "content-identity.md"
DISTANCES = st.integers(1, 7)


def flipped(value: int, places: list[int]) -> int:
    for place in places:
        value ^= 1 << place
    return value


@given(st.lists(VALUES, max_size=40))
def test_a_bit_is_set_where_it_is_set_in_more_than_half_of_the_shingles(values: list[int]) -> None:
    found = simhash(memoryview(array("Q", values)))
    for place in range(64):
        votes = sum(value >> place & 1 for value in values)
        assert bool(found >> place & 1) == (votes > len(values) // 2)


WORDS = st.sampled_from(
    ["a", "the", "Foo_1", "é", "ß", "İ", "漢字", "\u3042", "\u2028", "\u0301", "-", "", "x" * 23, "x" * 24, "é" * 12]
)


@given(st.lists(st.tuples(WORDS, st.sampled_from([" ", "", ".", "\n", "\0"])), max_size=40))
def test_the_fingerprint_of_a_text_is_that_of_its_shingles(words: list[tuple[str, str]]) -> None:
    """Made by compiled code where there is some."""
    text = "".join(word + between for word, between in words)
    assert text_simhash(text.encode()) == simhash(shingles(text)) == simhash(shingles(text.encode()))


def test_of_many_words_each_shingle_counts() -> None:
    """More than a byte can count between two sums."""
    for text in ("w " * 1000, "w " * 600 + "z y " * 500, "w " * 255 + "z " * 258):
        assert text_simhash(text.encode()) == simhash(shingles(text))


def test_a_text_keeps_its_fingerprint_for_ever() -> None:
    """Fingerprints are stored: a change here is a change of every crawl directory."""
    assert (
        simhash(shingles("It was a bright cold day in April, and the clocks were striking thirteen."))
        == 0x1C4351081655C5E
    )
    assert simhash(shingles("")) == 0


@given(VALUES, DISTANCES, st.data())
def test_fingerprints_within_the_distance_share_a_band(value: int, distance: int, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, 63), max_size=distance, unique=True))
    assert set(bands(value, distance)) & set(bands(flipped(value, places), distance))


@given(VALUES, DISTANCES)
def test_bands_are_different_keys_of_at_most_35_bits_that_hold_every_bit(value: int, distance: int) -> None:
    keys = bands(value, distance)
    assert len(set(keys)) == len(keys) == distance + 1
    assert max(keys) < 2**35
    assert sum(key & 0xFFFF_FFFF and (key & 0xFFFF_FFFF).bit_count() for key in keys) == value.bit_count()


@pytest.mark.parametrize("distance", [1, 3, 7])
def test_the_index_finds_what_comparing_with_all_finds(distance: int) -> None:
    """Random fingerprints, and clusters around some of them; enough of one band that buckets are read in parts."""
    chance = random.Random(distance)
    values = [chance.getrandbits(64) for _ in range(300)]
    values += [value & ~0xFFFF_FFFF for value in values]
    values += [chance.getrandbits(24) << 32 for _ in range(300)]
    values += [flipped(chance.choice(values), chance.sample(range(64), chance.randint(1, 9))) for _ in range(900)]
    index = BandedIndex(distance)
    first: dict[int, int] = {}
    for number, value in enumerate(values):
        index.add(value, number)
        first.setdefault(value, number)
    for value in chance.sample(values, 200):
        near = {Near((other ^ value).bit_count(), number) for other, number in first.items()}
        assert index.near(value) == sorted(each for each in near if each.distance <= distance)


def test_an_empty_index_finds_nothing() -> None:
    assert BandedIndex().near(5) == []


def test_the_first_of_equal_fingerprints_stands_for_all() -> None:
    index = BandedIndex()
    index.add(7, 1)
    index.add(7, 2)
    assert index.near(7) == [Near(0, 1)]


def test_a_full_bucket_takes_no_more_and_other_bands_still_find_it() -> None:
    """At distance 1 the bands are the lower and the upper 32 bits; the lower is the first."""
    index = BandedIndex(distance=1, bucket_limit=2)
    for number in range(4):
        index.add(number, number)  # the same upper band: full after two
    for number in range(4, 7):
        index.add(number << 32, number)  # the same lower band, as number 0 has: full after one more
    assert index.near(3 << 32 | 3) == []
    assert index.near(1 << 40 | 3) == [Near(1, 3)]
    assert index.near(4 << 32) == [Near(0, 4), Near(1, 0)]
    assert index.near(5 << 32) == [Near(1, 4)]


@pytest.mark.parametrize("distance", [0, 8, "3"])
def test_a_distance_that_no_band_serves_is_refused(distance: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"distance": distance}, SimHashSettings)


def test_at_the_default_distance_nothing_marked_apart_is_merged(
    all_texts: dict[str, str], marked: dict[str, list[list[str]]]
) -> None:
    """Near in SimHash and of one kin: what the crawl calls near. SimHash alone would merge some of them."""
    names = {name for pairs in marked.values() for pair in pairs for name in pair[:2]}
    plain = {name: plain_text(all_texts[name]) for name in names}
    hashed = {name: simhash(shingles(text)) for name, text in plain.items()}
    kins = {name: kin("en", significant_fields(text, given={"title": text[:40]})) for name, text in plain.items()}
    near = [pair for pair in marked["apart"] if (hashed[pair[0]] ^ hashed[pair[1]]).bit_count() <= 3]
    assert near
    assert not [pair for pair in near if kins[pair[0]] == kins[pair[1]]]


def test_the_trade_off_that_the_documents_print_is_what_is_measured(texts: Any) -> None:
    """Pairs within a distance, of those the ones with Jaccard similarity 0.9 or more, and all of these."""
    table = DOCUMENT.read_text(encoding="utf-8")
    hashed = {name: simhash(shingles(plain_text(text))) for name, text in texts.texts.items()}
    names = sorted(hashed)
    apart = {
        frozenset((one, other)): (hashed[one] ^ hashed[other]).bit_count()
        for at, one in enumerate(names)
        for other in names[at + 1 :]
    }
    true = texts.at(0.9)
    which = "licences" if "lic:MIT" in hashed else "revisions"
    for distance in range(1, 8):
        found = {pair for pair, bits in apart.items() if bits <= distance}
        assert f"| {which} | {distance} | {len(found)} | {len(found & true)} | {len(true)} |" in table
