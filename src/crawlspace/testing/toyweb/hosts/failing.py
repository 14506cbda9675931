"""Hosts that never answer, or soon no more. Their pages are on the map, but no crawl is expected to get them."""

from __future__ import annotations

from collections.abc import Callable

from crawlspace.testing.toyweb.answer import NOT_FOUND, Answer, Framing, Reply, always
from crawlspace.testing.toyweb.atlas import Atlas
from crawlspace.testing.toyweb.prose import Sheet
from crawlspace.testing.toyweb.recipe import Feature

PAGES = 6
LAST_WORDS = 3
"""Requests that the dying host answers, robots.txt included."""
SILENCE = Answer(0, framing=Framing.SILENT)
RESET = Answer(0, framing=Framing.RESET)


def draw(atlas: Atlas) -> None:
    if atlas.has(Feature.DEAD):
        _draw_host(atlas, "dead.shop.test", "connect", lambda honest: honest)
    if atlas.has(Feature.MUTE):
        _draw_host(atlas, "mute.shop.test", "idle_timeout", lambda _honest: always(SILENCE))
    if atlas.has(Feature.DYING):
        _draw_host(atlas, "dying.shop.test", "reset", _while_alive)


def _draw_host(atlas: Atlas, host: str, failure: str, behave: Callable[[Reply], Reply]) -> None:
    origin = atlas.host(host)
    pages = [f"{origin}/", *(f"{origin}/{number}" for number in range(2, PAGES + 1))]
    for page in pages:
        sheet = Sheet(f"On {host}", atlas.near(other for other in pages if other != page))
        atlas.page(page, sheet, behave(atlas.honest(page, sheet)))
    atlas.wild(origin, behave(always(NOT_FOUND)))
    atlas.lost[host] = failure
    atlas.front(pages[0])


def _while_alive(honest: Reply) -> Reply:
    return lambda ask: honest(ask) if ask.host_before < LAST_WORDS else RESET
