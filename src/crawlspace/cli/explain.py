"""`crawlspace explain`: for any URL, what happened, by which rule, and what comes next."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from crawlspace.app import rendering
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.merged import Merged, merged_urls
from crawlspace.cli.brought import explained
from crawlspace.cli.hosts import waits
from crawlspace.cli.options import as_json, directory_argument, echo_json, reading, run, settings_used
from crawlspace.cli.routes import way_of
from crawlspace.clock import SystemClock
from crawlspace.engine.control import read_ignored
from crawlspace.errors import UsageError
from crawlspace.observe.printable import printable
from crawlspace.observe.words import duration, moment, size, what_next
from crawlspace.policy.scope import Scope
from crawlspace.ports import Ledger
from crawlspace.states import UrlState
from crawlspace.types import Address, HostFigures, Relation, Round, Story, Unusable


class _Found(Struct, frozen=True):
    address: Address
    story: Story | None
    unknown: str
    """Why a URL that is not known is not, in words."""
    host: str
    """Why its host is not asked just now, in words; empty when it is, or when nothing is left to ask."""
    rounds: list[Round]
    """How earlier visits ended."""
    declared: str | None
    """What the page declares as its own address; empty when that is its own."""
    merged: list[Merged]
    """URLs that became one with it when the URL rules changed."""
    content: dict[str, Any]
    """What its page says beside others, whether its address is a trap, how it is rendered, and its way."""


@click.command("explain")
@directory_argument
@click.argument("url")
@as_json
def command(directory: Path, url: str, json_lines: bool) -> None:
    """Tell the story of one URL."""
    found = run(lambda: _find(directory, url))
    facts = _facts(found)
    if json_lines:
        echo_json(facts)
        return
    for name, value in facts.items():
        if value is None or value == [] or name in ("history", "rounds", "merged", "routes"):
            continue
        if name == "pointer":
            value = f"{value['file']}, {value['length']} bytes from {value['offset']}"
        click.echo(f"{name:14}{printable(str(value))}")
    for each in facts.get("rounds") or ():
        found_then = " ".join(filter(None, (each["state"], each["reason"], _change(each["changed"]))))
        click.echo(f"{'earlier visit':14}{each['at']}  {printable(found_then)}")
    for each in facts.get("merged") or ():
        then = " ".join(filter(None, (each["state"], each["reason"], each["status"] and f"HTTP {each['status']}")))
        click.echo(f"{'also':14}{printable(each['url'])}, one with it by the URL rules; before: {printable(then)}")
    for attempt in facts.get("history") or ():
        click.echo(f"{'tried':14}{attempt['at']}  {printable(attempt['error'])}")


async def _find(directory: Path, url: str) -> _Found:
    place = CrawlDirectory(directory)
    settings = settings_used(place)
    async with reading(directory, settings) as (frontier, identity):
        address = identity.identify(url)
        if isinstance(address, Unusable):
            raise UsageError(f"{printable(url)!r} is no URL that can be crawled ({address.reason})")
        (story,) = await frontier.find([address.key])
        (rounds,) = await frontier.rounds([address.key])
        (declared,) = await frontier.declared([address.key])
        notes = await frontier.notes()
        host = await _host(frontier, address.host)
        content = await explained(frontier, None if story is None else story.id, address, settings.traps)
        content["rendering"] = rendering.told(notes, address)
    content |= {} if story is None else {"routes": list(story.routes), "way": way_of(story, settings)}
    scope = Scope.restore(settings.scope, notes.get("scope")).ignoring(read_ignored(notes))
    asked = host is not None and story is not None and story.state is UrlState.QUEUED
    return _Found(
        address,
        story,
        "" if story else _why_unknown(address, scope),
        waits(host, SystemClock().now()) if host and asked else "",
        rounds,
        declared,
        [] if story is None else merged_urls(place, settings, story.id),
        content,
    )


async def _host(frontier: Ledger, name: str) -> HostFigures | None:
    """One host's figures: the first behind all names that come before it."""
    before = name[:-1] + chr(ord(name[-1]) - 1) + chr(sys.maxunicode)
    found = await frontier.hosts(before, 1)
    return found[0] if found and found[0].name == name else None


