"""Keys of URLs, as readers of web archives make them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.archive.surt import QUERY_LIMIT, surt, surt_of
from crawlspace.exchange import Capture

FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://example.com", "com,example)/"),
        ("http://www.Example.com/A?c=1&b=2", "com,example)/a?b=2&c=1"),
        ("https://www7.example.co.uk:443/a/", "uk,co,example)/a"),
        ("http://example.com:8080/a//b", "com,example:8080)/a/b"),
        ("https://example.com:80/", "com,example:80)/"),
        ("http://192.0.2.7/x", "7,2,0,192)/x"),
        ("http://[2001:db8::7]:81/x", "2001:db8::7:81)/x"),
        ("http://[::1]/", "::1)/"),
        ("http://me:secret@example.com/", "com,example)/"),
        ("http://b\u00fccher.de/\u00fc?\u00fc=1", "de,xn--bcher-kva)/%c3%bc?%c3%bc=1"),
        ("http://example.com/a%20b/%7Ec%2541", "com,example)/a%20b/~ca"),
        ("http://example.com/a%23b?x%23y#z", "com,example)/a%23b?x%23y"),
        ("http://example.com/?", "com,example)/"),
        ("http://example.com/a?b&a-c=1&a=2", "com,example)/a?a=2&a-c=1&b"),
        ("http://example.com/a?x=1&PHPSESSID=" + "0aB1" * 8, "com,example)/a?&x=1"),
        ("http://example.com/a?sid=" + "0" * 32 + "&x=1", "com,example)/a?x=1"),
        ("http://example.com/(S(" + "a1b2" * 6 + "))/x.aspx?y", "com,example)/x.aspx?y"),
        ("http://www.com/", "com)/"),
        ("http://..odd..name../", "name,odd)/"),
        ("http://example.com/a\tb\r\nc", "com,example)/abc"),
        ("ftp://example.com:21/A", "com,example)/a"),
        ("dns:example.com", "dns:example.com"),
        ("urn:a b", "urn:a%20b"),
    ],
)
def test_a_key_is_what_other_readers_look_for(url: str, key: str) -> None:
    assert surt(url) == key


@given(st.text())
def test_a_key_of_any_text_can_be_searched_in_an_index(text: str) -> None:
    """No blank, no control, nothing beyond ASCII: the blank that ends it sorts before all of it."""
    for url in (text, f"http://{text}", f"http://a.test/{text}", f"http://a.test/?{text}"):
        assert all("!" <= char <= "~" for char in surt(url))


@given(st.lists(st.from_regex(r"[a-z]{1,3}=[a-z]{0,3}", fullmatch=True), min_size=1), st.randoms())
def test_the_order_of_parameters_makes_no_difference(pairs: list[str], chance: object) -> None:
    turned = list(reversed(pairs))
    assert surt("http://a.test/?" + "&".join(pairs)) == surt("http://a.test/?" + "&".join(turned))


def test_a_text_made_to_be_unescaped_for_ever_is_given_up() -> None:
    assert surt("http://a.test/%" + "25" * 5000 + "41").startswith("test,a)/%25")


@pytest.mark.parametrize(
    ("method", "kind", "body", "key", "told"),
    [
        ("GET", "", b"", "test,a)/p?q", ""),
        ("HEAD", "", b"", "test,a)/p?__wb_method=head&q", ""),
        ("POST", "", b"", "test,a)/p?__wb_method=post&q", ""),
        ("POST", FORM, b"B=%26&a=x+y", "test,a)/p?&__wb_method=post&a=x%20y&b=&q", "B=&&a=x y"),
        ("POST", FORM, b"\xff", "test,a)/p?__wb_method=post&__wb_post_data=/w==&q", "__wb_post_data=/w=="),
        (
            "POST",
            "application/json",
            b'{"a":[1,{"a":2.0}],"b":{"c":true,"d":null}}',
            "test,a)/p?__wb_method=post&a=1&a.2_=2&c=true&d=null&q",
            "a=1&a.2_=2&c=true&d=null",
        ),
        ("POST", "application/json", b"{broken", "test,a)/p?__wb_method=post&q", ""),
        ("POST", "text/plain", b'{"a":"1.5"}', "test,a)/p?__wb_method=post&a=1.5&q", "a=1.5"),
        ("POST", "text/plain", b"hi", "test,a)/p?__wb_method=post&__wb_post_data=agk=&q", "__wb_post_data=aGk="),
        ("PUT", "image/png", b"hi", "test,a)/p?__wb_method=put&__wb_post_data=agk=&q", "__wb_post_data=aGk="),
        ("DELETE", "", b"hi", "test,a)/p?__wb_method=delete&q", ""),
    ],
)
def test_a_request_that_is_no_get_is_part_of_the_key(
    method: str, kind: str, body: bytes, key: str, told: str
) -> None:
    head = f"{method} /p?q HTTP/1.1\r\nHost: a.test\r\n{f'content-type: {kind}' if kind else 'X: y'}\r\n\r\n"
    capture = Capture(
        "http://a.test/p?q", 0, 200, head.encode(), body, b"HTTP/1.1 200 OK\r\n\r\n", b"", method=method
    )
    assert surt_of(capture) == (key, told)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (FORM, b"x=" + b"y" * 100_000),
        ("application/json", b'{"x":[' + b",".join([b"1"] * 100_000) + b"]}"),
        ("application/json", b"[" * 100_000 + b"]" * 100_000),
        ("image/png", bytes(100_000)),
    ],
)
def test_a_large_body_gives_a_key_of_bounded_length(kind: str, body: bytes) -> None:
    head = f"POST / HTTP/1.1\r\nContent-Type: {kind}\r\n\r\n".encode()
    _, told = surt_of(Capture("http://a.test/", 0, 200, head, body, b"", b"", method="POST"))
    assert len(told) <= QUERY_LIMIT
