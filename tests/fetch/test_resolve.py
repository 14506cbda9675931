"""Names to addresses: the table, the cache, one lookup for all who wait."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from crawlspace.errors import ConfigError
from crawlspace.fetch import resolve
from crawlspace.fetch.resolve import NetworkSettings, Resolver, system_lookup


class Names:
    """A name server that counts what it is asked."""

    def __init__(self, **known: list[str]) -> None:
        self.known = known
        self.asked: list[str] = []
        self.gate: asyncio.Event | None = None

    async def __call__(self, name: str) -> Sequence[str]:
        self.asked.append(name)
        if self.gate is not None:
            await self.gate.wait()
        if name not in self.known:
            raise OSError(-2, "Name or service not known")
        return self.known[name]


def ask(resolver: Resolver, host: str, port: int = 80) -> tuple[list[str], str]:
    async def run() -> tuple[list[str], str]:
        found, problem = await resolver.resolve(host, port)
        return [str(endpoint) for endpoint in found], problem

    return asyncio.run(run())


TABLE = {
    "shop.test": "127.0.0.1:1000",
    "shop.test:443": "127.0.0.1:1443",
    "*.test": "127.0.0.2:2000",
    "*.deep.test": "127.0.0.3:3000",
    "*.test:443": "127.0.0.2:2443",
    "[::1]:80": "[::1]:8080",
    "Upper.Example": "127.0.0.5:5000",
    "dotted.example.:81": "127.0.0.6:6000",
}


@pytest.mark.parametrize(
    ("host", "port", "endpoint"),
    [
        ("shop.test", 80, "127.0.0.1:1000"),
        ("shop.test.", 80, "127.0.0.1:1000"),
        ("shop.test", 443, "127.0.0.1:1443"),
        ("other.test", 80, "127.0.0.2:2000"),
        ("other.test", 443, "127.0.0.2:2443"),
        ("a.b.deep.test", 443, "127.0.0.3:3000"),
        ("deep.test", 80, "127.0.0.2:2000"),
        ("[::1]", 80, "[::1]:8080"),
        ("[::1]", 81, "[::1]:81"),
        ("192.0.2.1", 81, "192.0.2.1:81"),
        ("upper.example", 80, "127.0.0.5:5000"),
        ("dotted.example", 81, "127.0.0.6:6000"),
    ],
)
def test_the_most_exact_entry_of_the_table_leads(host: str, port: int, endpoint: str, clock: Any) -> None:
    names = Names()
    assert ask(Resolver(NetworkSettings(resolve=TABLE), clock, names), host, port) == ([endpoint], "")
    assert names.asked == []


@pytest.mark.parametrize(
    "value", ["127.0.0.1", "localhost:80", "127.0.0.1:0", "127.0.0.1:99999", "127.0.0.1:x", "", "::1:80x"]
)
def test_an_entry_that_leads_to_no_address_is_named(value: str, clock: Any) -> None:
    with pytest.raises(ConfigError, match=r"shop\.test"):
        Resolver(NetworkSettings(resolve={"shop.test": value}), clock)


def test_an_answer_is_kept_for_its_time_and_a_failure_for_less(clock: Any) -> None:
    names = Names(a=["192.0.2.1", "2001:db8::1", "192.0.2.1"])
    resolver = Resolver(NetworkSettings(), clock, names)
    for _ in range(2):
        assert ask(resolver, "a") == (["192.0.2.1:80", "[2001:db8::1]:80"], "")
        assert ask(resolver, "b") == ([], "b: Name or service not known")
    assert names.asked == ["a", "b"]
    clock.seconds += 31
    ask(resolver, "a")
    ask(resolver, "b")
    assert names.asked == ["a", "b", "b"]
    clock.seconds += 270
    ask(resolver, "a")
    assert names.asked == ["a", "b", "b", "a"]


def test_all_who_ask_at_once_share_one_lookup_and_one_may_leave(clock: Any) -> None:
    names = Names(a=["192.0.2.1"])
    resolver = Resolver(NetworkSettings(), clock, names)

    async def run() -> None:
        names.gate = asyncio.Event()
        waiting = [asyncio.create_task(resolver.resolve("a", port)) for port in range(1, 20)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        names.gate.set()
        answers = await asyncio.gather(*waiting[1:])
        assert [found[0].port for found, _ in answers] == list(range(2, 20))

    asyncio.run(run())
    assert names.asked == ["a"]


def test_closing_ends_lookups_that_are_running(clock: Any) -> None:
    names = Names(a=["192.0.2.1"])
    resolver = Resolver(NetworkSettings(), clock, names)

    async def run() -> None:
        names.gate = asyncio.Event()
        waiting = asyncio.create_task(resolver.resolve("a", 80))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await resolver.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(run())
    assert names.asked == ["a"]


@pytest.mark.parametrize("answer", [[], ["not an address"]])
def test_an_answer_without_addresses_is_a_failure(answer: list[str], clock: Any) -> None:
    found, problem = ask(Resolver(NetworkSettings(), clock, Names(a=answer)), "a")
    assert found == []
    assert problem.startswith("a: ")


def test_the_cache_forgets_what_was_longest_unused(clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "CACHED_NAMES", 2)
    names = Names(a=["192.0.2.1"], b=["192.0.2.2"], c=["192.0.2.3"])
    resolver = Resolver(NetworkSettings(), clock, names)
    for name in "abacab":
        ask(resolver, name)
    assert names.asked == ["a", "b", "c", "b"]


def test_the_system_knows_this_machine_and_cannot_spell_every_name(clock: Any) -> None:
    assert asyncio.run(system_lookup("127.0.0.1")) == ["127.0.0.1"]
    found, problem = ask(Resolver(NetworkSettings(), clock), "x" * 64 + ".test")
    assert found == []
    assert problem
