"""What may not differ between near-duplicates: two offers at two prices, two versions of one licence.

Pages that are alike in nearly every word are one page to every measure of similarity, and still are two when the
price, the date or the article number differs. So such fields are read out of the text by rules, or given by who knows
them better (a parser, the title), and only pages in which all are equal form a group. A page also has one language.

Fields are read from text whose volatile parts are masked: the time at which a page was made is not significant. A
field too many only keeps pages apart, a field too few merges what differs; so the rules take much.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from crawlspace.content.patterns import Present, any_of, compiled
from crawlspace.content.volatile import DATE, MONTH, NTH

FieldName = Literal["price", "date", "year", "sku", "version", "clause", "number"]

KIN_BYTES: Final = 8

_AMOUNT: Final = r"[0-9](?:[0-9.,' ]*[0-9])?"
_CODES: Final = r"(?:usd|eur|gbp|chf|jpy|cny|inr|cad|aud|sek|nok|dkk|pln|czk|brl)"

_PATTERNS: Final[Mapping[FieldName, str]] = {
    "price": rf"(?:[$€£¥₹]|\b{_CODES}) ?{_AMOUNT}|{_AMOUNT} ?(?:[€£¥₹]|(?:{_CODES}|euros?|dollars?|pounds?)\b)",
    "date": rf"\b(?:{DATE}|{NTH} {MONTH}|{MONTH} {NTH}\b)",
    "year": r"\b(?:19|20)[0-9]{2}(?: ?[-–/] ?(?:(?:19|20)?[0-9]{2})\b)?",
    "sku": (
        r"\b(?:sku|isbn(?:-1[03])?|issn|ean|upc|gtin|asin|mpn|(?:item|article|part|model|product|order|catalogue)"
        r" (?:no|number|code))\b\.? ?[:=#]? ?[a-z./_-]{0,16}[0-9][0-9a-z./_-]*"
    ),
    "version": any_of(
        r"\b(?:v\.? ?|ver\.? |versions? |release |revision )[0-9]+(?:\.[0-9]+)*(?:-?[a-z]+[0-9]*)?\b",
        r"\b[a-z]+-[0-9]+(?:\.[0-9]+)+\b",
        r"\([a-z][a-z+-]*\) [0-9]+(?:\.[0-9]+)+\b",
    ),
    "clause": r"(?:^|[.;:,)!?] |\b(?:section|article|clause|§) ?)[0-9]{1,3}(?:\.[0-9]{1,3})*[.)]",
    "number": r"[0-9](?:[0-9.,]*[0-9])?",
}
"""Each field's pattern in the syntax of RE2."""

_COMPILED: Final = {name: compiled(pattern) for name, pattern in _PATTERNS.items()}


class SignificantSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which differences keep near-duplicates apart."""

    fields: Annotated[
        tuple[FieldName, ...],
        Meta(
            description="Fields read from the text of pages; pages in which one differs are never near-duplicates. "
            "`number` is every number there is."
        ),
    ] = ("price", "date", "year", "sku", "version", "clause")


Fields = Mapping[str, tuple[str, ...]]
"""Distinct values by the name of their field, sorted, white space folded, in lower case; no field without values."""


def significant_fields(
    text: str | bytes,
    names: tuple[FieldName, ...] = SignificantSettings().fields,
    given: Mapping[str, str] | None = None,
) -> Fields:
    """The significant fields of a text with its volatile parts masked, and those given, such as `title`."""
    plain = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    fields: dict[str, tuple[str, ...]] = {}
    # Most texts hold one or two of them: to find out which takes no longer than to look for one.
    present = _present(names).of(plain)
    for place, name in enumerate(names):
        if place in present:
            fields[name] = _values(found[0].decode() for found in _COMPILED[name].finditer(plain))
    # One that is given stands in place of the rule's of its name: who gives it knows better.
    for given_name, value in (given or {}).items():
        fields[given_name] = _values([value])
    return {name: values for name, values in fields.items() if values}


@lru_cache(maxsize=16)
def _present(names: tuple[FieldName, ...]) -> Present:
    return Present([_PATTERNS[name] for name in names])


def _values(found: Iterable[str]) -> tuple[str, ...]:
    folded = {" ".join(value.lower().split()).strip(".,;:)!? ") for value in found}
    return tuple(sorted(folded - {""}))


def differing(one: Fields, other: Fields) -> list[str]:
    """Names of the fields in which two pages differ: the reasons not to merge them. One that only one has differs."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def kin(language: str, fields: Fields) -> int:
    """A number of 64 bits that is equal for pages that may be near-duplicates: same language, same fields.

    Part of the key under which near-duplicates are looked up, so that those that may not merge never meet.
    """
    hashed = blake2b(language.lower().encode("utf-8", "replace"), digest_size=KIN_BYTES)
    for name in sorted(fields):
        hashed.update("\n".join(("", name, *fields[name])).encode("utf-8", "replace") + b"\0")
    return int.from_bytes(hashed.digest(), "big")
