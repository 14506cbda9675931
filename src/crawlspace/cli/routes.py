"""Routes in words: what each cost and brought, and by which a URL goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crawlspace.observe.words import size
from crawlspace.settings import Settings
from crawlspace.states import UrlState
from crawlspace.types import Counts, RouteFigures, Story

PLAIN = "plain HTTP"


def route_facts(settings: Settings, figures: Sequence[RouteFigures], counts: Counts) -> list[dict[str, Any]]:
    """Every route that is set or was used; none where there is no route and nothing was blocked."""
    used = {each.name: each for each in figures}
    routed = [each for each in figures if each.name]
    if not settings.routes and not figures:
        return []
    plain = used.get("", RouteFigures(""))
    facts = [
        {
            "route": PLAIN,
            "kind": "http",
            "requests": counts.fetches - sum(each.requests for each in routed),
            "pages": counts.pages - sum(each.pages for each in routed),
            "blocked": plain.blocked,
            "bytes": counts.bytes - sum(each.bytes for each in routed),
            "budget": None,
            "left": None,
        }
    ]
    for name in dict.fromkeys((*settings.routes, *(each.name for each in routed))):
        facts.append(_of_route(name, settings, used.get(name, RouteFigures(name))))
    return facts


def routes_in_words(facts: Sequence[dict[str, Any]]) -> list[str]:
    """A table of them."""
    if not facts:
        return []
    lines = [f"{'requests':>10} {'pages':>8} {'blocked':>8} {'bytes':>10} {'left':>8}  route"]
    for each in facts:
        left = "" if each["left"] is None else each["left"]
        named = each["route"] + ("" if each["kind"] else " (no longer set)")
        came = f"{each['requests']:10} {each['pages']:8} {each['blocked']:8} {size(each['bytes']):>10}"
        lines.append(f"{came} {left:>8}  {named}")
    return lines


def way_of(story: Story, settings: Settings) -> str | None:
    """By which route a URL goes, came or was lost, in words; None where plain HTTP was all there ever was."""
    first = settings.lanes().first(story.url)
    ways = (*story.routes,) if story.routes else (first,) if first else ()
    if not ways:
        return None
    told = " then ".join(ways)
    if not story.routes:
        return f"{told}, at once, by a rule"
    if story.state in (UrlState.QUEUED, UrlState.LEASED):
        return f"blocked, goes by {told}" if len(ways) == 1 else f"blocked, went by {told}, which is next"
    if story.evidence is None:
        return f"blocked, was to go by {told}"
    return f"blocked at first, went by {told}"


def _of_route(name: str, settings: Settings, used: RouteFigures) -> dict[str, Any]:
    route = settings.routes.get(name)
    budget = None if route is None else route.requests
    return {
        "route": name,
        "kind": None if route is None else str(type(route).__struct_config__.tag),
        "requests": used.requests,
        "pages": used.pages,
        "blocked": used.blocked,
        "bytes": used.bytes,
        "budget": budget,
        "left": None if budget is None else max(0, budget - used.taken),
    }
