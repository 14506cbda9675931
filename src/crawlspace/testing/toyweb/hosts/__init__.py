"""The hosts of the toy web, a module for each kind. `draw` puts them all on a map."""

from __future__ import annotations

from crawlspace.testing.toyweb.atlas import Atlas
from crawlspace.testing.toyweb.hosts import books, failing, fences, forum, moves, news, odd, shelves, shop, traps
from crawlspace.testing.toyweb.recipe import Recipe


def draw(recipe: Recipe) -> Atlas:
    """The whole web of a recipe. The shop comes last, since its first page links to all others."""
    atlas = Atlas(recipe)
    for place in (news, shelves, forum, fences, moves, odd, traps, failing, books, shop):
        place.draw(atlas)
    return atlas
