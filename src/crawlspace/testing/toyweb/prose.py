"""The text of the toy web: HTML pages of plain words, the same for the same seed and address.

A page is 1 to 30 KB, with a title, a navigation, paragraphs and links; most pages are small and a few are long,
as on real sites.
"""

from __future__ import annotations

import random
from enum import Enum, auto, unique
from html import escape

from msgspec import Struct

_VOCABULARY = """
amber anchor apple arch attic autumn basket beacon bell birch bottle bread bridge bronze brush bucket button
cabin candle canvas carpet cedar chalk cherry clay cliff clock cloud coat copper cotton cradle cup curtain
daisy desk dial door drum dust ember engine fabric feather fence fern field flame flint flour forest fountain
frame garden gate glass glove grain granite gravel grove hammer handle harbour harvest hazel hedge hinge honey
island ivory jar kettle key kitchen ladder lamp lantern leather lemon lever linen locket maple marble market
meadow mill mirror moss needle nest oak oar ocean olive orchard oven paddle paper path pearl pebble pepper
pillow pine pitcher planter plum pocket pond porch pot quilt rain ribbon river roof rope saddle salt sand
shelf shell shore silver slate spoon spring stair stone storm stove straw string sugar table thread tile
timber tin tower trail tray tunnel twine valley velvet village vine wagon wall walnut water wheel willow
window winter wood wool yard
"""
WORDS = _VOCABULARY.split()

MIN_PARAGRAPHS = 4
MORE_PARAGRAPHS = 62
WORDS_IN_PARAGRAPH = (25, 75)


@unique
class Tag(Enum):
    """How a link stands in its page."""

    ANCHOR = auto()
    FRAME = auto()
    """An inline frame."""
    REFRESH = auto()
    """A meta refresh."""


class Href(Struct, frozen=True):
    """One link: its text in the page, what a browser makes of that, and the page it leads to."""

    text: str
    url: str
    """The fetch URL: resolved, fragment dropped."""
    page: str
    """The one address of the page behind it."""
    tag: Tag = Tag.ANCHOR


class Sheet(Struct, frozen=True):
    """What is written on a page."""

    title: str
    links: tuple[Href, ...] = ()
    voice: str = ""
    """Decides the words: pages of one voice have the same text."""
    canonical: str = ""
    charset: str = "utf-8"
    lead: str = ""
    """A first sentence that is the page's own."""
    paragraphs: int | None = None
    """None: as many as its voice has."""


def paragraphs(chance: random.Random, count: int | None = None) -> list[str]:
    """Text of so many paragraphs, by default mostly few and now and then many."""
    if count is None:
        count = MIN_PARAGRAPHS + int(MORE_PARAGRAPHS * chance.random() ** 4)
    found = []
    for _ in range(count):
        words = chance.choices(WORDS, k=chance.randint(*WORDS_IN_PARAGRAPH))
        found.append(" ".join(words).capitalize() + ".")
    return found


def write(sheet: Sheet, chance: random.Random) -> bytes:
    """The page in HTML, in its charset."""
    head = [f'<meta charset="{sheet.charset}">', f"<title>{escape(sheet.title)}</title>"]
    if sheet.canonical:
        head.append(f'<link rel="canonical" href="{escape(sheet.canonical)}">')
    head += [
        f'<meta http-equiv="refresh" content="0; url={escape(link.text)}">'
        for link in sheet.links
        if link.tag is Tag.REFRESH
    ]
    texts = [f"<p>{text}</p>" for text in paragraphs(chance, sheet.paragraphs)]
    body = [f"<h1>{escape(sheet.title)}</h1>", *([f"<p>{escape(sheet.lead)}</p>"] if sheet.lead else []), *texts]
    lines = ["<!DOCTYPE html>", '<html lang="en">', "<head>", *head, "</head>", "<body>", *body]
    lines += [*_links(sheet.links, chance), "</body>", "</html>", ""]
    return "\n".join(lines).encode(sheet.charset)


def _links(links: tuple[Href, ...], chance: random.Random) -> list[str]:
    lines = [f'<iframe src="{escape(link.text)}"></iframe>' for link in links if link.tag is Tag.FRAME]
    anchors = [
        f'<li><a href="{escape(link.text)}">{" ".join(chance.choices(WORDS, k=3))}</a></li>'
        for link in links
        if link.tag is Tag.ANCHOR
    ]
    if anchors:
        lines += ["<nav><ul>", *anchors, "</ul></nav>"]
    return lines


def write_frameset(title: str, links: tuple[Href, ...]) -> bytes:
    """A page that is nothing but frames."""
    frames = "\n".join(f'<frame src="{escape(link.text)}">' for link in links)
    return (
        f"<!DOCTYPE html>\n<html>\n<head><title>{escape(title)}</title></head>\n"
        f'<frameset cols="30%,70%">\n{frames}\n</frameset>\n</html>\n'
    ).encode()
