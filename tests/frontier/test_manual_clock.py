"""The clock of tests moves when it is told to, and wakes exactly those whose time has come."""

from __future__ import annotations

import asyncio

import pytest

from crawlspace.testing.clock import START, ManualClock


def test_time_stands_still_until_it_is_moved() -> None:
    clock = ManualClock()
    assert (clock.now(), clock.monotonic()) == (START, 0.0)
    clock.advance(1_500)
    assert (clock.now(), clock.monotonic()) == (START + 1_500, 1.5)
    clock.step(-1_000)
    assert (clock.now(), clock.monotonic()) == (START + 500, 1.5)


def test_time_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="-1 ms"):
        ManualClock().advance(-1)


def test_sleepers_wake_in_order_of_their_time() -> None:
    async def run() -> None:
        clock, woken = ManualClock(), list[str]()

        async def sleeper(name: str, seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append(name)

        tasks = [asyncio.ensure_future(sleeper(*pair)) for pair in [("late", 2), ("early", 1), ("now", 0)]]
        for _ in range(3):
            await asyncio.sleep(0)
        assert (woken, clock.next_wake()) == (["now"], 1_000)
        clock.advance(999)
        await asyncio.sleep(0)
        assert (woken, clock.next_wake()) == (["now"], 1)
        clock.advance(5_000)
        await asyncio.gather(*tasks)
        assert (woken, clock.next_wake()) == (["now", "early", "late"], None)

    asyncio.run(run())


def test_a_cancelled_sleeper_is_forgotten() -> None:
    async def run() -> None:
        clock = ManualClock()
        tasks = [asyncio.ensure_future(clock.sleep(seconds)) for seconds in (1, 2)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        clock.advance(1_000)
        assert clock.next_wake() is None

    asyncio.run(run())
