"""Fingerprints: what they are made of, and what gives two URLs one key."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from crawlspace.types import Address, RequestSpec, Unusable, host_id
from crawlspace.urls import CONSERVATIVE, Identity, IdentitySettings, policy_from
from crawlspace.urls import keys as keys_module
from crawlspace.urls import reader as reader_module


def known(identity: Identity, text: str, request: RequestSpec | None = None) -> Address:
    found = identity.identify(text, request=request)
    assert isinstance(found, Address)
    return found


def test_an_address_holds_what_is_requested_what_is_compared_and_who_paces_it() -> None:
    found = known(Identity(CONSERVATIVE), "HTTP://u:p@Example.test:8080/b%7e?b=1&a=2&utm_id=3#f")
    assert found.fetch_url == "http://example.test:8080/b%7e?b=1&a=2&utm_id=3"
    assert found.canonical == "http://example.test:8080/b~?a=2&b=1"
    assert found.host == "example.test:8080"
    assert len(found.key) == 16


def test_a_key_never_changes_from_one_version_to_the_next() -> None:
    """Stored crawls hold these very bytes."""
    key = bytes(range(32))
    found = known(Identity(CONSERVATIVE, key), "https://example.test/a")
    host = blake2b(b"example.test", digest_size=6, key=key, person=b"crawlspace.host").digest()
    rest = blake2b(b"\x00https://example.test/a", digest_size=10, key=key, person=b"crawlspace.url").digest()
    assert found.key == host + rest
    assert host_id(found.key) == int.from_bytes(host, "big")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://a.test/", "a.test"),
        ("https://a.test/", "a.test"),
        ("http://a.test:443/", "a.test:443"),
        ("https://a.test:80/", "a.test:80"),
        ("http://a.test./", "a.test"),
        ("http://[2001:DB8::1]:81/", "[2001:db8::1]:81"),
        ("http://0x7f.1/", "127.0.0.1"),
    ],
)
def test_http_and_https_of_one_name_are_one_host_and_other_ports_are_not(url: str, host: str) -> None:
    assert known(Identity(CONSERVATIVE), url).host == host


def test_one_host_has_one_number_and_two_pages_have_two_keys() -> None:
    identity = Identity(CONSERVATIVE)
    first, second, other = (
        known(identity, url).key for url in ("http://a.test/1", "https://a.test/2", "http://b.test/1")
    )
    assert first[:6] == second[:6] != other[:6]
    assert len({first[6:], second[6:], other[6:]}) == 3


def test_every_crawl_has_its_own_keys() -> None:
    assert (
        known(Identity(CONSERVATIVE, b"x"), "http://a.test/").key
        != known(Identity(CONSERVATIVE), "http://a.test/").key
    )


def test_method_and_body_are_part_of_the_key_and_a_plain_get_is_the_plain_one() -> None:
    identity = Identity(CONSERVATIVE)
    url = "http://a.test/"
    plain = known(identity, url)
    for request in (None, RequestSpec(), RequestSpec("get", content_type="text/plain")):
        assert known(identity, url, request) == plain
    specials = [
        RequestSpec("POST"),
        RequestSpec("POST", b"a=1"),
        RequestSpec("POST", b"a=2"),
        RequestSpec("GET", b"a=1"),
        RequestSpec("HEAD"),
    ]
    found = [known(identity, url, request) for request in specials]
    assert len({address.key for address in [plain, *found]}) == 6
    assert {address.key[:6] for address in found} == {plain.key[:6]}
    assert known(identity, url, RequestSpec("post", b"a=1", "text/plain")).key == found[1].key
    assert identity.identify("mailto:x", request=RequestSpec("POST")) == Unusable("mailto:x", "scheme")


def test_the_links_of_a_page_are_known_as_each_would_be_alone() -> None:
    base = "https://u:p@a.test/dir/page?x#y"
    links = [
        *(
            "b",
            "b#1",
            "b#2",
            "",
            "#top",
            "?q",
            "/a b #f",
            "/a b ",
            "//c.test/x",
            "//c.test/x#1",
            "HTTP://C.test:80/%7e",
        ),
        *("mailto:x", "mailto:x", "http://[", "//v:w@a.test/", "/\ud800?\udfff", "//d.test./?b=1&a=2&gclid=3", "b"),
        *(
            "x" * 9000,
            "/" + "y" * 300,
            "/" + "y" * 300,
            "/a/../" * 1400 + "z",
            "//ẞ.test/",
            "//%E1%BA%9E.test/",
            "\t//ẞ.test/",
        ),
    ]
    identity = Identity(CONSERVATIVE)
    alone = [Identity(CONSERVATIVE).identify(link, base) for link in links]
    assert identity.identify_many(links, base) == alone
    assert identity.identify_many(links, base) == alone


def test_the_canonical_form_is_requested_only_where_the_setting_says_so() -> None:
    identity = Identity(policy_from(IdentitySettings(fetch="canonical", hash_routes=True)))
    expected = ("http://a.test/?a=2&b=1", "http://a.test/?a=2&b=1#!r")
    found = known(identity, "http://a.test/?b=1&a=2#!r")
    assert (found.fetch_url, found.canonical) == expected
    assert identity.identify_many(["/?b=1&a=2#!r"], "http://a.test/") == [found]


def test_what_is_remembered_is_bounded_and_never_changes_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "_HOSTS_KEPT", 3)
    monkeypatch.setattr(reader_module, "_SITES_KEPT", 3)
    monkeypatch.setattr(reader_module, "_RECENT_KEPT", 3)
    monkeypatch.setattr(reader_module, "_TEXTS_KEPT", 3)
    links = [f"//h{number % 7}.test/{number % 11}?b={number}&a=1" for number in range(80)]
    identity = Identity(CONSERVATIVE)
    expected = [Identity(CONSERVATIVE).identify(link, "http://a.test/") for link in links]
    for _ in range(2):
        assert identity.identify_many(links, "http://a.test/") == expected
        assert identity.identify_many(links[:2], "http://a.test/f/") == expected[:2]
    assert [identity.identify(link, "http://a.test/") for link in links] == expected


OF_ITS_PAGE = ["", "?c", "#d", " ?c", "\t?c", "http:?c", "http:", "\n", " #d", "HTTP:?c", "http:#d"]
OF_THE_FOLDER = [
    "x",
    "./x",
    "../x?c",
    "/x",
    "//other.test/x",
    "http://other.test/?c",
    "x#d",
    "a\t?c",
    "x:",
    "HTTP://b.test/",
]


@pytest.mark.parametrize("text", OF_ITS_PAGE + OF_THE_FOLDER)
def test_a_link_that_was_read_in_a_folder_means_in_its_next_page_what_it_would_alone(text: str) -> None:
    identity = Identity(CONSERVATIVE)
    pages = [f"http://a.test/{page}" for page in ("f/p?q=1", "f/o", "f/", "f/o#s", "f", "", "g/p", "f/o?q=2")]
    for base in pages * 2:
        assert identity.identify_many([text, text], base) == [Identity(CONSERVATIVE).identify(text, base)] * 2
        assert identity.identify(text, base) == Identity(CONSERVATIVE).identify(text, base)
