"""The tests of the URL Standard, as far as they are about http and https."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crawlspace.types import Address, Unusable
from crawlspace.urls import CONSERVATIVE, Identity

DATA = Path(__file__).resolve().parents[1] / "data" / "url-whatwg"


def rows(name: str) -> list[Any]:
    """Lone surrogates in the file stay what they are."""
    loaded: list[Any] = json.loads((DATA / name).read_text(encoding="utf-8"))
    assert len(loaded) > 5
    return loaded


def without_user_and_fragment(href: str) -> str:
    scheme, mark, rest = href.partition("#")[0].partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{mark}{authority.rpartition('@')[2]}{slash}{path}"


def test_every_url_of_the_standards_tests_is_read_as_the_standard_reads_it() -> None:
    """The fetch URL is the standard's href without user information and fragment; all else is refused."""
    identity = Identity(CONSERVATIVE)
    for row in rows("urls.json"):
        found = identity.identify(row["input"], None if row["base"] == "about:blank" else row["base"])
        href = row["href"]
        if href is None or not href.startswith(("http://", "https://")):
            assert isinstance(found, Unusable), row
        else:
            assert isinstance(found, Address), row
            assert found.fetch_url == without_user_and_fragment(href), row


def test_every_host_of_the_idna_tests_is_written_as_the_standard_writes_it() -> None:
    identity = Identity(CONSERVATIVE)
    for host, expected in rows("hosts.json"):
        found = identity.identify(f"https://{host}/x")
        assert isinstance(found, Unusable if expected is None else Address), (host, found)
        if isinstance(found, Address):
            assert found.fetch_url == f"https://{expected}/x", host


def test_a_page_of_hosts_is_read_as_each_host_alone() -> None:
    texts = [f"//{host}/x" for host, _ in rows("hosts.json")]
    identity = Identity(CONSERVATIVE)
    together = identity.identify_many(texts, "https://base.test/")
    assert together == [identity.identify(text, "https://base.test/") for text in texts]


@pytest.mark.parametrize("row", rows("query-encodings.json"), ids=lambda row: ascii(row["input"]))
def test_queries_are_sent_in_the_encoding_of_their_page(row: dict[str, Any]) -> None:
    for encoding, expected in row["output"].items():
        found = Identity(CONSERVATIVE).identify(f"https://page.test/?{row['input']}#x", encoding=encoding)
        assert isinstance(found, Address)
        assert found.fetch_url == f"https://page.test/?{expected}", encoding


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        ("/é?é#é", "iso-8859-1", "https://page.test/%C3%A9?%E9"),
        ("/é?é", "utf-8", "https://page.test/%C3%A9?%C3%A9"),
        ("/?é", "UTF-16LE", "https://page.test/?%C3%A9"),
        ("/?é", "no-such-encoding", "https://page.test/?%C3%A9"),
        ("/?é", "rot13", "https://page.test/?%C3%A9"),
        ("/?é", "a\x00b", "https://page.test/?%C3%A9"),
        ("/é", "windows-1252", "https://page.test/%C3%A9"),
        ("/?q=дом", " Windows-1251 ", "https://page.test/?q=%E4%EE%EC"),
        ("/?q=дом", "koi8-r", "https://page.test/?q=%C4%CF%CD"),
        ("/?q=日本", "euc-jp", "https://page.test/?q=%C6%FC%CB%DC"),
        ("/?q=日本", "x-sjis", "https://page.test/?q=%93%FA%96{"),
        ("/?q=日本", "iso-2022-jp", "https://page.test/?q=%1B$BF|K\\%1B(B"),
        ("/?q=中", "gb2312", "https://page.test/?q=%D6%D0"),
        ("/?q=€", "gbk", "https://page.test/?q=%80"),
        ("/?q=한", "euc-kr", "https://page.test/?q=%C7%D1"),
        ("/?q=\ud800", "windows-1252", "https://page.test/?q=%26%2365533%3B"),
        ("/?a=é\n&b=c", "windows-1252", "https://page.test/?a=%E9&b=c"),
        ("/?a=é \n", "windows-1252", "https://page.test/?a=%E9"),
    ],
)
def test_only_the_query_follows_the_page(text: str, encoding: str, expected: str) -> None:
    identity = Identity(CONSERVATIVE)
    found = identity.identify(text, "https://page.test/", encoding=encoding)
    assert isinstance(found, Address)
    assert found.fetch_url == expected
    assert identity.identify_many([text], "https://page.test/", encoding=encoding) == [found]


def test_an_unusable_link_keeps_its_text_whatever_the_encoding() -> None:
    identity = Identity(CONSERVATIVE)
    expected = Unusable("mailto:é?é", "scheme")
    assert identity.identify("mailto:é?é", encoding="koi8-r") == expected
    assert identity.identify_many(["mailto:é?é"], "https://page.test/", encoding="koi8-r") == [expected]
