"""Hosts with a robots.txt of every kind: rules, a delay, all forbidden, HTML, behind a redirect, huge, and down.

Which pages a file forbids is written beside it, not computed from it, so that a matcher can be tested against it.
"""

from __future__ import annotations

from crawlspace.testing.toyweb.answer import HTML, Answer, always, plain, redirect
from crawlspace.testing.toyweb.atlas import Atlas
from crawlspace.testing.toyweb.prose import Sheet
from crawlspace.testing.toyweb.recipe import Feature

CRAWL_DELAY_MS = 300
RULES = """\
# Rules that contradict each other: the longest match wins, and allow wins a tie.
User-agent: otherbot
Disallow: /

User-agent: *
Crawl-delay: 0.3
Disallow: /private/
Allow: /private/but-open
Disallow: /*.draft$
Disallow: /search?q=
"""
HUGE_LINES = 14_000
"""Times 50 bytes: 700 KB, beyond the 500 KiB that RFC 9309, section 2.5 asks a crawler to read."""


def draw(atlas: Atlas) -> None:
    if atlas.has(Feature.ROBOTS):
        _rules(atlas)
        _all_forbidden(atlas)
        _html(atlas)
        _behind_redirect(atlas)
    if atlas.has(Feature.ROBOTS_HUGE):
        _huge(atlas)
    if atlas.has(Feature.ROBOTS_DOWN):
        _down(atlas)


def _pages(atlas: Atlas, origin: str, allowed: tuple[str, ...], forbidden: tuple[str, ...]) -> None:
    """A first page that links to all the others; those of `forbidden` are fenced off."""
    pages = [origin + path for path in (*allowed, *forbidden)]
    for page in pages:
        atlas.page(page, Sheet(f"Page {page.removeprefix(origin)}", atlas.near([f"{origin}/"])))
    atlas.fenced.update(origin + path for path in forbidden)
    atlas.page(f"{origin}/", Sheet("Behind a fence", atlas.near(pages)))
    atlas.front(f"{origin}/")


def _rules(atlas: Atlas) -> None:
    origin = atlas.host("rules.shop.test", RULES)
    atlas.crawl_delays["rules.shop.test"] = CRAWL_DELAY_MS
    allowed = ("/public/1", "/public/2", "/private/but-open", "/plan.draft.html", "/search?page=2")
    _pages(atlas, origin, allowed, ("/private/1", "/private/2", "/plan.draft", "/search?q=oak"))


def _all_forbidden(atlas: Atlas) -> None:
    origin = atlas.host("fenced.shop.test", "User-agent: *\nDisallow: /\n")
    _pages(atlas, origin, (), ("/inside",))
    atlas.fenced.add(f"{origin}/")


def _html(atlas: Atlas) -> None:
    origin = atlas.host("html.shop.test")
    body = b"<!DOCTYPE html><html><head><title>Welcome</title></head><body>Disallow nothing.</body></html>"
    atlas.special(f"{origin}/robots.txt", always(Answer(200, HTML, body)))
    _pages(atlas, origin, ("/1", "/2"), ())


def _behind_redirect(atlas: Atlas) -> None:
    origin = atlas.host("hop.shop.test")
    atlas.special(f"{origin}/robots.txt", always(redirect(302, "/policy/robots.txt")))
    atlas.special(f"{origin}/policy/robots.txt", always(plain(200, "User-agent: *\nDisallow: /hidden\n")))
    _pages(atlas, origin, ("/shown",), ("/hidden",))


def _huge(atlas: Atlas) -> None:
    filler = "".join(f"Disallow: /nothing/is/here/{number:020}/\n" for number in range(HUGE_LINES))
    origin = atlas.host("vast.shop.test", "User-agent: *\nDisallow: /hidden\n" + filler)
    _pages(atlas, origin, ("/shown",), ("/hidden",))


def _down(atlas: Atlas) -> None:
    origin = atlas.host("down.shop.test")
    atlas.special(f"{origin}/robots.txt", always(plain(503, "The server is busy.")))
    atlas.page(f"{origin}/", Sheet("Never to be asked for"))
    atlas.deferred.add("down.shop.test")
    atlas.front(f"{origin}/")
