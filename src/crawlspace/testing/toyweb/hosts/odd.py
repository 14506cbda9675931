"""`odd.shop.test`: statuses, throttles, codings, slow and lying answers; and a host that never says 404."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from email.utils import formatdate

from msgspec.structs import replace

from crawlspace.testing.toyweb.answer import Answer, Ask, Framing, Reply, always, plain, with_fields
from crawlspace.testing.toyweb.atlas import Atlas, Node
from crawlspace.testing.toyweb.prose import Sheet
from crawlspace.testing.toyweb.recipe import Feature

RETRY_AFTER_MS = 1000
OVERSIZED_BLOCK = 64 * 1024
OVERSIZED_BLOCKS = 320
"""Times 64 KiB: 20 MiB."""
HOME = "http://odd.shop.test/"


def draw(atlas: Atlas) -> None:
    origin = atlas.host("odd.shop.test")
    names: list[str] = []
    for feature, place in _PLACES.items():
        if atlas.has(feature):
            names += place(atlas, origin)
    atlas.page(HOME, Sheet("Odd things", atlas.near(f"{origin}/{name}" for name in names)))
    atlas.front(HOME)
    if atlas.has(Feature.FORM):
        atlas.special(f"{origin}/form", _form)
    if atlas.has(Feature.SOFT_404):
        _soft_404(atlas)


def _sheet(atlas: Atlas, name: str) -> Sheet:
    return Sheet(f"Odd: {name}", atlas.near([HOME]))


def _honest(atlas: Atlas, origin: str, name: str) -> Answer:
    """The plain answer that an odd one is made of."""
    page = f"{origin}/{name}"
    return atlas.honest(page, _sheet(atlas, name))(Ask("http", "odd.shop.test", f"/{name}"))


def _page(atlas: Atlas, origin: str, name: str, reply: Reply) -> str:
    atlas.page(f"{origin}/{name}", _sheet(atlas, name), reply)
    return name


def _statuses(atlas: Atlas, origin: str) -> list[str]:
    atlas.dead(f"{origin}/missing", "http_404", always(plain(404, "There is no such page.")))
    atlas.dead(f"{origin}/gone", "http_410", always(plain(410, "It was here once.")))
    atlas.dead(f"{origin}/nowhere", "http_302", always(plain(302, "A redirect without a target.")))
    return ["missing", "gone", "nowhere"]


def _throttles(atlas: Atlas, origin: str) -> list[str]:
    def busy(_ask: Ask) -> Answer:
        return _asking_to_wait(429, str(RETRY_AFTER_MS // 1000), RETRY_AFTER_MS)

    def closed(ask: Ask) -> Answer:
        due = ask.now // 1000 + 2
        return _asking_to_wait(503, formatdate(due, usegmt=True), due * 1000 - ask.now)

    return [
        _page(atlas, origin, name, _first(1, refuse, _honest(atlas, origin, name)))
        for name, refuse in (("busy", busy), ("closed-for-lunch", closed))
    ]


def _asking_to_wait(status: int, value: str, wait_ms: int) -> Answer:
    return replace(with_fields(plain(status, "Later, please."), ("Retry-After", value)), wait_ms=wait_ms)


def _first(times: int, refuse: Reply, answer: Answer) -> Reply:
    """Refuse so many times, then answer."""
    return lambda ask: refuse(ask) if ask.before < times else answer


def _flaky(atlas: Atlas, origin: str) -> list[str]:
    failure = always(plain(500, "Something went wrong here."))
    atlas.dead(f"{origin}/broken", "http_500", failure)
    return ["broken", _page(atlas, origin, "flaky", _first(2, failure, _honest(atlas, origin, "flaky")))]


def _codings(atlas: Atlas, origin: str) -> list[str]:
    return [
        _page(atlas, origin, name, always(disguise(_honest(atlas, origin, name)))) for name, disguise in _DISGUISES
    ]


def _gzipped(answer: Answer) -> Answer:
    packed = replace(answer, body=gzip.compress(answer.body, mtime=0))
    return with_fields(packed, ("Content-Encoding", "gzip"))


def _deflated(answer: Answer) -> Answer:
    return with_fields(replace(answer, body=zlib.compress(answer.body)), ("Content-Encoding", "deflate"))


def _chunked(answer: Answer) -> Answer:
    return replace(answer, framing=Framing.CHUNKED, drops=5)


_DISGUISES: tuple[tuple[str, Callable[[Answer], Answer]], ...] = (
    ("gzip", _gzipped),
    ("deflate", _deflated),
    ("chunked", _chunked),
    ("chunked-gzip", lambda answer: _chunked(_gzipped(answer))),
    ("until-close", lambda answer: replace(answer, framing=Framing.TO_CLOSE)),
    ("not-gzip", lambda answer: with_fields(answer, ("Content-Encoding", "gzip"))),
    ("not-pdf", lambda answer: replace(answer, fields=(("Content-Type", "application/pdf"),))),
    ("untyped", lambda answer: replace(answer, fields=())),
)


def _slow(atlas: Atlas, origin: str) -> list[str]:
    late = replace(_honest(atlas, origin, "late"), pause=0.5)
    drops = replace(_honest(atlas, origin, "drops"), drops=8, drop_pause=0.05)
    return [_page(atlas, origin, "late", always(late)), _page(atlas, origin, "drops", always(drops))]


def _cut(atlas: Atlas, origin: str) -> list[str]:
    cut = replace(_honest(atlas, origin, "cut"), framing=Framing.CUT)
    atlas.broken(f"{origin}/cut", always(cut))
    return ["cut"]


def _oversized(atlas: Atlas, origin: str) -> list[str]:
    block = (b"more and more of the same, " * OVERSIZED_BLOCK)[:OVERSIZED_BLOCK]
    huge = Answer(body=block, repeat=OVERSIZED_BLOCKS)
    atlas.add(Node(f"{origin}/oversized", always(huge)))
    return ["oversized"]


def _form(ask: Ask) -> Answer:
    """The answer names what was sent; only POST is answered."""
    if ask.method != "POST":
        return with_fields(plain(405, "Send a form, please."), ("Allow", "POST"))
    return plain(200, f"You sent {len(ask.body)} bytes: {ask.body[:1000].decode('utf-8', 'replace')}")


def _soft_404(atlas: Atlas) -> None:
    origin = atlas.host("soft.shop.test")
    sheet = Sheet(
        "Not found", atlas.near([f"{origin}/"]), voice="soft", lead="Sorry, we have no such page.", paragraphs=4
    )
    reply = atlas.honest(f"{origin}/?not-found", sheet)
    atlas.wild(origin, lambda ask: plain(404, "No rules.") if ask.target == "/robots.txt" else reply(ask))
    missing = [f"{origin}/offer/{number}" for number in range(1, 6)]
    for page in missing:
        atlas.add(Node(page, reply, links=sheet.links))
    atlas.soft_404.update(missing)
    real = [f"{origin}/real/{number}" for number in (1, 2)]
    for page in real:
        atlas.page(page, Sheet("A real page", atlas.near([f"{origin}/"])))
    atlas.page(f"{origin}/", Sheet("Soft errors", atlas.near([*real, *missing])))
    atlas.front(f"{origin}/")


_PLACES = {
    Feature.STATUSES: _statuses,
    Feature.THROTTLES: _throttles,
    Feature.FLAKY: _flaky,
    Feature.CODINGS: _codings,
    Feature.SLOW: _slow,
    Feature.CUT: _cut,
    Feature.OVERSIZED: _oversized,
}
