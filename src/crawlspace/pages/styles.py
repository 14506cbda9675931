"""Addresses in style sheets: what `url()` and `@import` name, as text.

Comments and strings are passed over as the standard's tokenizer passes them; everything else may stand anywhere, so
no rule is understood and none can be broken. Time grows with the length of the text.

Source: CSS Syntax Module Level 3, sections 4.3.4 to 4.3.7.
"""

from __future__ import annotations

import re
from typing import Final

ADDRESSES: Final = 1000
"""Addresses that are taken from one sheet or attribute."""

_STRING: Final = r"\"((?:[^\"\\\n]|\\.)*)\"?|'((?:[^'\\\n]|\\.)*)'?"
_BARE: Final = r"((?:\\[0-9a-f]{1,6}\s?|\\.|[^\s\"'()\\])*)"
_TOKEN: Final = re.compile(
    rf"/\*.*?(?:\*/|\Z)|@import\s*(?:{_STRING})|\burl\(\s*(?:{_STRING}|{_BARE})|(?:{_STRING})", re.S | re.I
)
_ESCAPE: Final = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|\n|(.))", re.S | re.I)
_NAMED: Final = 5
"""Groups of the pattern that hold addresses; those behind them are strings of any other use."""


def addresses(text: str) -> list[str]:
    """Addresses in a style sheet or a style attribute, in order, each once."""
    found: dict[str, None] = {}
    for token in _TOKEN.finditer(text):
        group = token.lastindex
        if group is None or group > _NAMED or not token[group]:
            continue
        found[_unescaped(token[group])] = None
        if len(found) >= ADDRESSES:
            break
    return list(found)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[2] or ""
    number = int(escape[1], 16)
    return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
