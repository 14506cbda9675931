"""What error pages and empty lists say of themselves: the words that their templates use.

A title that says nothing else, or a sentence. Both count in short texts only: long ones tell of errors without being
any. English first, with the commonest words of German, French and Spanish.
"""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Final, NamedTuple

from crawlspace.content.patterns import any_of, compiled


@unique
class Sign(StrEnum):
    """What a page says of itself."""

    NOT_FOUND = "not_found"
    EMPTY_RESULT = "empty_result"
    ERROR = "error"


class Template(NamedTuple):
    """Words by which a kind of page is known; patterns for `patterns.compiled`."""

    sign: Sign
    titles: tuple[str, ...]
    """What a title begins with."""
    sentences: tuple[str, ...]
    """What stands anywhere in the text."""
    most_words: int
    """A text with more words is about something else."""


_THING: Final = any_of("page", "file", "document", "url", "address", "resource", "article", "product", "item")
_WANTED: Final = r"(?: (?:that )?you(?:'re|’re| are| were)? (?:looking for|requested))?"
_FINDS: Final = any_of("results?", "matches", "items", "products", "entries", "records", "posts", "listings", "hits")
_NONE: Final = r"(?:no|0|zero|nothing)"

TEMPLATES: Final = (
    Template(
        Sign.NOT_FOUND,
        titles=(
            r"(?:http |error )*:?404\b",
            rf"(?:error|oops|sorry)?[ :!,-]*(?:{_THING} )?not found\b",
            rf"{_THING} (?:does not|doesn't|doesn’t) exist\b",
            *("seite nicht gefunden", "page (?:introuvable|non trouvée)", "página no encontrada"),
        ),
        sentences=(
            rf"\b{_THING}{_WANTED} (?:was not|could not be|can ?not be|can't be|can’t be) found\b",
            rf"\b{_THING}{_WANTED} (?:does not|doesn't|doesn’t|no longer) exists?\b",
            rf"\b{_THING}{_WANTED} (?:is no longer available|has been (?:removed|deleted))\b",
            rf"\bwe (?:have no such|(?:can|could)(?:n't|n’t| ?not) find (?:the|that|this|your)) {_THING}\b",
            *(r"\berror 404\b", r"\b404 error\b", r"\b404 not found\b", r"\bpage not found\b"),
            *(r"\bseite (?:wurde )?nicht gefunden\b", r"\bpage introuvable\b", r"\bpágina no encontrada\b"),
        ),
        most_words=300,
    ),
    Template(
        Sign.EMPTY_RESULT,
        titles=(rf"{_NONE} (?:search )?{_FINDS}\b", r"nothing (?:was )?found\b"),
        sentences=(
            rf"\b{_NONE} (?:search |matching )?{_FINDS}(?: (?:were|was|have been|has been))? (?:found|matched)\b",
            r"\byour search (?:for [^.!]{1,100} )?(?:did not match|didn't match|returned no|found no|has no)\b",
            rf"\bthere are (?:currently )?no {_FINDS}\b",
            r"\bnothing (?:was )?found\b",
            *(r"\bkeine (?:ergebnisse|treffer)\b", r"\baucun résultat", r"\bno se encontraron resultados\b"),
        ),
        most_words=300,
    ),
    Template(
        Sign.ERROR,
        titles=(
            r"(?:http |error )*:?50[0-4]\b",
            r"(?:internal )?server error\b",
            r"(?:service (?:temporarily )?unavailable|bad gateway|gateway time-?out)\b",
            r"(?:application|runtime|database) error\b",
        ),
        sentences=(
            r"\ban? (?:unexpected |internal |unknown |application )?error (?:has )?occurred\b",
            r"\b(?:internal server error|error establishing a database connection|uncaught exception)\b",
            r"\bservice (?:is )?(?:temporarily )?unavailable\b",
            r"\bsomething went wrong\b",
        ),
        most_words=150,
    ),
)
"""In the order in which they are tried."""

_READY: Final = [
    (template, compiled(rf"^\W*{any_of(*template.titles)}"), compiled(any_of(*template.sentences)))
    for template in TEMPLATES
]
_ANY_TITLE: Final = compiled(rf"^\W*{any_of(*(title for each in TEMPLATES for title in each.titles))}")
_ANY_SENTENCE: Final = compiled(any_of(*(sentence for each in TEMPLATES for sentence in each.sentences)))


def sign_of(title: str, text: str | bytes) -> Sign | None:
    """What a page's title and its text, white space folded, say of it; None when they name no fault."""
    subject = title.encode("utf-8", "replace")
    body = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    # Most pages name none, which two looks tell; counting words takes longer.
    if not (_ANY_TITLE.search(subject) or _ANY_SENTENCE.search(body)):
        return None
    count = body.count(b" ") + 1
    for template, of_title, of_text in _READY:
        if count <= template.most_words and (of_title.search(subject) or of_text.search(body)):
            return template.sign
    return None
