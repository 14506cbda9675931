"""`shelf1.shop.test` and its siblings: plain pages in numbers, reached through a tree so that depth stays small."""

from __future__ import annotations

from crawlspace.testing.toyweb.atlas import Atlas
from crawlspace.testing.toyweb.prose import Sheet


def draw(atlas: Atlas) -> None:
    for shelf in range(1, atlas.recipe.extent.shelves + 1):
        _shelf(atlas, atlas.host(f"shelf{shelf}.shop.test"))


def _shelf(atlas: Atlas, origin: str) -> None:
    items = [f"{origin}/", *(f"{origin}/item/{number}" for number in range(2, atlas.recipe.extent.items + 1))]
    chance = atlas.recipe.chance("shelf", origin)
    for place, page in enumerate(items):
        below = items[2 * place + 1 : 2 * place + 3]
        links = atlas.near(below) + atlas.spelled([chance.choice(items[1:])], page) + atlas.near([items[place - 1]])
        atlas.page(page, Sheet(f"Item {place + 1}", links, lead=f"Item {place + 1} of {len(items)}."))
    atlas.front(items[0])
