"""Pages that are not there although the server says so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content.soft404 import Likeness, Presence, Soft404Settings, alike, likeness, presence, without_echo

SETTINGS = Soft404Settings()
MENU = "Home Products Guides News About us Contact Imprint Privacy Terms Jobs Press Newsletter Search Cart Login " * 4
MISSING = f"{MENU} Sorry, there is nothing at {{}}. Try the search, or go back to the home page and begin again."
URL = "http://a.test/guides/oak-chairs?page=2"


def missing_at(url: str) -> Likeness:
    return likeness(MISSING.format(url), url)


PAGE = likeness(f"{MENU} Oak chairs last for decades. " + "Here is how they are oiled, and why it matters. " * 9, URL)
HOME = likeness(
    f"{MENU} Welcome to our shop. " + "We make chairs and tables from oak since ever, by hand. " * 9, "http://a.test/"
)
INVENTED = missing_at("http://a.test/qwx-17-zyx")


def test_a_page_that_answers_as_an_invented_path_does_is_missing() -> None:
    assert presence(missing_at(URL), INVENTED, HOME, SETTINGS) is Presence.MISSING


def test_a_page_with_a_text_of_its_own_is_present() -> None:
    assert presence(PAGE, INVENTED, HOME, SETTINGS) is Presence.PRESENT


def test_nothing_is_said_where_every_address_gives_one_page() -> None:
    """Pages that scripts draw: the real ones and the invented ones have the same words."""
    shell = likeness("Loading the app, please wait", "http://a.test/anything")
    assert presence(shell, shell, shell, SETTINGS) is Presence.UNKNOWN


@pytest.mark.parametrize(
    ("length", "same"), [(100, True), (95, True), (105, True), (94, False), (106, False), (0, False)]
)
def test_a_text_of_another_length_is_another_answer(length: int, same: bool) -> None:
    assert alike(Likeness(b"a", 7, 100), Likeness(b"b", 7, length), SETTINGS) is same


@pytest.mark.parametrize(("simhash", "same"), [(0b111, True), (0b1111, False)])
def test_a_text_with_other_words_is_another_answer(simhash: int, same: bool) -> None:
    assert alike(Likeness(b"a", 0, 100), Likeness(b"b", simhash, 100), SETTINGS) is same


def test_equal_texts_are_alike_however_short() -> None:
    assert alike(Likeness(b"a", 0, 0), Likeness(b"a", 0, 0), SETTINGS)


@pytest.mark.parametrize(
    "piece",
    [
        "http://a.test/guides/oak-chairs?page=2",
        "/guides/oak-chairs",
        "oak-chairs",
        "guides/oak-chairs?page=2",
        "OAK-Chairs",
    ],
)
def test_pieces_of_the_page_s_own_address_are_left_out(piece: str) -> None:
    assert "chairs" not in without_echo(f"There is no {piece} here", URL).lower()


def test_an_address_is_known_as_people_read_it_too() -> None:
    assert without_echo("kein Stück: Stühle", "http://a.test/st%C3%BChle") == "kein Stück: {address}"


@pytest.mark.parametrize("url", ["http://a.test/", "http://a.test/abc", "data:", ""])
def test_short_pieces_are_words_like_others(url: str) -> None:
    assert without_echo("abc is not here", url) == "abc is not here"


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_address_is_taken_for_a_pattern(text: str, url: str) -> None:
    assert isinstance(without_echo(text, url), str)
