"""Groups are bounded by items and by the links they bring."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from crawlspace.engine.commit import GROUP_CLAIMS, GROUP_ITEMS, Basket, Item


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
