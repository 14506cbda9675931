"""What error pages and empty lists say of themselves."""

from __future__ import annotations

import pytest

from crawlspace.content.templates import TEMPLATES, Sign, sign_of

LONG = "An essay on how servers answer, and on what readers make of it. " * 40


@pytest.mark.parametrize(
    ("title", "text", "sign"),
    [
        ("404 Not Found", "nginx", Sign.NOT_FOUND),
        ("Error 404 - Shop", "", Sign.NOT_FOUND),
        ("HTTP 404", "", Sign.NOT_FOUND),
        ("Page not found | Shop", "Home", Sign.NOT_FOUND),
        ("Oops! Page Not Found", "", Sign.NOT_FOUND),
        ("This does not matter", "The page you are looking for could not be found.", Sign.NOT_FOUND),
        ("", "The requested URL was not found on this server.", Sign.NOT_FOUND),
        ("", "Sorry, we have no such page.", Sign.NOT_FOUND),
        ("", "Sorry, we couldn't find that page", Sign.NOT_FOUND),
        ("", "This product is no longer available.", Sign.NOT_FOUND),
        ("", "The article you requested doesn’t exist.", Sign.NOT_FOUND),
        ("", "Die Seite wurde nicht gefunden.", Sign.NOT_FOUND),
        ("", "Página no encontrada", Sign.NOT_FOUND),
        ("No results found", "", Sign.EMPTY_RESULT),
        ("Search", "0 results found for chairs", Sign.EMPTY_RESULT),
        ("Search", "Your search for oak chairs did not match any documents.", Sign.EMPTY_RESULT),
        ("Shop", "No products were found matching your selection.", Sign.EMPTY_RESULT),
        ("Shop", "There are currently no items in this list", Sign.EMPTY_RESULT),
        ("Suche", "Keine Treffer", Sign.EMPTY_RESULT),
        ("Recherche", "Aucun résultat", Sign.EMPTY_RESULT),
        ("500 Internal Server Error", "", Sign.ERROR),
        ("Service Unavailable", "", Sign.ERROR),
        ("Shop", "Error establishing a database connection", Sign.ERROR),
        ("Shop", "Something went wrong. Try again.", Sign.ERROR),
        ("Shop", "An unexpected error has occurred.", Sign.ERROR),
        ("Shop", "Oak chairs, 49 EUR, in stock", None),
        ("Hall 404", "Our rooms", None),
        ("The Page brothers", "found a shop", None),
        ("10 results", "10 results found for chairs", None),
        ("Nothing compares", "a song", None),
        ("", "", None),
    ],
)
def test_a_short_page_is_known_by_its_words(title: str, text: str, sign: Sign | None) -> None:
    assert sign_of(title, text) is sign


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.sign)
def test_a_long_text_tells_of_errors_without_being_one(template: object) -> None:
    for sentence in ("page not found", "no results found", "something went wrong"):
        assert sign_of(sentence.capitalize(), f"{LONG} {sentence} {LONG}") is None


def test_what_says_too_much_for_one_kind_of_page_may_still_be_none_of_another() -> None:
    said = "Something went wrong, and here is what. " + "word " * 200
    assert sign_of("", said) is None
    assert sign_of("", said + "No results found.") is Sign.EMPTY_RESULT


def test_every_sign_has_a_template() -> None:
    assert {template.sign for template in TEMPLATES} == set(Sign)
