"""`forum.shop.test`: spellings that only a rule for this host can fold, since elsewhere they may mean two pages.

A `view` parameter changes nothing, a trailing slash changes nothing, and `index.html` is the first page.
"""

from __future__ import annotations

from crawlspace.testing.toyweb.atlas import Atlas
from crawlspace.testing.toyweb.prose import Href, Sheet
from crawlspace.testing.toyweb.recipe import Feature

RULE: dict[str, str | list[str]] = {
    "host": "forum.shop.test",
    "strip": ["view"],
    "trailing_slash": "strip",
    "index_documents": ["index.html"],
}
"""The rule that folds them, as an entry of the setting `identity.hosts`."""


def draw(atlas: Atlas) -> None:
    if not atlas.has(Feature.OWN_FOLDS):
        return
    origin = atlas.host("forum.shop.test")
    front = f"{origin}/"
    threads = [f"{origin}/thread/{number}" for number in range(1, atlas.recipe.extent.threads + 1)]
    for place, page in enumerate(threads):
        following = threads[(place + 1) % len(threads)]
        before = threads[place - 1]
        view = atlas.recipe.chance("view", page).randbytes(4).hex()
        links = (
            Href(f"{following}/", f"{following}/", following),
            Href(f"{before}?view={view}", f"{before}?view={view}", before),
            Href("/index.html", f"{origin}/index.html", front),
        )
        atlas.page(page, Sheet(f"Thread {place + 1}", links, lead=f"Thread {place + 1}: first words."))
    atlas.page(front, Sheet("The forum", atlas.near(threads)))
    atlas.own_folds.append(RULE)
    atlas.front(front)
