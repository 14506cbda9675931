"""`moves.shop.test`: redirects that lead somewhere, in circles, away, or behind a fence; and a seed that moved.

`/account` redirects to itself with a cookie and answers once the cookie comes back within that chain of redirects:
a crawler that takes the second request for a repeat never sees the page.
"""

from __future__ import annotations

from crawlspace.testing.toyweb.answer import Answer, Ask, with_fields
from crawlspace.testing.toyweb.answer import redirect as redirect_answer
from crawlspace.testing.toyweb.atlas import Atlas
from crawlspace.testing.toyweb.prose import Sheet
from crawlspace.testing.toyweb.recipe import Feature

CHAIN = (301, 302, 303, 307, 308)
COOKIE = "visitor=known"


def draw(atlas: Atlas) -> None:
    origin = atlas.host("moves.shop.test")
    starts: list[str] = []
    if atlas.has(Feature.REDIRECTS):
        starts += _redirects(atlas, origin)
    if atlas.has(Feature.COOKIE):
        starts.append(_account(atlas, origin))
    if atlas.has(Feature.MOVED_SEED):
        _moved_seed(atlas)
    atlas.page(f"{origin}/", Sheet("Moves", atlas.near(starts)))
    atlas.front(f"{origin}/")


def _redirects(atlas: Atlas, origin: str) -> list[str]:
    for step, status in enumerate(CHAIN):
        location = str(step + 1) if step % 2 else ""
        atlas.moved(f"{origin}/chain/{step}", f"{origin}/chain/{step + 1}", status, location)
    atlas.page(f"{origin}/chain/{len(CHAIN)}", Sheet("End of the chain", atlas.near([f"{origin}/"])))
    atlas.moved(f"{origin}/circle/a", f"{origin}/circle/b", 302)
    atlas.moved(f"{origin}/circle/b", f"{origin}/circle/a", 302)
    own = f"{origin}/self"
    atlas.dead(own, "redirect_loop", lambda _ask: redirect_answer(302, own))
    atlas.host("elsewhere.test")
    atlas.page("http://elsewhere.test/landing", Sheet("Elsewhere"))
    atlas.moved(f"{origin}/away", "http://elsewhere.test/landing", 302)
    starts = ["chain/0", "circle/a", "self", "away"]
    if atlas.has(Feature.ROBOTS):
        atlas.moved(f"{origin}/into-the-fence", "http://rules.shop.test/private/2", 301)
        starts.append("into-the-fence")
    return [f"{origin}/{start}" for start in starts]


def _account(atlas: Atlas, origin: str) -> str:
    page = f"{origin}/account"
    sheet = Sheet("Your account", atlas.near([f"{origin}/"]))
    honest = atlas.honest(page, sheet)

    def reply(ask: Ask) -> Answer:
        if COOKIE in ask.headers.get("cookie", ""):
            return honest(ask)
        return with_fields(redirect_answer(302, "/account"), ("Set-Cookie", f"{COOKIE}; Path=/"))

    atlas.page(page, sheet, reply)
    return page


def _moved_seed(atlas: Atlas) -> None:
    old, new = atlas.host("old.test"), atlas.host("new.test")
    atlas.moved(f"{old}/", f"{new}/", 301)
    rooms = [f"{new}/room/{number}" for number in (1, 2, 3)]
    for page in rooms:
        atlas.page(page, Sheet("A room", atlas.near([f"{new}/"])))
    atlas.page(f"{new}/", Sheet("The new house", atlas.near(rooms)))
    atlas.seed(f"{old}/", f"{old}/")
