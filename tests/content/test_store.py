"""The texts with known truth as pages of a crawl: fingerprints as a worker makes them, a store's verdicts."""

from __future__ import annotations

import html
from itertools import islice
from pathlib import Path

import pytest

from crawlspace.engine.fingerprints import Content, ContentSettings, Fingerprinting
from crawlspace.exchange import FetchResult, Headers
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.pages.links import PageSettings
from crawlspace.testing.content_contract import page
from crawlspace.testing.frontier_contract_files import play
from crawlspace.testing.frontier_contract_words import T0, address, finished, link, one_lease, released
from crawlspace.types import Fingerprints, PageContent

HTML = Headers(((b"content-type", b"text/html; charset=utf-8"),))
BATCH = 10
"""URLs of one lease."""


async def fingerprints(name: str, text: str) -> Fingerprints:
    """What a crawl with the usual settings knows the text by, as a page with its first words as its title."""
    head = f"<html lang=en><title>{html.escape(text.strip()[:40])}</title>"
    body = f"{head}<pre>{html.escape(text)}</pre>".encode()
    where = address(name)
    answer = FetchResult(where.fetch_url, T0, status=200, headers=HTML, body=body)
    made = await Fingerprinting(ContentSettings(), 20).of(Content.of(answer, PageSettings()), where, [], 0)
    assert made is not None
    return made


def judged(path: Path, texts: dict[str, str]) -> dict[str, PageContent]:
    """Each text as a page of one store, one after another."""
    found: dict[str, PageContent] = {}

    async def story(store: SqliteFrontier) -> None:
        numbers: dict[str, int] = {}
        waiting = iter(texts)
        while group := list(islice(waiting, BATCH)):
            await store.claim([link(str(len(numbers) + place)) for place in range(len(group))], T0)
            lease = await one_lease(store)
            told = [
                finished(lease, url, page(await fingerprints(name, texts[name])))
                for name, url in zip(group, lease.urls, strict=True)
            ]
            await store.settle([*told, released(lease)], [], T0)
            numbers.update(zip(group, (url.id for url in lease.urls), strict=True))
        for name, content in zip(numbers, await store.contents(list(numbers.values())), strict=True):
            assert content is not None
            found[name] = content

    play(path, story)
    return found


@pytest.mark.parametrize("backwards", [False, True], ids=["in order", "backwards"])
def test_nothing_that_is_marked_apart_is_one_group_in_a_crawl(
    backwards: bool, all_texts: dict[str, str], marked: dict[str, list[list[str]]], tmp_path: Path
) -> None:
    """All texts at once, so that no two are joined by a third either; and some of those that belong together are."""
    names = sorted(all_texts, reverse=backwards)
    found = judged(tmp_path / "frontier.db", {name: all_texts[name] for name in names})
    groups = {name: content.group for name, content in found.items() if content.group is not None}
    joined = {
        mark: [pair for pair in pairs if pair[0] in groups and groups[pair[0]] == groups.get(pair[1])]
        for mark, pairs in marked.items()
    }
    assert joined["apart"] == []
    assert len(joined["together"]) >= 6
