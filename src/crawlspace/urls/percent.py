"""Percent-encoding in one spelling: upper-case digits, unreserved characters as they are, all else untouched.

RFC 3986, 6.2.2.1 and 6.2.2.2: `%7e`, `%7E` and `~` name one octet. Reserved characters and their encoded forms are
different data (2.2), so nothing else is decoded, and nothing is encoded that the parser left as it was. A malformed
`%` stays, and a triplet beside it stays encoded, or `%%34%31` would turn into `%41`, another address, and the form
would be no fixed point.
"""

from __future__ import annotations

import re
from typing import Final

_HEX: Final = "0123456789ABCDEFabcdef"
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def _spelling(digits: str) -> str:
    char = chr(int(digits, 16))
    return char if char in _UNRESERVED else f"%{digits.upper()}"


_SPELLINGS: Final = {f"%{high}{low}": _spelling(high + low) for high in _HEX for low in _HEX}
_MAY_CHANGE: Final = re.compile("%(?:[0-9A-F]?[a-f]|2[DE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7E)")
"""Triplets with a small letter or of an unreserved character: most URLs have none, and are left alone at once."""
_TRIPLET: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_LOOSE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_AFTER_LOOSE: Final = re.compile(r"(%(?![0-9A-Fa-f]{2})[0-9A-Fa-f]?)?(%[0-9A-Fa-f]{2})")


def normal(text: str) -> str:
    """`text`, a path, query or fragment, with its percent-encoding in the one spelling."""
    if "%" not in text or not _MAY_CHANGE.search(text):
        return text
    if _LOOSE.search(text):
        return _AFTER_LOOSE.sub(_beside_loose, text)
    return _TRIPLET.sub(lambda triplet: _SPELLINGS[triplet[0]], text)


def _beside_loose(found: re.Match[str]) -> str:
    loose, triplet = found[1], found[2]
    return f"{loose}{triplet.upper()}" if loose else _SPELLINGS[triplet]


_KEPT_CASE: Final = re.compile(r"%[0-9A-F]{2}|[^%]+|%")


def lower(path: str) -> str:
    """`path` in lower case, save the digits of its percent-encoding."""
    return _KEPT_CASE.sub(lambda part: part[0] if part[0][0] == "%" else part[0].lower(), path)
