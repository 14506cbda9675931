"""What is sent, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchRequest
from crawlspace.fetch.request import Composer, Unsendable, destination_of, origin_from

COMPOSER = Composer("crawlspace-test/1 (+https://example.org/bot)")


def head(url: str = "http://a.test/", **rest: object) -> bytes:
    return COMPOSER.compose(FetchRequest(url, **rest), destination_of(url))  # type: ignore[arg-type]


def test_a_plain_request_names_its_host_and_us() -> None:
    assert head("http://a.test:8080/p?q=%20&r") == (
        b"GET /p?q=%20&r HTTP/1.1\r\n"
        b"Host: a.test:8080\r\n"
        b"User-Agent: crawlspace-test/1 (+https://example.org/bot)\r\n"
        b"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
        b"Accept-Encoding: gzip, deflate, br, zstd\r\n"
        b"\r\n"
    )


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://a.test/", ("http", "a.test", 80)),
        ("https://a.test/", ("https", "a.test", 443)),
        ("http://a.test:8080/x", ("http", "a.test", 8080)),
        ("http://[2001:db8::1]/", ("http", "[2001:db8::1]", 80)),
        ("http://[2001:db8::1]:8080/", ("http", "[2001:db8::1]", 8080)),
        ("https://xn--bcher-kva.test/", ("https", "xn--bcher-kva.test", 443)),
        ("http://a_b.test./", ("http", "a_b.test.", 80)),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: tuple[str, str, int]) -> None:
    assert destination_of(url).origin == origin


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a.test",
        "ftp://a.test/",
        "file:///etc/passwd",
        "http:///x",
        "http://a.test",
        "http://a.test?q",
        "http://u@a.test/",
        "http://u:p@a.test/",
        "http://127.0.0.1:6666\\@1.1.1.1/",
        "http://A.test/",
        "http://a.test:0/",
        "http://a.test:65536/",
        "http://a.test:x/",
        "http://[::1/",
        "http://[fe80::1%25eth0]/",
        "http://a test/",
        "http://a.test/#f",
        "http://a.test/a b",
        "http://a.test/\r\nX: y",
        "http://a.test/\n",
        "http://a.test/\u00e4",
        "http://a.test\r\n/",
    ],
)
def test_what_is_no_url_in_its_one_form_is_not_sent(url: str) -> None:
    with pytest.raises(Unsendable):
        head(url)


def test_own_fields_replace_defaults_of_the_same_name() -> None:
    sent = head(headers=(("accept", "text/plain"), ("Authorization", "Basic eDp5"), ("X-A", "1"), ("X-A", "2")))
    assert b"Accept: text/html" not in sent
    assert sent.endswith(b"accept: text/plain\r\nAuthorization: Basic eDp5\r\nX-A: 1\r\nX-A: 2\r\n\r\n")
    assert sent.count(b"Host: ") == 1


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [("POST", b"a=1", b"3"), ("POST", b"", b"0"), ("GET", b"x", b"1"), ("HEAD", b"", None)],
)
def test_a_body_has_its_length(method: str, body: bytes, length: bytes | None) -> None:
    sent = head(method=method, body=body)
    assert sent.startswith(method.encode() + b" / HTTP/1.1\r\n")
    assert (b"Content-Length: %s\r\n" % length in sent) if length else (b"Content-Length" not in sent)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X", "a\r\nY: b"),
        ("X", "a\nb"),
        ("X", "a\0b"),
        ("X", "\u20ac"),
        ("X: y\r\nZ", "a"),
        ("", "a"),
        ("X ", "a"),
        ("Content-Length", "5"),
        ("transfer-encoding", "chunked"),
        ("Connection", "close"),
    ],
)
def test_no_field_can_end_its_line_or_change_the_framing(name: str, value: str) -> None:
    with pytest.raises(Unsendable):
        head(headers=((name, value),))


@pytest.mark.parametrize("method", ["", "GET /x HTTP/1.1\r\n", "G T", "CONNECT"])
def test_a_method_is_one_word_and_opens_no_tunnel(method: str) -> None:
    with pytest.raises(Unsendable):
        head(method=method)


def test_a_user_agent_that_no_header_may_hold_is_a_mistake_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match="user_agent"):
        Composer("a\r\nb")


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_a_head_has_as_many_lines_as_were_meant(url: str, name: str, value: str) -> None:
    try:
        sent = head("http://a.test/" + url, headers=((name, value),))
    except Unsendable:
        return
    assert (
        sent.count(b"\r\n")
        == sent.count(b"\n")
        == sent.count(b"\r")
        == 7 - (name.lower() in ("host", "user-agent", "accept", "accept-encoding"))
    )


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://a.test", ("https", "a.test", 443)),
        ("HTTPS://A.test/", ("https", "a.test", 443)),
        ("http://[::1]:8080", ("http", "[::1]", 8080)),
    ],
)
def test_a_setting_names_an_origin(text: str, origin: tuple[str, str, int]) -> None:
    assert origin_from(text) == origin


@pytest.mark.parametrize(
    "text", ["a.test", "ftp://a.test", "https://a.test/path", "https://a.test:0", "", "https://b\u00fc.test"]
)
def test_what_is_no_origin_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="no origin") as caught:
        origin_from(text)
    assert repr(text) in str(caught.value)


def test_a_login_in_place_of_an_origin_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="no origin") as caught:
        origin_from("https://user:hush@a.test")
    assert "hush" not in str(caught.value)


def test_a_secret_replaces_a_field_of_the_request_and_a_proxy_gets_the_whole_url() -> None:
    request = FetchRequest("http://a.test/x", headers=(("cookie", "a=1"), ("X-A", "1")))
    sent = COMPOSER.compose(request, destination_of(request.url), {"Cookie": "a=1; b=2"}, "http://a.test/x")
    assert sent.startswith(b"GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n")
    assert sent.lower().count(b"cookie:") == 1
    assert b"Cookie: a=1; b=2\r\n" in sent
    assert b"X-A: 1\r\n" in sent
