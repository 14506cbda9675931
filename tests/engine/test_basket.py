"""Groups are bounded by items and by the links they bring."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from crawlspace.engine.commit import GROUP_CLAIMS, GROUP_ITEMS, REMOTE, Basket, Item


def groups(sizes: Sequence[int]) -> list[list[int]]:
    """How items with so many links each are grouped."""

    async def main() -> list[list[int]]:
        basket = Basket(lambda: True)
        claims: Any = [None] * max(sizes)
        taken: list[list[int]] = []

        async def take() -> None:
            while group := await basket.take():
                taken.append([len(item.claims) for item in group])

        taker = asyncio.create_task(take())
        for size in sizes:
            await basket.put(Item(claims=claims[:size]))
        basket.close()
        await taker
        return taken

    return asyncio.run(main())


def test_a_group_has_no_more_links_than_fit() -> None:
    batch = GROUP_CLAIMS // 4
    found = groups([batch] * 20)
    assert sum(map(sum, found)) == 20 * batch
    assert max(map(sum, found)) <= GROUP_CLAIMS


def test_one_item_with_more_links_than_fit_is_a_group_of_its_own() -> None:
    found = groups([10, 3 * GROUP_CLAIMS, 10])
    assert [3 * GROUP_CLAIMS] in found
    assert sum(map(sum, found)) == 3 * GROUP_CLAIMS + 20


def test_a_group_has_no_more_items_than_fit() -> None:
    found = groups([1] * (2 * GROUP_ITEMS + 5))
    assert max(map(len, found)) <= GROUP_ITEMS
    assert sum(map(len, found)) == 2 * GROUP_ITEMS + 5


def test_whoever_hands_over_too_much_waits() -> None:
    async def main() -> None:
        basket = Basket(lambda: False)
        claims: Any = [None] * (2 * GROUP_CLAIMS)
        await basket.put(Item(claims=claims))
        waiting = asyncio.create_task(basket.put(Item()))
        await asyncio.sleep(0)
        assert not waiting.done()
        assert [len(item.claims) for item in await basket.take()] == [2 * GROUP_CLAIMS]
        await waiting
        assert len(basket) == 1

    asyncio.run(main())


def test_a_group_for_a_remote_storage_has_no_more_bytes_than_fit_and_waits_longer() -> None:
    """Each group becomes an object there: few and large ones."""
    capture: Any = SimpleNamespace(payload=bytes(1 << 20), response_head=b"")

    async def main() -> tuple[list[int], float]:
        loop = asyncio.get_running_loop()
        basket = Basket(lambda: False, REMOTE)
        for _ in range(20):
            await basket.put(Item([capture]))
        full = [len(await basket.take())]
        timers: list[float] = []
        real = loop.call_later

        def called(delay: float, *rest: Any) -> Any:
            timers.append(delay)
            return real(delay, *rest)

        loop.call_later = called  # type: ignore[method-assign,assignment]
        waiting = asyncio.create_task(basket.take())
        for _ in range(3):
            await asyncio.sleep(0)
        basket.close()
        full.append(len(await waiting))
        return full, timers[0]

    assert asyncio.run(main()) == ([16, 4], REMOTE.seconds)