def _why_unknown(address: Address, scope: Scope) -> str:
    refusal = scope.judge(address, depth=1, hops=0, relation=Relation.HYPERLINK)
    if refusal is not None:
        return f"never seen, or seen and only counted; a link to it would be refused: {refusal}"
    return "never seen: no page read so far links to it; a link to it would be followed"


def _facts(found: _Found) -> dict[str, Any]:
    address, story = found.address, found.story
    if story is None:
        return {
            "url": address.fetch_url,
            "canonical": address.canonical,
            "key": address.key.hex(),
            "state": None,
            "trap": found.content["trap"],
            "trap_rule": found.content["trap_rule"],
            "next": found.unknown,
        }
    evidence = story.evidence
    facts: dict[str, Any] = {
        "url": story.url,
        "canonical": address.canonical,
        "key": address.key.hex(),
        "state": story.state.name.lower(),
        "reason": story.reason,
        "detail": story.detail or None,
        "found": f"{story.relation} on {story.parent}" if story.parent else str(story.relation),
        "found_at": moment(story.found_at),
        "depth": story.depth,
        "hops": story.hops or None,
        "class": story.front_class,
        "attempts": story.attempts,
        "label": story.label,
        "meta": story.meta,
        "settled_at": moment(story.settled_at) if story.settled_at else None,
        "redirects_to": story.target,
        "copy_of": story.copy_of,
        **found.content,
        "declares": "itself" if found.declared == "" else found.declared,
        "outcome": None,
        "pointer": None,
        "generation": story.generation or None,
        "last_visit": _change(story.changed),
        "next_visit": moment(story.next_visit) if story.next_visit else None,
        "rounds": list(map(_round, found.rounds)),
        "merged": list(map(_merged, found.merged)),
        "history": [{"at": moment(each.at), "error": each.error, "status": each.status} for each in story.history],
        "host_waits": found.host or None,
        "next": _next(story),
    }
    if evidence is not None:
        facts["outcome"] = _outcome(story)
        if evidence.pointer is not None:
            file, offset, length = evidence.pointer
            facts["pointer"] = {"file": file, "offset": offset, "length": length}
    return facts


def _next(story: Story) -> str:
    if story.next_visit is not None:
        return f"visited again from {moment(story.next_visit)} on, by crawl --recrawl"
    return what_next(story, SystemClock().now())


def _round(one: Round) -> dict[str, Any]:
    return {
        "generation": one.generation,
        "at": moment(one.at),
        "state": one.state.name.lower(),
        "status": one.status,
        "reason": one.reason,
        "changed": one.changed,
        "pointer": None if one.pointer is None else one.pointer._asdict(),
    }


def _change(changed: bool | None) -> str | None:
    if changed is None:
        return None
    return "found something new" if changed else "found no change"


def _merged(merged: Merged) -> dict[str, Any]:
    """A URL that became one with another, as it was then."""
    pointer = merged.pointer
    return {
        "url": merged.url,
        "state": merged.state.name.lower(),
        "reason": merged.reason,
        "at": moment(merged.at) if merged.at else None,
        "status": merged.status,
        "pointer": None if pointer is None else pointer._asdict(),
    }


def _outcome(story: Story) -> str:
    evidence = story.evidence
    assert evidence is not None
    parts = [f"HTTP {evidence.status}" if evidence.status else (evidence.error or story.state.name.lower())]
    if evidence.mime:
        parts.append(evidence.mime)
    if story.state is not UrlState.SKIPPED:
        parts += [
            size(evidence.size),
            duration(evidence.elapsed_ms / 1000) if evidence.elapsed_ms >= 1000 else f"{evidence.elapsed_ms} ms",
        ]
    if evidence.at:
        parts.append(f"requested {moment(evidence.at)}")
    return ", ".join(parts)
