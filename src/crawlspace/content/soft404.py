"""Pages that are not there although the server says so, known by the host's own answer to an invented path.

A page is missing if it looks like what the host gives for a path that nobody has ever linked to. A site that answers
every address with one page, as scripts that draw their pages in the browser do, would lose all its pages by that: so
nothing is said where that answer looks like a page that is known to be real.

A verdict is a mark on a page that was stored; it drops nothing. What pages say of themselves is `templates`' matter.
"""

from __future__ import annotations

import re
from enum import StrEnum, unique
from typing import Annotated, Final, NamedTuple
from urllib.parse import unquote

from msgspec import Meta, Struct

from crawlspace.content.shingles import shingles
from crawlspace.content.simhash import simhash
from crawlspace.content.text import text_digest

ECHO_LEAST: Final = 4
"""Characters of a piece of an address below which it is not looked for in the text."""
_ECHO: Final = "{address}"


class Soft404Settings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When a page counts as the host's answer to a path that does not exist."""

    distance: Annotated[
        int,
        Meta(description="Bits in which its SimHash may differ from the answer to an invented path.", ge=0, le=16),
    ] = 3
    length: Annotated[
        float, Meta(description="Part by which its number of words may differ from that answer's.", ge=0.0, le=0.5)
    ] = 0.05


class Likeness(NamedTuple):
    """What is kept of a page to compare it with another: 50 bytes."""

    digest: bytes
    """SHA-256 of its text, its own address left out."""
    simhash: int
    length: int
    """Shingles in its text: words, save two."""


@unique
class Presence(StrEnum):
    """What the comparison says of a page."""

    PRESENT = "present"
    MISSING = "missing"
    """It is the host's answer to any path: a soft 404."""
    UNKNOWN = "unknown"
    """The host's answers look all the same."""


def likeness(text: str, url: str) -> Likeness:
    """What a page is compared by. `text` has its volatile parts masked, `url` is what was requested.

    Pieces of the address that the text repeats are left out: error pages like to name what they did not find.
    """
    plain = without_echo(text, url)
    found = shingles(plain)
    return Likeness(text_digest(plain), simhash(found), len(found))


def without_echo(text: str, url: str) -> str:
    """A text with pieces of the page's own address masked: all of it, path with query, path, last segment."""
    pieces = _pieces(url)
    spelled = {spelling for piece in pieces for spelling in (piece, unquote(piece)) if len(spelling) >= ECHO_LEAST}
    if not spelled:
        return text
    longest_first = sorted(spelled, key=lambda piece: (-len(piece), piece))
    return re.sub("|".join(map(re.escape, longest_first)), _ECHO, text, flags=re.IGNORECASE)


def _pieces(url: str) -> list[str]:
    after_scheme = url.partition("://")[2]
    place = after_scheme.partition("/")[2]
    path = place.partition("?")[0]
    return [url, after_scheme, place, path, path.rstrip("/").rpartition("/")[2]]


def alike(one: Likeness, other: Likeness, settings: Soft404Settings) -> bool:
    """Whether two pages say the same but for a few words."""
    if one.digest == other.digest:
        return True
    near = (one.simhash ^ other.simhash).bit_count() <= settings.distance
    return near and abs(one.length - other.length) <= settings.length * max(one.length, other.length)


def presence(page: Likeness, invented: Likeness, real: Likeness, settings: Soft404Settings) -> Presence:
    """What the answer to an invented path, and a page that is real beyond doubt, say of another page of the host."""
    if alike(invented, real, settings):
        return Presence.UNKNOWN
    return Presence.MISSING if alike(page, invented, settings) else Presence.PRESENT
