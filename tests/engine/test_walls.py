"""Soft 404s are told by a host's answer to an invented path, and nothing is said where that proves nothing."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crawlspace.engine.fingerprints import Content
from crawlspace.engine.walls import UNLIKE, Walls
from crawlspace.exchange import FetchError, FetchResult, Headers
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.pages.links import PageSettings
from crawlspace.states import UrlState
from crawlspace.testing.clock import ManualClock
from crawlspace.types import Address, Fingerprints, QueuedUrl, Relation, host_id
from crawlspace.urls import Identity, IdentitySettings, policy_from

HOST = "a.test"
GONE = "<title>Sorry</title><p>There is nothing at this address, but there are many other pages to be read here."
SAYS = "<title>Page not found</title><p>There is nothing at this address, but {} many other pages to be read here."
AFTER = 3
WORDS = [random.Random(number).randbytes(4).hex() for number in range(500)]

Story = Callable[[Walls, SqliteFrontier], Awaitable[None]]


def play(story: Story, after: int = AFTER) -> None:
    async def run() -> None:
        store = await SqliteFrontier.open(":memory:", FrontierSettings(), ManualClock(), threaded=False)
        try:
            await story(made(store, after), store)
        finally:
            await store.close()

    asyncio.run(run())


def made(store: SqliteFrontier, after: int = AFTER) -> Walls:
    return Walls(store, _identity(), after, PageSettings(), random.Random(1))


def _identity() -> Identity:
    return Identity(policy_from(IdentitySettings()), bytes(32))


def url(path: str, relation: Relation = Relation.HYPERLINK) -> QueuedUrl:
    return QueuedUrl(1, bytes(16), f"http://{HOST}/{path}", front_class=5, depth=1, relation=relation)


def hid() -> int:
    address = _identity().identify(f"http://{HOST}/")
    assert isinstance(address, Address)
    return host_id(address.key)


def answer(html: str, path: str = "x", status: int = 200) -> FetchResult:
    headers = Headers(((b"content-type", b"text/html"),))
    return FetchResult(f"http://{HOST}/{path}", 0, status=status, headers=headers, body=html.encode())


def look(result: FetchResult) -> Callable[[], Content]:
    return lambda: Content.of(result, PageSettings())


def prints(number: int) -> Fingerprints:
    """Pages that are far from each other, and from every answer."""
    chance = random.Random(number)
    return Fingerprints(chance.randbytes(32), chance.randbytes(32), 900, simhash=chance.getrandbits(64))


async def read(walls: Walls, pages: int) -> None:
    for number in range(pages):
        await walls.read(url(str(number)), hid(), prints(number))


async def asked(walls: Walls, html: str, status: int = 200) -> str:
    """Let the host answer the question, and give it."""
    question = walls.question(HOST)
    assert question is not None
    walls.answered(question, answer(html, question.rpartition("/")[2], status))
    return question


def test_a_host_is_asked_once_when_enough_of_its_pages_were_read() -> None:
    async def story(walls: Walls, _: SqliteFrontier) -> None:
        await read(walls, AFTER - 1)
        assert walls.question(HOST) is None
        await read(walls, 1)
        question = await asked(walls, GONE)
        assert question.startswith(f"http://{HOST}/")
        assert walls.question(HOST) is None
        assert walls.question("b.test") is None

    play(story)


def test_what_looks_like_the_answer_is_missing() -> None:
    async def story(walls: Walls, _: SqliteFrontier) -> None:
        await read(walls, AFTER)
        await asked(walls, GONE)
        assert await walls.why_missing(url("gone"), hid(), look(answer(GONE))) is not None
        assert await walls.why_missing(url("there"), hid(), look(answer("<p>" + "quite another text " * 30))) is None
        assert await walls.why_missing(url("gone", Relation.SEED), hid(), look(answer(GONE))) is None
        assert await walls.why_missing(url("empty"), hid(), look(answer(""))) is None

    play(story)


def test_the_address_that_an_error_page_names_makes_no_difference() -> None:
    async def story(walls: Walls, _: SqliteFrontier) -> None:
        await read(walls, AFTER)
        question = walls.question(HOST)
        assert question is not None
        walls.answered(question, answer(f"{GONE} You asked for {question}"))
        told = answer(f"{GONE} You asked for http://{HOST}/some-page")
        assert await walls.why_missing(url("some-page"), hid(), look(told)) is not None

    play(story)


@pytest.mark.parametrize(("html", "missing"), [(SAYS.format("surely"), True), (GONE.replace("but", "still"), False)])
def test_what_is_only_nearly_the_answer_must_say_so_itself(html: str, *, missing: bool) -> None:
    """Pages with much around few words of their own are near each other too."""

    async def story(walls: Walls, _: SqliteFrontier) -> None:
        await read(walls, AFTER)
        frame = " ".join(f"word{number}" for number in range(250))
        await asked(walls, (SAYS.format("there are") if missing else GONE) + frame)
        why = await walls.why_missing(url("gone"), hid(), look(answer(html + frame)))
        assert (why is not None) is missing

    play(story)


def test_a_site_whose_pages_all_look_like_the_answer_loses_none() -> None:
    """A script draws its pages: the server gives every address the same words."""

    async def story(walls: Walls, _: SqliteFrontier) -> None:
        await read(walls, UNLIKE)
        await read(walls, AFTER)
        await asked(walls, GONE)
        for number in range(20):
            why = await walls.why_missing(url(f"app/{number}"), hid(), look(answer(GONE)))
            if number > 2 * (UNLIKE + AFTER):
                assert why is None

    play(story)


@pytest.mark.parametrize("status", [404, 301, 500])
def test_a_host_that_says_so_is_believed(status: int) -> None:
    async def story(walls: Walls, store: SqliteFrontier) -> None:
        await read(walls, AFTER)
        await asked(walls, GONE, status)
        assert await walls.why_missing(url("gone"), hid(), look(answer(GONE))) is None
        probe = await store.probe(hid())
        assert probe is not None
        assert (probe.status, probe.digest) == (status, b"")

    play(story)


def test_the_answer_is_kept_for_the_next_run() -> None:
    async def story(walls: Walls, store: SqliteFrontier) -> None:
        await read(walls, AFTER)
        await asked(walls, GONE)
        await read(walls, 1)
        again = made(store)
        await read(again, AFTER)
        assert again.question(HOST) is None
        for number in range(UNLIKE + 1):
            there = answer(f"<p>{number} " + f"another text {number} " * 30)
            assert await again.why_missing(url("there"), hid(), look(there)) is None
        assert await again.why_missing(url("gone"), hid(), look(answer(GONE))) is not None

    play(story)


def test_no_answer_says_nothing_and_is_not_asked_for_again() -> None:
    async def story(walls: Walls, store: SqliteFrontier) -> None:
        await read(walls, AFTER)
        question = walls.question(HOST)
        assert question is not None
        walls.answered(question, FetchResult(question, 0, error=FetchError.RESET))
        await read(walls, AFTER)
        assert walls.question(HOST) is None
        assert await store.probe(hid()) is None

    play(story)


def test_a_page_that_is_held_against_the_answer_is_read_once(web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Everything(dict[str, Any]):
        def get(self, key: str, default: object = None) -> Any:
            return super().get(key, (404 if "robots" in key else 200, {"Content-Type": "text/html"}, GONE.encode()))

    web.pages = Everything()
    for number in range(9):
        told = f"<a href=/{number + 1}>on</a> " + " ".join(random.Random(number).choices(WORDS, k=90))
        web.put(f"http://a.test/{number}", told)
    looked: Counter[str] = Counter()
    of = Content.of

    def counted(result: FetchResult, settings: PageSettings) -> Content:
        looked[result.url] += 1
        return of(result, settings)

    monkeypatch.setattr(Content, "of", counted)
    result = web.crawl("http://a.test/0", content__probe_after=AFTER, discovery__sitemaps=False)
    story = web.story("http://a.test/9")
    assert (result.counts.states[UrlState.DONE], story and story.reason) == (9, "soft_404")
    assert set(looked.values()) == {1}
