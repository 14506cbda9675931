"""Name servers are asked, and their answers kept for as long as they say."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from typing import Any

import pytest

from crawlspace.errors import ConfigError
from crawlspace.fetch import NetworkSettings
from crawlspace.fetch.dns import NameServers, Records
from crawlspace.fetch.resolve import Resolver
from crawlspace.testing.clock import ManualClock


class Zone(asyncio.DatagramProtocol):
    """A name server of one zone: A records with their time to live, by name; all else does not exist."""

    def __init__(self, records: dict[str, tuple[str, int]]) -> None:
        self.records = records
        self.asked: list[str] = []

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        end = data.index(b"\0", 12)
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode())
            at += 1 + data[at]
        name, question = ".".join(labels), data[12 : end + 5]
        (kind,) = struct.unpack("!H", data[end + 1 : end + 3])
        self.asked.append(f"{name} {kind}")
        record = self.records.get(name) if kind == 1 else None
        status = 0 if name in self.records else 3
        head = data[:2] + struct.pack("!HHHHH", 0x8180 | status, 1, 1 if record else 0, 0, 0)
        answer = b""
        if record:
            answer = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, record[1], 4) + socket.inet_aton(record[0])
        self.transport.sendto(head + question + answer, addr)


async def _serving(zone: Zone) -> tuple[Any, str]:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: zone, local_addr=("127.0.0.1", 0))
    return transport, f"127.0.0.1:{transport.get_extra_info('sockname')[1]}"


def test_an_answer_is_kept_for_its_own_time_to_live() -> None:
    """Within bounds: a second at least, since many ask at once, and no longer than the setting allows."""
    ttls = {"a.test": 60, "b.test": 0, "c.test": 999_999}
    asked: list[str] = []

    async def lookup(name: str) -> Records:
        asked.append(name)
        if name not in ttls:
            raise OSError(0, "no such name")
        return Records(("192.0.2.7",), ttls[name])

    async def main() -> list[str]:
        clock = ManualClock()
        resolver = Resolver(NetworkSettings(dns_ttl_max=3600.0, dns_negative_ttl=30.0), clock, lookup)
        for passed in (0, 500, 600, 29_000, 31_000, 3_540_000, 3_600_000):
            clock.advance(passed)
            for name in ("a.test", "b.test", "c.test", "none.test"):
                await resolver.resolve(name, 80)
            asked.append("-")
        return "".join(name[0] for name in asked).split("-")[:-1]

    # At 0, 0.5, 1.1, 30.1, 61.1, 3,601.1 and 7,201.1 seconds.
    assert asyncio.run(main()) == ["abcn", "", "b", "bn", "abn", "abcn", "abcn"]


def test_name_servers_tell_addresses_and_their_time_to_live() -> None:
    async def main() -> tuple[Records, list[str]]:
        zone = Zone({"a.test": ("192.0.2.7", 61)})
        transport, server = await _serving(zone)
        servers = NameServers([server])
        found = await servers.lookup("a.test")
        await servers.close()
        transport.close()
        await asyncio.sleep(0)
        return found, sorted(zone.asked)

    found, asked = asyncio.run(main())
    assert found == Records(("192.0.2.7",), 61)
    assert asked == ["a.test 1", "a.test 28"]


def test_a_name_that_does_not_exist_says_so() -> None:
    async def main() -> tuple[Any, str]:
        transport, server = await _serving(Zone({}))
        resolver = Resolver(NetworkSettings(resolver="dns", nameservers=[server]), ManualClock())
        answer = await resolver.resolve("none.test", 80)
        await resolver.close()
        transport.close()
        await asyncio.sleep(0)
        return answer

    endpoints, problem = asyncio.run(main())
    assert endpoints == ()
    assert problem.startswith("none.test: ")


def test_name_servers_that_are_none_are_a_value() -> None:
    async def main() -> str:
        resolver = Resolver(NetworkSettings(resolver="dns", nameservers=["no server"]), ManualClock())
        _, problem = await resolver.resolve("a.test", 80)
        await resolver.close()
        return problem

    assert "name servers cannot be used" in asyncio.run(main())


def test_without_the_library_the_setting_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiodns", None)
    with pytest.raises(ConfigError, match="extra `dns`"):
        NameServers([])


def test_name_servers_without_their_resolver_are_refused() -> None:
    with pytest.raises(ValueError, match="only with resolver"):
        NetworkSettings(nameservers=["9.9.9.9"])
