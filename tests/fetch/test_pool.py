"""Places at an address, and connections that wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from ipaddress import ip_address

from crawlspace.fetch.connection import Connection
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.pool import Pool
from crawlspace.fetch.request import Origin
from crawlspace.fetch.resolve import Endpoint

ADDRESS = ip_address("192.0.2.1")


class Wire(asyncio.Transport):
    """A transport that leads nowhere and tells its protocol when it is closed."""

    def __init__(self, protocol: Connection) -> None:
        super().__init__()
        self.aborted = False
        self._protocol = protocol
        protocol.connection_made(self)

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        if not self.aborted:
            self.aborted = True
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)


async def opened(pool: Pool, address: str = "192.0.2.1") -> Connection:
    await pool.enter(ip_address(address))
    connection = Connection(Endpoint(ip_address(address), 80), FetchSettings(), pool.closed)
    Wire(connection)
    return connection


def origin(name: str) -> Origin:
    return Origin("http", name, 80)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await test()

    asyncio.run(main())


def test_the_connection_used_last_is_used_next_and_only_by_its_origin() -> None:
    async def test() -> None:
        pool = Pool(8, 10)
        first, second = await opened(pool), await opened(pool)
        pool.put(origin("a"), first)
        pool.put(origin("a"), second)
        assert pool.take(origin("b")) is None
        assert pool.take(Origin("https", "a", 80)) is None
        assert pool.take(origin("a")) is second
        assert pool.take(origin("a")) is first
        assert pool.take(origin("a")) is None
        first.abort()
        second.abort()
        await pool.close()

    run(test)


def test_too_many_unused_connections_end_the_one_longest_unused() -> None:
    async def test() -> None:
        pool = Pool(8, 2)
        made = [await opened(pool) for _ in range(3)]
        for number, connection in enumerate(made):
            pool.put(origin(str(number)), connection)
        await asyncio.sleep(0)
        assert [connection.closed for connection in made] == [True, False, False]
        assert pool.take(origin("0")) is None
        await pool.close()
        assert all(connection.closed for connection in made)

    run(test)


def test_a_connection_that_ends_while_it_waits_is_forgotten() -> None:
    async def test() -> None:
        pool = Pool(1, 2)
        connection = await opened(pool)
        pool.put(origin("a"), connection)
        connection.abort()
        await asyncio.sleep(0)
        assert pool.take(origin("a")) is None
        pool.put(origin("a"), connection)
        assert pool.take(origin("a")) is None
        assert pool.try_enter(ADDRESS)
        pool.leave(ADDRESS)
        await pool.close()

    run(test)


def test_an_unused_connection_gives_its_place_to_another_name_at_its_address() -> None:
    async def test() -> None:
        pool = Pool(1, 10)
        other = await opened(pool, "192.0.2.2")
        pool.put(origin("elsewhere"), other)
        first = await opened(pool)
        pool.put(origin("a"), first)
        second = await opened(pool)
        assert first.closed
        assert not other.closed
        second.abort()
        await pool.close()

    run(test)


def test_places_go_to_who_waited_longest_and_a_place_is_not_lost_with_who_left() -> None:
    async def test() -> None:
        pool = Pool(1, 10)
        holder = await opened(pool)
        order: list[int] = []

        async def wait(number: int) -> None:
            await pool.enter(ADDRESS)
            order.append(number)
            pool.leave(ADDRESS)

        waiting = [asyncio.create_task(wait(number)) for number in range(4)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        pool.put(origin("a"), holder)
        await asyncio.sleep(0)
        waiting[1].cancel()  # its place was given to it a moment ago
        await asyncio.gather(*waiting, return_exceptions=True)
        assert order in ([2, 3], [1, 2, 3])
        assert pool.try_enter(ADDRESS)
        pool.leave(ADDRESS)
        await pool.close()

    run(test)


def test_a_connection_that_others_wait_for_is_not_kept() -> None:
    async def test() -> None:
        pool = Pool(1, 10)
        holder = await opened(pool)
        waiting = asyncio.create_task(opened(pool))
        await asyncio.sleep(0)
        pool.put(origin("a"), holder)
        connection = await waiting
        assert holder.closed
        connection.abort()
        await pool.close()

    run(test)


def test_a_connection_goes_to_who_waits_longest_for_its_origin() -> None:
    async def test() -> None:
        pool = Pool(1, 10)
        connection = await opened(pool)
        waiting = [asyncio.create_task(pool.enter(ADDRESS, origin("a"))) for _ in range(2)]
        await asyncio.sleep(0)
        pool.put(origin("a"), connection)
        assert await waiting[0] is connection
        assert not waiting[1].done()
        pool.put(origin("a"), connection)
        assert await waiting[1] is connection
        pool.put(origin("a"), connection)
        assert pool.take(origin("a")) is connection
        connection.abort()
        await pool.close()

    run(test)


def test_a_connection_does_not_pass_over_who_waits_longer_for_another_origin() -> None:
    async def test() -> None:
        pool = Pool(1, 10)
        connection = await opened(pool)
        waiting = [asyncio.create_task(pool.enter(ADDRESS, origin(name))) for name in "ba"]
        await asyncio.sleep(0)
        pool.put(origin("a"), connection)
        assert await waiting[0] is None
        assert connection.closed
        pool.leave(ADDRESS)
        assert await waiting[1] is None
        pool.leave(ADDRESS)
        await pool.close()

    run(test)


def test_a_connection_is_not_lost_with_who_left() -> None:
    async def test() -> None:
        pool = Pool(1, 10)
        connection = await opened(pool)
        waiting = [asyncio.create_task(pool.enter(ADDRESS, origin("a"))) for _ in range(2)]
        await asyncio.sleep(0)
        pool.put(origin("a"), connection)
        waiting[0].cancel()  # it has the connection, and does not know it yet
        assert await waiting[1] is connection
        assert waiting[0].cancelled()
        connection.abort()
        await pool.close()

    run(test)


def test_nothing_is_handed_on_once_the_pool_is_closed() -> None:
    async def test() -> None:
        pool = Pool(1, 0)
        connection = await opened(pool)
        waiting = asyncio.create_task(pool.enter(ADDRESS, origin("a")))
        await asyncio.sleep(0)
        pool.put(origin("a"), connection)
        assert await waiting is None
        assert connection.closed
        pool.leave(ADDRESS)
        await pool.close()

    run(test)
