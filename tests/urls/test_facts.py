"""What other normalisers and public bug reports have settled: which spellings are one page, and which are two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crawlspace.types import Address, Unusable
from crawlspace.urls import AGGRESSIVE, CONSERVATIVE, Identity, UrlError, canonicalize, canonicalize_many

DATA = Path(__file__).resolve().parents[1] / "data" / "url-canonical"
IDENTITY = Identity(CONSERVATIVE)

STRAY_PERCENT = {"canon-0667", "canon-0680"}
"""One tool decodes `%%300` to `%00`; there a malformed `%` would swallow data, so both stay as they are."""


def rows(name: str) -> list[Any]:
    loaded: list[Any] = json.loads((DATA / name).read_text(encoding="utf-8"))
    assert len(loaded) > 5
    return loaded


def test_spellings_share_a_key_exactly_when_they_name_one_page() -> None:
    for group in rows("identity.json"):
        addresses = [IDENTITY.identify(url) for url in group["urls"]]
        keys = {address.key for address in addresses if isinstance(address, Address)}
        forms = {address.canonical for address in addresses if isinstance(address, Address)}
        assert all(isinstance(address, Address) for address in addresses), group
        assert len(keys) == len(forms) == (1 if group["same"] else len(group["urls"])), group


def test_what_follows_from_the_standards_shares_a_key_with_its_expected_form() -> None:
    for row in rows("facts.json"):
        found = IDENTITY.identify(row["input"])
        expected = row["expected"] and IDENTITY.identify(row["expected"])
        if expected is None:
            assert isinstance(found, Unusable), row
        elif isinstance(expected, Address) and row["id"] not in STRAY_PERCENT:
            assert isinstance(found, Address), row
            assert found.key == expected.key, row


@pytest.mark.parametrize(("text", "expected"), rows("ipv4.json"))
def test_ipv4_addresses_are_read_in_all_their_forms(text: str, expected: str | None) -> None:
    if text == "0000xa":
        expected = text  # by the URL Standard this is a name: no number has two leading zeros and an x
    found = IDENTITY.identify(f"http://{text}/")
    assert (found.host if isinstance(found, Address) else None) == expected


def test_dot_segments_are_resolved() -> None:
    wrong = [
        (path, found, expected)
        for path, expected in rows("path-dots.json")
        if (found := canonicalize(f"http://host.test{path}")) != f"http://host.test{expected}"
    ]
    assert not wrong


def test_odd_texts_are_refused_or_reach_a_fixed_point() -> None:
    for text in rows("idempotence.json"):
        for policy in (CONSERVATIVE, AGGRESSIVE):
            form = canonicalize_many([text], policy=policy)[0]
            assert form is None or canonicalize(form, policy=policy) == form


# -- after public bug reports -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://do.test:80/a", "http://do.test/a"),
        ("https://do.test:442/a", "https://do.test:442/a"),
        ("https://do.test:443/a", "https://do.test/a"),
        ("http://10.2.3.4/hello", "http://10.2.3.4/hello"),
        ("https://shop.test/black%3B-G1202.html", "https://shop.test/black%3B-G1202.html"),
        ("https://shop.test/indigo-%26-gold", "https://shop.test/indigo-%26-gold"),
        ("https://shop.test/a%2Cb", "https://shop.test/a%2Cb"),
        ("https://news.test/what's-on/today", "https://news.test/what's-on/today"),
        ("https://тест.тест:33", "https://xn--e1aybc.xn--e1aybc:33/"),
        ("http://user@bücher.test:8080/p", "http://xn--bcher-kva.test:8080/p"),
        ("http://127。0。0。1/admin", "http://127.0.0.1/admin"),
        ("http://１２７.0.0.1/", "http://127.0.0.1/"),
        ("https://site.test/to/foo%20bar%3a%20%2376#frag", "https://site.test/to/foo%20bar%3A%20%2376"),
        ("https://info@site.test", "https://site.test/"),
        ("http://forum.test/index.php?/topic/57-abc/&do=last", "http://forum.test/index.php?/topic/57-abc/&do=last"),
        ("http://shop.test/list?&p=2", "http://shop.test/list?p=2"),
        ("http://site.test/a%%30%30", "http://site.test/a%%300"),
        ("http://site.test/100%", "http://site.test/100%"),
        ("http://site.test/x%zz", "http://site.test/x%zz"),
    ],
)
def test_the_canonical_form_is_the_one_that_a_bug_report_asked_for(text: str, expected: str) -> None:
    assert canonicalize(text) == expected
    assert canonicalize(expected) == expected


@pytest.mark.parametrize(
    "pair",
    [
        ("https://shop.test/Products/Item-A", "https://shop.test/products/item-a"),
        ("https://cdn.test/f?sig=a%28b", "https://cdn.test/f?sig=a(b"),
        ("https://site.test/?id=1", "https://site.test/?id=01"),
        ("https://site.test/?a", "https://site.test/?a="),
        ("https://site.test/content", "https://site.test/content/"),
        ("https://site.test/?q=a+b", "https://site.test/?q=a%20b"),
        ("https://site.test/%%34%31", "https://site.test/A"),
        ("https://site.test/%%34%31", "https://site.test/%41"),
    ],
)
def test_pages_that_differ_stay_apart(pair: tuple[str, str]) -> None:
    assert canonicalize(pair[0]) != canonicalize(pair[1])


@pytest.mark.parametrize(
    ("base", "text", "expected"),
    [
        ("https://docs.test/core/quickstart/", "../docker-deployment", "https://docs.test/core/docker-deployment"),
        ("https://docs.test/start.html", "impressum.html", "https://docs.test/impressum.html"),
        ("https://site.test/p", "", "https://site.test/p"),
        ("https://site.test/p", "#top", "https://site.test/p"),
        ("https://site.test/p", " \n/ok ", "https://site.test/ok"),
        ("https://site.test/p", "/li\nne", "https://site.test/line"),
        ("https://site.test/p?a", "/x #f", "https://site.test/x%20"),
        ("https://site.test/p?a", "?b #f", "https://site.test/p?b%20"),
    ],
)
def test_links_are_resolved_against_their_page(base: str, text: str, expected: str) -> None:
    assert canonicalize(text, base) == expected
    assert canonicalize_many([text, text], base) == [expected, expected]


def test_no_link_can_carry_a_second_request() -> None:
    form = canonicalize("/a HTTP/1.1\r\nHost: evil.test\r\n\r\nGET /b", "http://site.test/")
    assert all("!" <= char <= "~" for char in form)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n\t ", "empty"),
        ("foo/bar", "syntax"),
        ("//host.test/", "syntax"),
        ("mailto:a@site.test", "scheme"),
        ("javascript:window.print();", "scheme"),
        ("tel:1", "scheme"),
        ("ftp://site.test/", "scheme"),
        ("ws://site.test/", "scheme"),
        ("http://", "host"),
        ("http://[::1", "host"),
        ("http://[IP-Address", "host"),
        ("http://www.site.test]", "host"),
        ("http://a b/", "host"),
        ("http://user@/", "host"),
        ("http://site.test:99999/", "syntax"),
        ("http://site.test:8x/", "syntax"),
        ("http://:80/", "host"),
        ("http://site.test/" + "a" * 8192, "too_long"),
        ("http://site.test/" + "é" * 3000, "too_long"),
        ("http://site.test/" + "/." * 5000, "too_long"),
    ],
)
def test_every_refusal_has_its_reason(text: str, reason: str) -> None:
    assert IDENTITY.identify(text) == Unusable(text, reason)
    with pytest.raises(UrlError) as caught:
        canonicalize(text)
    assert caught.value.reason == reason
    assert isinstance(caught.value, ValueError)
    assert canonicalize_many([text]) == [None]


@pytest.mark.parametrize(
    ("base", "text", "reason"),
    [
        ("https://site.test/", "//[x/", "host"),
        ("https://site.test/", "\\\\a:x/", "syntax"),
        ("data:text/html,x", "a", "scheme"),
        ("no base", "https://site.test/", "syntax"),
    ],
)
def test_a_refusal_against_a_base_has_its_reason(base: str, text: str, reason: str) -> None:
    assert IDENTITY.identify(text, base) == Unusable(text, reason)
    assert IDENTITY.identify_many([text], base) == [Unusable(text, reason)]
    assert canonicalize_many([text], base) == [None]
    with pytest.raises(UrlError, match=reason):
        canonicalize(text, base)


def test_a_bad_link_costs_no_other() -> None:
    links = ["http://[IP-Address", "http://www.site.test]", "http://[http//w.site.test/r", "/next"]
    assert canonicalize_many(links, "http://forum.test/") == [None, None, None, "http://forum.test/next"]


def test_brackets_before_an_at_sign_are_a_user_name_as_in_browsers() -> None:
    assert canonicalize("http://[email=%22info@x.test/") == "http://x.test/"


def test_a_long_fragment_makes_no_url_too_long() -> None:
    assert canonicalize("http://site.test/a#" + "x" * 100_000) == "http://site.test/a"
    assert canonicalize_many(["/a#" + "x" * 100_000], "http://site.test/") == ["http://site.test/a"]


def test_a_message_shows_no_more_than_a_line_of_a_long_text() -> None:
    with pytest.raises(UrlError) as caught:
        canonicalize("http://site.test/" + "a" * 50_000)
    assert len(str(caught.value)) < 200
