"""Copies whose links need not be followed: told before the links are claimed, so that nothing has to be taken back.

The index says of which page that is done another is a copy, text and links alike (`ports.ContentIndex.copies`). Pages
of one group are compared among each other too: a trap is as quick as the crawl.
"""

from __future__ import annotations

from msgspec.structs import replace

from crawlspace.content.text import LEAST_TEXT
from crawlspace.engine.commit import Item
from crawlspace.engine.intake import FOLLOWED
from crawlspace.ports import ContentIndex
from crawlspace.types import Copied, Fingerprints, Finished


class Copies:
    """Leaves out the links of copies. What a handler follows, and what belongs to a page, stays."""

    def __init__(self, index: ContentIndex) -> None:
        self._index = index

    async def stop(self, group: list[Item]) -> None:
        """Look at a group of items that are about to be settled."""
        waiting = [(item, copied) for item in group if (copied := _copied(item)) is not None]
        if not waiting:
            return
        firsts: dict[tuple[bytes, bytes, str], Copied] = {}
        answers = await self._index.copies([copied for _, copied in waiting])
        for (item, copied), known in zip(waiting, answers, strict=True):
            seen = copied.fingerprints
            first = firsts.setdefault((seen.text, seen.follow, seen.language), copied)
            number = known if known is not None else _earlier(first, copied)
            if number is not None:
                _stop(item, number)


def _copied(item: Item) -> Copied | None:
    """The page of an item; None when it has no links that are followed, or cannot be compared."""
    settlement = item.settlement
    if not isinstance(settlement, Finished) or settlement.evidence.fingerprints is None:
        return None
    url = settlement.url
    if not any(claim.relation in FOLLOWED for claim in item.claims):
        return None
    return Copied(url.id, settlement.hid, url.depth, settlement.evidence.fingerprints)


def _earlier(first: Copied, copied: Copied) -> int | None:
    """The page of the same group that is to be settled before this one, whose links are claimed in the same call."""
    seen: Fingerprints = first.fingerprints
    if first.id == copied.id or seen.partial or seen.length < LEAST_TEXT or first.depth > copied.depth:
        return None
    return first.id


def _stop(item: Item, first: int) -> None:
    settlement = item.settlement
    assert isinstance(settlement, Finished), "only these are looked at"
    assert settlement.evidence.fingerprints is not None, "and only with fingerprints"
    stopped = replace(settlement.evidence.fingerprints, stopped_by=first)
    # Links that are left alone are none that the frontier was asked for.
    item.settlement = replace(settlement, links=0, evidence=replace(settlement.evidence, fingerprints=stopped))
    item.claims = [claim for claim in item.claims if claim.relation not in FOLLOWED]
