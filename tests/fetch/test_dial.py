"""Which address is connected to: the guard, the table, the race, the places."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crawlspace.exchange import FetchError, FetchRequest, FetchResult
from crawlspace.fetch import NetworkSettings
from crawlspace.fetch.dial import STAGGER

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def names(**known: list[str]) -> Callable[[str], Awaitable[list[str]]]:
    async def lookup(name: str) -> list[str]:
        if name.partition(".")[0] not in known:
            raise OSError(-2, "Name or service not known")
        return known[name.partition(".")[0]]

    return lookup


def fetch_named(
    fetching: Any, url: str, network: NetworkSettings, public: bool = True, **known: list[str]
) -> FetchResult:
    async def test() -> FetchResult:
        async with fetching(network, public, connect_timeout=2) as fetcher:
            fetcher.resolver.lookup = names(**known)
            result = await fetcher.fetch(FetchRequest(url))
            assert isinstance(result, FetchResult)
            return result

    return asyncio.run(test())


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:7f00:1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://inside.test/",
        "http://mapped.test/",
        "https://inside.test/",
    ],
)
def test_private_addresses_are_refused_however_they_are_named(url: str, fetching: Any) -> None:
    result = fetch_named(fetching, url, NetworkSettings(), inside=["10.0.0.1"], mapped=["::1"])
    assert (result.error, result.request_head) == (FetchError.ADDRESS_REFUSED, b"")


def test_an_entry_of_the_table_does_not_pass_the_guard_by_itself(fetching: Any) -> None:
    network = NetworkSettings(resolve={"a.test": "127.0.0.1:80"})
    assert fetch_named(fetching, "http://a.test/", network).error is FetchError.ADDRESS_REFUSED


def test_without_a_contact_public_addresses_are_refused_with_advice(fetching: Any) -> None:
    result = fetch_named(fetching, "http://a.test/", NetworkSettings(), public=False, a=["192.88.99.1"])
    assert result.error is FetchError.ADDRESS_REFUSED
    assert "contact" in result.detail


def test_a_name_that_turns_to_a_private_address_is_not_followed(serving: Any, fetching: Any) -> None:
    """DNS rebinding: a second lookup never happens while the first answer is kept, and is judged afresh after."""
    asked: list[str] = []

    async def lookup(name: str) -> list[str]:
        asked.append(name)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    async def test() -> None:
        async with serving(OK, host="0.0.0.0") as server:
            network = NetworkSettings(allow=["127.0.0.1"], dns_ttl=0)
            async with fetching(network) as fetcher:
                fetcher.resolver.lookup = lookup
                url = server.url(host="a.test")
                assert (await fetcher.fetch(FetchRequest(url))).body == b"ok"
                assert (await fetcher.fetch(FetchRequest(url))).body == b"ok"
                assert asked == ["a.test"]
                refused = await fetcher.fetch(FetchRequest(url, method="POST"))
                assert refused.error is FetchError.ADDRESS_REFUSED
                assert server.connections == 1

    asyncio.run(test())


def test_the_address_really_connected_to_is_judged_before_anything_is_sent(
    run: Any, serving: Any, fetching: Any
) -> None:
    """0.0.0.0 leads to the loopback, though that is not what was allowed."""

    async def test() -> None:
        async with serving(OK) as server, fetching(NetworkSettings(allow=["0.0.0.0"])) as fetcher:
            result = await fetcher.fetch(FetchRequest(server.url(host="0.0.0.0")))
            assert (result.error, result.request_head) == (FetchError.ADDRESS_REFUSED, b"")
            assert "127.0.0.1" in result.detail
            await server.left()
            assert server.requests == []

    run(test())


def test_of_several_addresses_only_those_that_pass_are_tried(serving: Any, fetching: Any) -> None:
    async def test() -> None:
        network = NetworkSettings(allow=["127.0.0.2"])
        async with serving(OK, host="0.0.0.0") as server, fetching(network) as fetcher:
            fetcher.resolver.lookup = names(a=["127.0.0.1", "127.0.0.2", "::1"])
            result = await fetcher.fetch(FetchRequest(server.url(host="a.test")))
            assert result.address == f"127.0.0.2:{server.port}"

    asyncio.run(test())


@pytest.mark.parametrize("first", ["127.0.0.2", "::1"])
def test_the_next_address_is_tried_when_one_refuses(first: str, run: Any, serving: Any, fetching: Any) -> None:
    async def test() -> None:
        async with serving(OK) as server, fetching() as fetcher:
            fetcher.resolver.lookup = names(a=[first, "127.0.0.3", "127.0.0.1"])
            result = await fetcher.fetch(FetchRequest(server.url(host="a.test")))
            assert result.address == f"127.0.0.1:{server.port}"

    run(test())


def test_when_every_address_refuses_the_first_reason_is_told(run: Any, serving: Any, fetching: Any) -> None:
    async def test() -> None:
        async with serving(OK) as server, fetching() as fetcher:
            fetcher.resolver.lookup = names(a=["127.0.0.2", "127.0.0.3"])
            result = await fetcher.fetch(FetchRequest(server.url(host="a.test")))
            assert result.error is FetchError.CONNECT
            assert "127.0.0.2" in result.detail

    run(test())


def test_an_unknown_name_is_no_exception(fetching: Any) -> None:
    result = fetch_named(fetching, "http://b.test/", NetworkSettings())
    assert result.error is FetchError.DNS
    assert "b.test" in result.detail


def test_a_lookup_that_hangs_is_given_up(fetching: Any) -> None:
    async def hang(name: str) -> list[str]:
        await asyncio.Event().wait()
        return []

    async def test() -> None:
        async with fetching(connect_timeout=0.05) as fetcher:
            fetcher.resolver.lookup = hang
            assert (await fetcher.fetch(FetchRequest("http://a.test/"))).error is FetchError.DNS

    asyncio.run(test())


def test_a_port_where_nobody_listens_is_a_failure_to_connect(run: Any, serving: Any, fetching: Any) -> None:
    async def test() -> None:
        async with serving(OK) as server:
            url = server.url()
        async with fetching() as fetcher:
            result = await fetcher.fetch(FetchRequest(url))
            assert (result.error, result.request_head) == (FetchError.CONNECT, b"")

    run(test())


def test_a_url_that_cannot_be_sent_is_our_own_failure(fetching: Any) -> None:
    assert fetch_named(fetching, "gopher://a.test/", NetworkSettings()).error is FetchError.LOCAL


def test_an_address_has_no_more_connections_than_allowed(run: Any, serving: Any, fetching: Any) -> None:
    async def test() -> None:
        async with serving(OK) as server:
            network = NetworkSettings(allow=["127.0.0.1"], resolve={"*.test": f"127.0.0.1:{server.port}"})
            async with fetching(network, connections_per_address=3) as fetcher:
                results = await asyncio.gather(
                    *(fetcher.fetch(FetchRequest(f"http://n{number}.test/")) for number in range(20))
                )
                assert all(result.body == b"ok" for result in results)
                assert server.connections == 20
                assert server.most_open <= 4  # a client may be gone before the server has seen it

    run(test())


def test_waiting_for_a_place_is_bounded_and_is_our_own_failure(run: Any, serving: Any, fetching: Any) -> None:
    async def test() -> None:
        async with (
            serving(b"HTTP/1.1 200 OK\r\n") as server,
            fetching(timeout=0.2, connections_per_address=1) as fetcher,
        ):
            results = await asyncio.gather(*(fetcher.fetch(FetchRequest(server.url())) for _ in range(3)))
            assert results[0].error is FetchError.TOTAL_TIMEOUT
            assert FetchError.LOCAL in {result.error for result in results[1:]}

    run(test())


def test_requests_can_be_cancelled_at_any_moment_and_no_place_is_lost(run: Any, serving: Any, fetching: Any) -> None:
    """Two names at one address, one of them with a second address that refuses: more requests than places."""
    chance = random.Random(5)

    async def test() -> None:
        async with serving(OK) as server, fetching(connections_per_address=2, timeout=5) as fetcher:
            fetcher.resolver.lookup = names(a=["127.0.0.2", "127.0.0.1"], b=["127.0.0.1"])
            url = server.url(host="a.test"), server.url(host="b.test")
            for _ in range(60):
                requests = [FetchRequest(chance.choice(url), method=chance.choice(["GET", "POST"])) for _ in range(4)]
                tasks = [asyncio.create_task(fetcher.fetch(request)) for request in requests]
                for _ in range(chance.randrange(12)):
                    await asyncio.sleep(0)
                for task in tasks[:3]:
                    task.cancel()
                last = (await asyncio.gather(*tasks, return_exceptions=True))[-1]
                assert isinstance(last, FetchResult)
                assert last.body == b"ok"

    run(test())


def test_an_address_that_does_not_answer_shares_its_time_with_the_next(serving: Any, fetching: Any) -> None:
    """A full backlog swallows the handshake, as a dead host would."""

    async def test() -> None:
        async with serving(OK) as server, fetching(connect_timeout=1) as fetcher:
            deaf = socket.create_server(("127.0.0.9", server.port), backlog=0)
            fillers = [socket.socket() for _ in range(3)]
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.9", server.port))
            fetcher.resolver.lookup = names(a=["127.0.0.9", "127.0.0.1"])
            began = time.monotonic()
            result = await fetcher.fetch(FetchRequest(server.url(host="a.test")))
            assert result.address == f"127.0.0.1:{server.port}"
            assert STAGGER <= time.monotonic() - began < 10 * STAGGER
            slow = await fetcher.fetch(FetchRequest(server.url(host="127.0.0.9")))
            assert slow.error is FetchError.CONNECT_TIMEOUT
            for sock in (*fillers, deaf):
                sock.close()

    asyncio.run(test())
