"""Style sheets give the addresses they load."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.pages.styles import ADDRESSES, addresses


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a{background:url(/a.png)}", ["/a.png"]),
        ("a{background:URL( '/a b.png' )}", ["/a b.png"]),
        ('@font-face{src:url("/f.woff2") format("woff2"),url(/f.woff)}', ["/f.woff2", "/f.woff"]),
        ("@import \"/1.css\"; @import url(/2.css) print;@IMPORT'/3.css'", ["/1.css", "/2.css", "/3.css"]),
        ("/* url(/no) */a{b:url(/a)}/* @import '/no'", ["/a"]),
        ("a{content:'url(/no)';b:\"@import '/no'\"}", []),
        ("a{b:url()}c{d:url( )}", []),
        ("a{b:url(/a)}c{d:url(/a)}", ["/a"]),
        (r"a{b:url(\2f x\)y)}", ["/x)y"]),
        (r"a{b:url('a\'b\0 c\110000 d')}", ["a'b\ufffdc\ufffdd"]),
        ("a{b:url('/a\\\nb')}", ["/ab"]),
        ("a{b:url('unfinished", ["unfinished"]),
        ("curl(/no)", []),
        ("", []),
    ],
)
def test_addresses_are_taken_from_url_and_import(text: str, found: list[str]) -> None:
    assert addresses(text) == found


def test_no_more_addresses_are_taken_than_a_sheet_can_need() -> None:
    assert len(addresses("".join(f"url(/{number})" for number in range(ADDRESSES + 10)))) == ADDRESSES


@pytest.mark.parametrize("part", ["/*", "url(", "url( ", '"', "'\\", "@import ", "url('", "\\"])
def test_time_grows_with_the_length(part: str) -> None:
    before = time.process_time()
    addresses(part * (300_000 // len(part)))
    assert time.process_time() - before < 2


@given(
    st.lists(st.sampled_from(["url(", ")", "'", '"', "\\", "/*", "*/", "@import ", "a", " ", "\n", "ä", "110000 "]))
)
def test_any_text_is_read_without_an_exception(parts: list[str]) -> None:
    assert all(isinstance(address, str) for address in addresses("".join(parts)))
