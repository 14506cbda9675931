"""What a page and its headers say to crawlers is read as browsers and the large crawlers read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.exchange import Headers
from crawlspace.pages.meta import Directives, Refresh, header_links, read_directives, read_refresh, read_reservation

DATA = Path(__file__).parent.parent / "data" / "html-links"


@pytest.mark.parametrize("row", json.loads((DATA / "meta-refresh.json").read_text())["content_attribute"])
def test_a_refresh_is_read_by_the_shared_declarative_steps(row: dict[str, object]) -> None:
    read = read_refresh(str(row["content"]))
    assert (read is not None) == row["refresh"]
    if read is not None:
        target = read.target.strip().replace("\t", "").replace("\n", "").replace("\r", "")
        assert (read.delay, target or None) == (row["delay"], row["target"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-0; url=/x", None),
        ("+1; url=/x", None),
        ("; url=/x", None),
        ("", None),
        ("0;url=/x", Refresh(0, "/x")),
        (".5;url=/x", Refresh(0, "/x")),
        ("5; url='/x'y", Refresh(5, "/x")),
        ("9" * 400, Refresh(999_999_999, "")),
    ],
)
def test_a_refresh_needs_a_number_first(text: str, expected: Refresh | None) -> None:
    assert read_refresh(text) == expected


@pytest.mark.parametrize(
    ("texts", "noindex", "nofollow"),
    [
        ([], False, False),
        (["noindex"], True, False),
        (["NoFollow , index"], False, True),
        (["none"], True, True),
        (["all"], False, False),
        (["noindex", "nofollow"], True, True),
        (["otherbot: noindex, nofollow"], False, False),
        (["CrawlSpace: noindex"], True, False),
        (["*: nofollow"], False, True),
        (["otherbot: noindex, crawlspace: nofollow"], False, True),
        (["crawlspace: nofollow, otherbot: noindex"], False, True),
        (["unavailable_after: 25 Jun 2030 15:00:00 PST, noindex"], True, False),
        (["max-snippet:-1, nofollow"], False, True),
        (["noindexing"], False, False),
    ],
)
def test_directives_hold_for_everyone_or_for_whom_they_name(texts: list[str], noindex: bool, nofollow: bool) -> None:
    assert read_directives(texts, "crawlspace") == Directives(noindex, nofollow)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([b'<https://a.test/x>; rel="canonical"'], ["https://a.test/x"]),
        ([b"</y>; rel=canonical"], ["/y"]),
        ([b'</a>; rel="next", </b>; title="x, y"; rel="canonical nofollow"'], ["/b"]),
        ([b"</a>; rel=next", b"</b>; rel=Canonical"], ["/b"]),
        ([b"</a>; rel=canonicals"], []),
        ([b"</a>"], []),
        ([b"nonsense"], []),
    ],
)
def test_link_headers_are_found_by_relation(values: list[bytes], expected: list[str]) -> None:
    assert header_links(Headers(tuple((b"Link", value) for value in values)), "canonical") == expected


@given(st.text(max_size=100))
def test_no_text_is_too_odd_to_be_read(text: str) -> None:
    refresh = read_refresh(text)
    assert refresh is None or refresh.delay >= 0
    assert read_directives([text], "x") in [Directives(a, b) for a in (True, False) for b in (True, False)]


@pytest.mark.parametrize(
    ("texts", "noai", "noimageai"),
    [
        (["noai"], True, False),
        (["NOAI, noimageai"], True, True),
        (["otherbot: noai"], False, False),
        (["crawlspace: noimageai"], False, True),
        (["none"], False, False),
    ],
)
def test_opt_outs_from_training_are_read(texts: list[str], noai: bool, noimageai: bool) -> None:
    directives = read_directives(texts, "crawlspace")
    assert (directives.noai, directives.noimageai) == (noai, noimageai)


@pytest.mark.parametrize(
    ("reserved", "policies", "expected"),
    [
        ([], [], (None, "")),
        (["1"], ["https://a.test/terms"], (True, "https://a.test/terms")),
        ([" 0 "], ["", " /terms "], (False, "/terms")),
        (["yes", "1", "0"], [], (True, "")),
    ],
)
def test_a_reservation_of_rights_is_read(
    reserved: list[str], policies: list[str], expected: tuple[bool | None, str]
) -> None:
    assert read_reservation(reserved, policies) == expected
