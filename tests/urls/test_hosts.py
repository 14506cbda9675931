"""Names of hosts, and the domains they belong to."""

from __future__ import annotations

import pytest

from crawlspace.urls import host_name, is_address, origin_of, registrable_domain


@pytest.mark.parametrize(
    ("url", "origin", "name"),
    [
        ("https://example.test/a?b", "https://example.test", "example.test"),
        ("http://example.test:8080/", "http://example.test:8080", "example.test"),
        ("http://[::1]:81/x", "http://[::1]:81", "[::1]"),
        ("http://[::1]/", "http://[::1]", "[::1]"),
        ("http://127.0.0.1/", "http://127.0.0.1", "127.0.0.1"),
        ("http://example.test?x@y", "http://example.test", "example.test"),
        ("http://user@example.test/", "http://example.test", "example.test"),
    ],
)
def test_origin_and_name_are_read_off_a_fetch_url(url: str, origin: str, name: str) -> None:
    assert origin_of(url) == origin
    assert host_name(url) == name


@pytest.mark.parametrize(
    ("host", "name"),
    [("a.test", "a.test"), ("a.test:81", "a.test"), ("[::1]:81", "[::1]"), ("[::1]", "[::1]"), ("", "")],
)
def test_a_host_loses_its_port(host: str, name: str) -> None:
    assert host_name(host) == name


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:80", True),
        ("[2001:db8::1]", True),
        ("[::1]:81", True),
        ("[v1.x]", False),
        ("1.2.3", False),
        ("1.2.3.256", False),
        ("a.test", False),
        ("", False),
    ],
)
def test_addresses_are_told_from_names(host: str, expected: bool) -> None:
    assert is_address(host) is expected


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("shop.example.co.uk", "example.co.uk"),
        ("shop.example.co.uk:8080", "example.co.uk"),
        ("example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("a.b.example.com.", "example.com"),
        ("www.xn--bcher-kva.de", "xn--bcher-kva.de"),
        ("a.b.unknown-suffix", "b.unknown-suffix"),
        ("me.github.io", "me.github.io"),
        ("a.b.xn--mxtq1m.xn--j6w193g", "b.xn--mxtq1m.xn--j6w193g"),
        ("a.b.個人.香港", "b.個人.香港"),
        ("a.b.xn--a-ecp.xn--", "xn--a-ecp.xn--"),
        ("a.b.xn--99999999999", "b.xn--99999999999"),
        ("a.www.ck", "www.ck"),
        ("a.b.c.ck", "b.c.ck"),
        ("localhost", "localhost"),
        ("127.0.0.1:80", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("", ""),
    ],
)
def test_a_host_belongs_to_the_domain_that_was_registered(host: str, domain: str) -> None:
    assert registrable_domain(host) == domain
