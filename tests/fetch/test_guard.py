"""Which addresses may be connected to."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from crawlspace.errors import ConfigError
from crawlspace.fetch.guard import NO_CONTACT, networks, refusal

PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::a9fe:a9fe",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0.0.0.0",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::e000:1",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::",
    "2002:e000:1::",
    "2001:0:7f00:1:0:0:80ff:fffe",
    "2001:db8::1",
    "3fff::1",
    "100::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "ff0e::1",
    "4000::1",
    "5f00::1",
]

PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "93.184.215.14",
    "223.255.255.254",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_global_unicast_is_refused(address: str) -> None:
    assert refusal(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_a_global_address_passes_when_there_is_a_contact(address: str) -> None:
    assert refusal(ip_address(address)) is None
    assert refusal(ip_address(address), public=False) == NO_CONTACT


@pytest.mark.parametrize(
    ("address", "allow", "passes"),
    [
        ("10.1.2.3", ["10.0.0.0/8"], True),
        ("10.1.2.3", ["10.1.2.3"], True),
        ("10.1.2.4", ["10.1.2.3"], False),
        ("::ffff:10.1.2.3", ["10.0.0.0/8"], True),
        ("64:ff9b::a01:203", ["10.0.0.0/8"], True),
        ("64:ff9b::a01:203", ["192.168.0.0/16"], False),
        ("2002:a01:203::", ["10.0.0.0/8"], True),
        ("::1", ["127.0.0.0/8"], False),
        ("::1", ["::1"], True),
        ("fe80::1", ["fe80::/10"], True),
    ],
)
def test_a_listed_network_passes_and_no_other(address: str, allow: list[str], passes: bool) -> None:
    for public in (True, False):
        reason = refusal(ip_address(address), networks(allow), public)
        assert (reason in (None, NO_CONTACT)) is passes


def test_host_bits_in_a_listed_network_do_not_matter() -> None:
    assert networks(["10.1.2.3/8"]) == networks(["10.0.0.0/8"])


def test_an_entry_that_is_no_network_is_named() -> None:
    with pytest.raises(ConfigError, match="intranet"):
        networks(["10.0.0.0/8", "intranet"])
