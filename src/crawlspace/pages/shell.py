"""Pages that are little without their scripts: what shows it, counted from the page itself. Pure.

Looking costs a second parsing of the page, so only pages that could be such are looked at: few links, and scripts.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawlspace.content.text import tree_text
from crawlspace.exchange import Headers
from crawlspace.pages.encoding import as_utf8, sniff
from crawlspace.pages.mime import is_html
from crawlspace.pages.tree import parse

FEW_LINKS: Final = 10
"""Links below which a page may be a shell."""
WAITING: Final = 60
"""Characters of text that an element may hold which waits to be filled, such as `Loading`."""

_SCRIPT: Final = re.compile(rb"<script[\s>/]", re.I)
_LINK: Final = re.compile(rb"<a[\s>/]", re.I)
_ROOTS: Final = (
    "#root,#app,#__next,#__nuxt,#___gatsby,#svelte,#q-app,#react-root,#app-root,#application,app-root,"
    "[data-reactroot],[ng-app],[ng-version]"
)
"""Elements that frameworks fill: React, Vue, Next, Nuxt, Gatsby, Svelte, Quasar, Angular."""
_ASKING: Final = re.compile("javascript", re.I)


class Looks(NamedTuple):
    """What a page shows before its scripts have run."""

    text: int
    """Characters of its text, scripts and what stands in for them apart."""
    links: int
    scripts: int
    root: str = ""
    """The element, as `div#root`, that is there to be filled and is empty; empty when there is none."""
    asks: bool = False
    """It asks readers without scripts to turn them on."""


def looks_of(body: bytes, headers: Headers) -> Looks | None:
    """What a page shows; None for one that is surely no shell, or no page."""
    if not _SCRIPT.search(body) or len(_LINK.findall(body)) >= FEW_LINKS or not is_html(headers, body):
        return None
    document = parse(as_utf8(body, sniff(body, headers))).document
    scripts = len(document.css("script"))
    root = _empty_root(document)
    asks = _asks(document)
    links = len(document.css("a[href]"))
    return Looks(len(tree_text(document).strip()), links, scripts, root, asks)


def _empty_root(document: LexborHTMLParser) -> str:
    for element in document.css(_ROOTS):
        if not element.css("a[href]") and len(element.text(deep=True, strip=True)) <= WAITING:
            name = element.attributes.get("id")
            return f"{element.tag}#{name}"[:WAITING] if name else str(element.tag)[:WAITING]
    return ""


def _asks(document: LexborHTMLParser) -> bool:
    """Whether a `noscript` asks for scripts; it is taken out, since its words are not the page's."""
    found: list[LexborNode] = document.css("noscript")
    asks = any(_ASKING.search(element.text(deep=True) or "") for element in found)
    for element in found:
        element.decompose()
    return asks
