"""What pages brought, for `stats` and `explain`: copies, yields, and shapes of addresses that look like traps."""

from __future__ import annotations

from typing import Any

from crawlspace.app.store import Store
from crawlspace.observe.words import moment
from crawlspace.policy.traps import TrapSettings, Tread, scope_rule, shape_of, tread
from crawlspace.types import Address, PageContent, ShapeFigures, Verdict, Yield, host_id

SUSPECTS = 20
"""Shapes that are told."""
HELD = 5_000
"""Shapes that are told where each host is, those with the longest runs."""

_VERDICTS = {
    Verdict.EXACT: "the text of",
    Verdict.NEAR: "nearly the text of",
    Verdict.SHORT: "too short to be called a copy",
}


async def suspects_by_host(store: Store, settings: TrapSettings) -> dict[str, list[dict[str, Any]]]:
    """The same of all hosts, by their names, as far as that can be held."""
    found: dict[str, list[dict[str, Any]]] = {}
    for suspect in await suspects(store, settings, limit=HELD):
        found.setdefault(suspect["host"], []).append(suspect)
    return found


async def suspects(
    store: Store, settings: TrapSettings, hid: int | None = None, limit: int = SUSPECTS
) -> list[dict[str, Any]]:
    """Shapes that are slowed or stopped, the longest runs first, with a rule that leaves them out for good."""
    least = min((run for run in (settings.slow_after, settings.stop_after) if run), default=0)
    if not least:
        return []
    shapes = await store.shapes(hid, least, limit)
    latest = await store.addresses([shape.latest or 0 for shape in shapes])
    return [_suspect(shape, url, settings) for shape, url in zip(shapes, latest, strict=True)]


def _suspect(shape: ShapeFigures, latest: str | None, settings: TrapSettings) -> dict[str, Any]:
    return {
        "host": shape.host,
        "shape": shape.shape,
        "pages": shape.pages,
        "in_a_row": shape.run,
        "latest": latest,
        "done_about_it": "refused" if tread(shape.run, settings) is Tread.NOT else "left for last",
        "rule": scope_rule(shape.host, shape.shape),
    }


def suspect_in_words(suspect: dict[str, Any]) -> str:
    """One suspect for people, on one line."""
    return (
        f"looks like a trap: {suspect['host']} {suspect['shape']}, {suspect['in_a_row']} pages in a row said nothing "
        f"new (such as {suspect['latest']}); further ones are {suspect['done_about_it']}"
    )


def rule_in_words(suspect: dict[str, Any]) -> str:
    """What leaves it out for good, on a line of its own."""
    return f"  to leave it out for good, add to scope.exclude: {suspect['rule']}"


def part(some: int, of: int) -> float | None:
    """A rate as it is told; None where there is nothing yet."""
    return round(some / of, 4) if of else None


def shape_facts(shape: ShapeFigures) -> dict[str, Any]:
    """What the pages of one shape brought."""
    return {
        "host": shape.host,
        "shape": shape.shape,
        "pages": shape.pages,
        "new": shape.new,
        "yield": part(shape.new, shape.pages),
        "same_text": shape.exact,
        "near_duplicates": shape.near,
        "in_a_row": shape.run,
    }


def hour_facts(hour: Yield) -> dict[str, Any]:
    """What the pages of one hour brought."""
    return {
        "hour": moment(hour.hour),
        "pages": hour.pages,
        "new": hour.new,
        "yield": part(hour.new, hour.pages),
        "same_bytes": hour.copies,
        "same_text": hour.exact,
        "near_duplicates": hour.near,
        "links": hour.links,
        "known_links": hour.known,
        "known_link_rate": part(hour.known, hour.links),
    }


async def explained(store: Store, number: int | None, address: Address, settings: TrapSettings) -> dict[str, Any]:
    """What is known of one URL's content and of the shape of its address; None where there is nothing to tell."""
    content = None if number is None else (await store.contents([number]))[0]
    shape = shape_of(address.canonical)
    found = await suspects(store, settings, host_id(address.key))
    suspect = next((each for each in found if each["shape"] == shape), None)
    return {
        **await _content(store, content),
        "trap": None if suspect is None else suspect_in_words(suspect),
        "trap_rule": None if suspect is None else f"scope.exclude: {suspect['rule']}",
    }


async def _content(store: Store, content: PageContent | None) -> dict[str, Any]:
    if content is None:
        return {"content": None, "links": None, "says_of_itself": None}
    of, stopped = await store.addresses([content.copy_of or 0, content.stopped_by or 0])
    verdict = _VERDICTS.get(content.verdict)
    told = verdict if verdict is None or content.verdict is Verdict.SHORT else f"{verdict} {of}"
    links = f"not followed: text and links are those of {stopped}" if content.stopped_by is not None else None
    return {"content": told, "links": links, "says_of_itself": content.sign}
