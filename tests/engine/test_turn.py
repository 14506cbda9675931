"""One host's turn: starts are spaced by the delay, and no more than the allowed number are open."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from crawlspace.engine.turn import KEPT, Turn, Turns, take_slot
from crawlspace.testing.clock import ManualClock


def starts(delay: float, requests: int, concurrency: int = 1, takes: float = 0.0) -> list[float]:
    """When the requests of as many tasks start, with requests that take this long."""
    clock = ManualClock()

    async def main() -> list[float]:
        turn = Turn(clock, concurrency)
        seen: list[float] = []

        async def one() -> None:
            await turn.take(delay)
            seen.append(clock.monotonic())
            if takes:
                await clock.sleep(takes)
            turn.give_back()

        tasks = [asyncio.create_task(one()) for _ in range(requests)]
        await drain(clock, tasks)
        return seen

    return asyncio.run(main())


async def drain(clock: ManualClock, tasks: list[asyncio.Task[None]]) -> None:
    while not all(task.done() for task in tasks):
        for _ in range(20):
            await asyncio.sleep(0)
        clock.advance(50)
    await asyncio.gather(*tasks)


def gaps(times: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(times)]


def test_starts_are_at_least_the_delay_apart() -> None:
    seen = starts(delay=1.0, requests=5)
    assert len(seen) == 5
    assert all(gap >= 1.0 for gap in gaps(seen))


def test_the_delay_counts_from_start_to_start_whatever_the_request_takes() -> None:
    assert all(1.0 <= gap < 1.2 for gap in gaps(starts(delay=1.0, requests=4, takes=0.5)))


def test_a_request_longer_than_the_delay_holds_the_next_one_back() -> None:
    assert all(gap >= 2.0 for gap in gaps(starts(delay=0.5, requests=3, takes=2.0)))


def test_with_concurrency_starts_are_still_spaced() -> None:
    assert all(gap >= 0.5 for gap in gaps(starts(delay=0.5, requests=6, concurrency=3, takes=2.0)))


def test_a_cancelled_wait_gives_its_slot_back() -> None:
    async def main() -> None:
        clock = ManualClock()
        turn = Turn(clock)
        await turn.take(5.0)
        turn.give_back()
        waiting = asyncio.create_task(turn.take(5.0))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        clock.advance(60_000)
        await asyncio.wait_for(turn.take(1.0), 1)

    asyncio.run(main())


def test_a_hold_moves_the_next_start() -> None:
    clock = ManualClock()
    turn = Turn(clock)
    assert turn.idle()
    turn.hold_until(clock.monotonic() + 3)
    assert turn.wait() == 3
    assert not turn.idle()


def test_turns_of_one_host_are_one_and_idle_ones_are_forgotten() -> None:
    clock = ManualClock()
    turns = Turns(clock)
    held = turns.of("held.test")
    held.hold_until(clock.monotonic() + 60)
    for number in range(KEPT + 10):
        turns.of(f"h{number}.test")
    assert turns.of("held.test") is held


def test_who_waited_for_a_slot_of_the_crawl_starts_a_delay_after_the_others() -> None:
    """Both turns were taken long ago, and both slots come free at once."""
    clock = ManualClock()
    seen: list[float] = []

    async def main() -> None:
        turn = Turn(clock, concurrency=2)
        slots = asyncio.Semaphore(0)

        async def one() -> None:
            await turn.take(0.5)
            assert await take_slot(slots, {turn: 0.5}, lambda: True, 5.0)
            seen.append(clock.monotonic())
            slots.release()
            turn.give_back()

        tasks = [asyncio.create_task(one()) for _ in range(2)]
        for _ in range(40):
            await asyncio.sleep(0)
            clock.advance(100)
        slots.release()
        slots.release()
        await drain(clock, tasks)

    asyncio.run(main())
    assert gaps(seen)[0] >= 0.5


def test_a_slot_is_given_up_when_a_clock_asks_for_a_long_wait_or_the_time_is_over() -> None:
    async def main() -> None:
        clock = ManualClock()
        turn, other = Turn(clock), Turn(clock)
        slots = asyncio.Semaphore(1)
        other.hold_until(clock.monotonic() + 60)
        assert not await take_slot(slots, {turn: 1.0, other: 1.0}, lambda: True, 5.0)
        assert not await take_slot(slots, {turn: 1.0}, lambda: False, 5.0)
        assert turn.lack() == 0, "nothing was sent"
        assert await take_slot(slots, {turn: 1.0}, lambda: True, 5.0)
        assert (turn.lack(), slots.locked()) == (1.0, True)

    asyncio.run(main())
