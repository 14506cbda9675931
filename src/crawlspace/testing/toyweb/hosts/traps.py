"""Hosts on which following links never ends, or ends far too late. Each has one entrance and no other content."""

from __future__ import annotations

from hashlib import blake2b
from urllib.parse import parse_qsl, urlencode, urlsplit

from crawlspace.testing.toyweb.answer import HTML, NOT_FOUND, Answer, Ask, Reply
from crawlspace.testing.toyweb.atlas import Atlas, Trap
from crawlspace.testing.toyweb.prose import Href, Sheet, write
from crawlspace.testing.toyweb.recipe import Feature

FIRST_YEAR = 2026
LAST_YEAR = 9999
COLOURS = ("amber", "blue", "copper", "dove")
SIZES = ("large", "medium", "small", "tiny")
SORTS = ("age", "name", "price", "rating")


def draw(atlas: Atlas) -> None:
    for feature, place in _PLACES.items():
        if atlas.has(feature):
            place(atlas)


def _trap_page(atlas: Atlas, title: str, hrefs: list[str], voice: str) -> Answer:
    """All pages of one trap say the same; their links alone differ."""
    links = tuple(Href(text, text, text) for text in hrefs)
    sheet = Sheet(title, links, voice=voice, paragraphs=5)
    return Answer(200, HTML, write(sheet, atlas.recipe.chance("voice", voice)))


def _open(atlas: Atlas, name: str, entrance: str, trap: Trap, reply: Reply) -> None:
    """A host whose first page is the only honest one and links to the trap."""
    origin = atlas.host(name)
    atlas.wild(origin, lambda ask: reply(ask) if ask.url.startswith(trap.prefix) else NOT_FOUND)
    atlas.traps.append(trap)
    atlas.page(f"{origin}/", Sheet(f"Welcome to {name}", atlas.near([origin + entrance])))
    atlas.front(f"{origin}/")


def _calendar(atlas: Atlas) -> None:
    def reply(ask: Ask) -> Answer:
        year, month = _month(ask.target)
        following = f"/month/{year + month // 12:04}/{month % 12 + 1:02}"
        return _trap_page(atlas, f"Events of {year:04}-{month:02}", [following, "/"], "calendar")

    trap = Trap("http://calendar.shop.test/month/", Feature.CALENDAR)
    _open(atlas, "calendar.shop.test", f"/month/{FIRST_YEAR}/01", trap, reply)


def _month(target: str) -> tuple[int, int]:
    """Year and month of `/month/2026/01`; the first month for what cannot be read."""
    parts = target.split("/")[2:4]
    if len(parts) == 2 and all(part.isascii() and part.isdigit() for part in parts):
        return min(int(parts[0][:4]), LAST_YEAR), min(max(int(parts[1][:2]), 1), 12)
    return FIRST_YEAR, 1


def _facets(atlas: Atlas) -> None:
    values = atlas.recipe.extent.facet_values
    facets = {"colour": COLOURS[:values], "size": SIZES[:values], "sort": SORTS[:values]}

    def reply(ask: Ask) -> Answer:
        chosen = {key: value for key, value in parse_qsl(urlsplit(ask.target).query) if value in facets.get(key, ())}
        return _trap_page(atlas, "The outlet", [*_choices(chosen, facets), "/"], "outlet")

    trap = Trap("http://outlet.shop.test/list", Feature.FACETS, (values + 1) ** len(facets))
    _open(atlas, "outlet.shop.test", "/list", trap, reply)


def _choices(chosen: dict[str, str], facets: dict[str, tuple[str, ...]]) -> list[str]:
    """One click further: each other value of each facet, put last, and each chosen facet taken off."""
    links = []
    for key, values in facets.items():
        others = {name: value for name, value in chosen.items() if name != key}
        for value in values:
            if chosen.get(key) != value:
                links.append(f"/list?{urlencode({**others, key: value})}")
        if key in chosen:
            links.append(f"/list?{urlencode(others)}" if others else "/list")
    return links


def _sessions(atlas: Atlas) -> None:
    def reply(ask: Ask) -> Answer:
        fresh = blake2b(f"{atlas.recipe.seed} {ask.target}".encode(), digest_size=12).hexdigest()
        return _trap_page(atlas, "A room for every visitor", [f"/room?visit={fresh}", "/"], "visit")

    trap = Trap("http://visit.shop.test/room", Feature.SESSIONS)
    _open(atlas, "visit.shop.test", "/room", trap, reply)


def _deepening(atlas: Atlas) -> None:
    def reply(_ask: Ask) -> Answer:
        return _trap_page(atlas, "Further down", ["more/", "/"], "deep")

    trap = Trap("http://deep.shop.test/more/", Feature.DEEPENING)
    _open(atlas, "deep.shop.test", "/more/", trap, reply)


_PLACES = {
    Feature.CALENDAR: _calendar,
    Feature.FACETS: _facets,
    Feature.SESSIONS: _sessions,
    Feature.DEEPENING: _deepening,
}
