"""Nothing from the web reaches a terminal as a control character (CWE-150)."""

from __future__ import annotations

import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.observe.printable import printable, printable_json


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://a/\x1b]0;title\x07", "http://a/\\x1b]0;title\\x07"),
        ("line\r\nnext", "line\\x0d\\x0anext"),
        ("\x9b31m", "\\x9b31m"),
        ("abc\u202egpj.exe", "abc\\u202egpj.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\ud800", "\\ud800"),
        ("bücher.test/ü", "bücher.test/ü"),
        ("x" * 10, "x" * 10),
    ],
)
def test_unsafe_characters_are_escaped_and_others_stay(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_long_text_is_cut_and_says_so() -> None:
    assert printable("x" * 50, limit=10) == "x" * 9 + "…"


@given(st.text(alphabet=st.characters(), max_size=200))
def test_no_control_or_format_character_survives(text: str) -> None:
    shown = printable(text)
    assert not [sign for sign in shown if unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp")]
    shown.encode("utf-8")


@given(st.recursive(st.text(st.characters(exclude_categories=["Cs"])), st.lists, max_leaves=5))
def test_json_for_a_terminal_holds_the_same_and_nothing_unsafe(value: object) -> None:
    shown = printable_json(msgspec.json.encode(value))
    assert msgspec.json.decode(shown) == value
    assert printable(shown, len(shown)) == shown
