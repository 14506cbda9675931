"""A browser for a crawl, and what decides which pages it gets."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from crawlspace.clock import Clock
from crawlspace.engine.rendering import Rendering
from crawlspace.events import Watcher
from crawlspace.fetch.browser import SLACK_SECONDS, Browser
from crawlspace.fetch.rendering.house import House
from crawlspace.fetch.rendering.settings import BrowserRoute
from crawlspace.policy.rendering import Memory, kind_of, remembered
from crawlspace.policy.traps import shape_of
from crawlspace.ports import Ledger
from crawlspace.settings import Settings
from crawlspace.types import Address
from crawlspace.urls import Identity

_NO_ROUTE = BrowserRoute()


def browser_of(settings: Settings, clock: Clock, house: House, route: BrowserRoute = _NO_ROUTE) -> Browser:
    """A browser as a crawl or one of its routes has it, not started; raises `ConfigError` where there is none."""
    chosen = settings.browser
    return Browser(
        house,
        msgspec.structs.replace(
            chosen,
            user_agent=settings.agent(route.user_agent or chosen.user_agent),
            timeout=route.seconds(chosen.timeout),
        ),
        settings.fetch,
        settings.network,
        clock,
        public=bool(settings.contact),
    )


def rendering_of(
    settings: Settings, house: House, identity: Identity, ledger: Ledger, watch: tuple[Watcher, Clock]
) -> Rendering | None:
    """What gives pages to a browser; None where no page is to be rendered. Raises `ConfigError`."""
    if not settings.rendering.on:
        return None
    return Rendering(
        settings=settings.rendering,
        renderer=browser_of(settings, watch[1], house),
        ledger=ledger,
        identity=identity,
        pages=settings.discovery,
        clock=watch[1],
        watch=watch[0],
    )


def browser_seconds(settings: Settings) -> float:
    """What a page takes a browser at most, where one is used; a host is held for longer."""
    usual = settings.browser.timeout
    limits = [route.seconds(usual) for route in settings.routes.values() if isinstance(route, BrowserRoute)]
    return max([*limits, *([usual] if settings.rendering.on else [])], default=-SLACK_SECONDS) + SLACK_SECONDS


def told(facts: Mapping[str, str], address: Address) -> str | None:
    """What a crawl knows of rendering pages such as this address; None when nothing."""
    memory = remembered(facts)
    shape = shape_of(address.canonical)
    kind = memory.kinds.get(kind_of(address.host, shape))
    if kind is not None:
        return str(kind)
    wanted = memory.wants(address.host, shape)
    if wanted is None:
        return None
    return f"shells of {address.host} are {'rendered' if wanted else 'not rendered'}: all kinds tried there say so"


def figures(facts: Mapping[str, str]) -> dict[str, int] | None:
    """What a browser did for a crawl, in numbers; None when nothing."""
    memory = remembered(facts)
    if memory == Memory():
        return None
    renders = sum(kind.renders for kind in memory.kinds.values())
    return {
        "pages": memory.pages,
        "failed": memory.failed,
        "requests": memory.requests,
        "bytes": memory.bytes,
        "kinds_rendered": renders,
        "kinds_not_rendered": len(memory.kinds) - renders,
    }
