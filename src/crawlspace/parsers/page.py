"""The parser `page`: what a page says of itself, and its text.

One record a page: title, language, description, headings, OpenGraph, JSON-LD, dates, the visible text, and the main
text where the extra `text` is installed. Whatever a page holds, each part is bounded.

Sources: HTML Standard; the Open Graph protocol; JSON-LD 1.1, section 4.9 (scripts in HTML); schema.org for dates.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec
from selectolax.lexbor import LexborNode

from crawlspace.pages.timestamps import read_time
from crawlspace.parsers.definition import Match, parser
from crawlspace.parsers.document import Document
from crawlspace.parsers.links import alternates
from crawlspace.parsers.maintext import main_text
from crawlspace.parsers.records import PAGE_KEY, Item

HEADINGS: Final = 200
HEADING_TEXT: Final = 500
META_TEXT: Final = 5_000
GRAPH: Final = 100
"""OpenGraph properties of one page."""
SCRIPTS: Final = 50
SCRIPT_SIZE: Final = 1 << 20
"""Characters of one JSON-LD script."""
THINGS: Final = 1000
"""Objects of JSON-LD that are looked into for dates."""

_META: Final = "meta[content]"
_HEADING: Final = "h1,h2,h3,h4,h5,h6"
_SCRIPT: Final = "script[type='application/ld+json' i]"
_KINDS: Final = {"meta": _META, "script": _SCRIPT}

_PUBLISHED: Final = ("article:published_time", "datepublished", "date", "dc.date", "dcterms.created", "pubdate")
_MODIFIED: Final = ("article:modified_time", "og:updated_time", "datemodified", "last-modified", "dcterms.modified")


@parser("page", 1, match=Match.of(type="html"), key=PAGE_KEY)
def page(document: Document) -> Item:
    """The record of one page."""
    text = document.plain
    found = _found(document)
    named = dict(_metas(found[_META]))
    things = list(_scripts(found[_SCRIPT]))
    data: dict[str, Any] = {
        "title": document.title,
        "language": document.language,
        "description": named.get("description") or named.get("og:description"),
        "headings": list(_headings(found[_HEADING])),
        "canonical": document.resolve(document.canonical) if document.canonical else None,
        "opengraph": dict(islice(((n, v) for n, v in named.items() if n.startswith("og:")), GRAPH)),
        "jsonld": things,
        "published": _date(named, things, _PUBLISHED, "datePublished"),
        "modified": _date(named, things, _MODIFIED, "dateModified"),
        "text": text,
        "main": main_text(document),
    }
    return Item(
        {name: value for name, value in data.items() if value not in (None, "", [], {})},
        twins=alternates(document)[1],
    )


def _found(document: Document) -> dict[str, list[LexborNode]]:
    """The elements that are read, by kind and in the order of the page."""
    found: dict[str, list[LexborNode]] = {_META: [], _HEADING: [], _SCRIPT: []}
    for node in document.css(f"{_META},{_HEADING},{_SCRIPT}"):
        found[_KINDS.get(node.tag or "", _HEADING)].append(node)
    return found


def _metas(nodes: list[LexborNode]) -> Iterator[tuple[str, str]]:
    """Names and properties of meta elements in small letters; of equal ones the first."""
    seen: set[str] = set()
    for node in nodes:
        attributes = node.attributes
        name = (
            (attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or "").strip().lower()
        )
        value = " ".join((attributes["content"] or "").split())[:META_TEXT]
        if name and value and name not in seen:
            seen.add(name)
            yield name, value


def _headings(nodes: list[LexborNode]) -> Iterator[dict[str, Any]]:
    for node in nodes[:HEADINGS]:
        text = " ".join(node.text().split())[:HEADING_TEXT]
        if text:
            yield {"level": int((node.tag or "h6")[1]), "text": text}


def _scripts(nodes: list[LexborNode]) -> Iterator[Any]:
    for node in nodes[:SCRIPTS]:
        text = node.text()
        if len(text) > SCRIPT_SIZE:
            continue
        try:
            found = msgspec.json.decode(text.encode("utf-8", "replace"))
        except (msgspec.DecodeError, RecursionError):
            continue
        if isinstance(found, dict | list):
            yield found


def _date(named: dict[str, str], things: list[Any], names: tuple[str, ...], member: str) -> str | None:
    """The first date that can be read, as the page writes it."""
    given = [named[name] for name in names if name in named]
    given += [str(thing[member]) for thing in islice(_objects(things), THINGS) if isinstance(thing.get(member), str)]
    return next((text for text in given if read_time(text) is not None), None)


def _objects(things: list[Any]) -> Iterator[dict[str, Any]]:
    """The objects of JSON-LD, those of a graph too."""
    waiting = things[::-1]
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, list):
            waiting += thing[:THINGS][::-1]
        elif isinstance(thing, dict):
            yield thing
            waiting += [thing["@graph"]] if "@graph" in thing else []
