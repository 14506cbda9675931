"""`bücher.test`: a name that is not ASCII, links in both of its forms, and a page in windows-1252.

The query of a link is written in the encoding of its page, its path always in UTF-8 (WHATWG URL, "percent-encode
after encoding"): who takes the one for the other asks for a page that is not there.
"""

from __future__ import annotations

from urllib.parse import quote

from crawlspace.testing.toyweb.atlas import Atlas
from crawlspace.testing.toyweb.prose import Href, Sheet
from crawlspace.testing.toyweb.recipe import Feature

UNICODE = "http://bücher.test"
HOST = "xn--bcher-kva.test"
LEGACY = "windows-1252"


def draw(atlas: Atlas) -> None:
    if not atlas.has(Feature.IDN):
        return
    origin = atlas.host(HOST)
    books = [f"{origin}/buch/{number}" for number in range(1, atlas.recipe.extent.books + 1)]
    for place, page in enumerate(books):
        following = books[(place + 1) % len(books)]
        unicode = following.replace(origin, UNICODE if place % 2 else "http://BÜCHER.test")
        links = (Href(unicode, following, following), *atlas.plain([f"{origin}/"]))
        atlas.page(page, Sheet(f"Buch {place + 1}", links, lead=f"Das Buch Nummer {place + 1}."))
    shelf = f"{origin}/{quote('regal-für-märchen')}"
    atlas.page(shelf, Sheet("Regal für Märchen", atlas.plain(books[:2])))
    legacy = f"{origin}/alt"
    found = _search(origin, LEGACY)
    links = (Href("/suche?wort=Grüße", found, found), Href("/regal-für-märchen", shelf, shelf))
    atlas.page(legacy, Sheet("Alte Bücher", links, charset=LEGACY))
    atlas.page(found, Sheet("Gesucht: Grüße"))
    modern = _search(origin, "utf-8", "Straße")
    first = (
        *(Href(page.replace(origin, UNICODE), page, page) for page in books[::2]),
        *atlas.near([*books[1::2], legacy]),
        Href("/suche?wort=Straße", modern, modern),
    )
    atlas.page(modern, Sheet("Gesucht: Straße"))
    atlas.page(f"{origin}/", Sheet("Bücher", first))
    atlas.seed(f"{UNICODE}/", f"{origin}/")


def _search(origin: str, charset: str, word: str = "Grüße") -> str:
    return f"{origin}/suche?wort={quote(word, encoding=charset)}"
