"""The many ways to write the address of one page.

Each fold is a difference that the safe URL rules take away. `spell` gives the link's text and the fetch URL that a
browser makes of it; where a browser folds by itself (case of the host, dots, fragment) the two differ more.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from enum import StrEnum, unique
from urllib.parse import urlsplit

from crawlspace.testing.toyweb.prose import Href

_PORTS = {"http": 80, "https": 443}


@unique
class Fold(StrEnum):
    """One kind of difference between spellings."""

    NONE = "none"
    NEAR = "near"
    """Written from the root of the host; works on pages of the same origin only."""
    FRAGMENT = "fragment"
    HOST_CASE = "host_case"
    PORT = "port"
    DOTS = "dots"
    TRACKING = "tracking"
    CLICK_ID = "click_id"
    ORDER = "order"
    """Parameters in another order."""
    PERCENT = "percent"
    """An unreserved character written as a percent code."""
    PATH_SESSION = "path_session"
    QUERY_SESSION = "query_session"


def folds_of(page: str) -> list[Fold]:
    """The folds that give a page another spelling."""
    parts = urlsplit(page)
    idle = set() if "&" in parts.query else {Fold.ORDER}
    if parts.path == "/":
        idle |= {Fold.PERCENT, Fold.PATH_SESSION}
    return [fold for fold in Fold if fold not in idle]


def spell(page: str, fold: Fold, chance: random.Random) -> Href:
    """A link to `page` in the spelling that `fold` names; session and campaign values come from `chance`."""
    text, url = _SPELLERS[fold](page, chance)
    return Href(text, url, page)


def _alike(write: Callable[[str], str]) -> Callable[[str, random.Random], tuple[str, str]]:
    """A speller whose difference a browser takes away."""
    return lambda page, _chance: (write(page), page)


def _kept(write: Callable[[str, random.Random], str]) -> Callable[[str, random.Random], tuple[str, str]]:
    """A speller whose difference a browser keeps."""

    def both(page: str, chance: random.Random) -> tuple[str, str]:
        text = write(page, chance)
        return text, text

    return both


def _near(page: str) -> str:
    parts = urlsplit(page)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _host_case(page: str) -> str:
    parts = urlsplit(page)
    return f"{parts.scheme.upper()}://{parts.netloc.upper()}{_near(page)}"


def _port(page: str) -> str:
    parts = urlsplit(page)
    return f"{parts.scheme}://{parts.netloc}:{_PORTS[parts.scheme]}{_near(page)}"


def _dots(page: str) -> str:
    parts = urlsplit(page)
    return f"{parts.scheme}://{parts.netloc}/attic/./..{_near(page)}"


def _add(page: str, *pairs: str) -> str:
    return page + ("&" if "?" in page else "?") + "&".join(pairs)


def _tracking(page: str, chance: random.Random) -> str:
    source = chance.choice(("newsletter", "partner", "poster"))
    return _add(page, f"utm_source={source}", "utm_medium=link", f"utm_campaign=c{chance.randint(1, 9)}")


def _click_id(page: str, chance: random.Random) -> str:
    name = chance.choice(("gclid", "fbclid"))
    return _add(page, f"{name}={chance.randbytes(18).hex()}")


def _order(page: str, _chance: random.Random) -> str:
    front, _, query = page.partition("?")
    return front + "?" + "&".join(reversed(query.split("&")))


def _percent(page: str, _chance: random.Random) -> str:
    parts = urlsplit(page)
    if "~" in parts.path:
        return page.replace("~", "%7E", 1)
    at = len(f"{parts.scheme}://{parts.netloc}/")
    return f"{page[:at]}%{ord(page[at]):02X}{page[at + 1 :]}"


def _path_session(page: str, chance: random.Random) -> str:
    front, mark, query = page.partition("?")
    return f"{front};jsessionid={chance.randbytes(16).hex().upper()}{mark}{query}"


def _query_session(page: str, chance: random.Random) -> str:
    return _add(page, f"PHPSESSID={chance.randbytes(16).hex()}")


_SPELLERS: dict[Fold, Callable[[str, random.Random], tuple[str, str]]] = {
    Fold.NONE: _alike(lambda page: page),
    Fold.NEAR: _alike(_near),
    Fold.FRAGMENT: _alike(lambda page: f"{page}#reviews"),
    Fold.HOST_CASE: _alike(_host_case),
    Fold.PORT: _alike(_port),
    Fold.DOTS: _alike(_dots),
    Fold.TRACKING: _kept(_tracking),
    Fold.CLICK_ID: _kept(_click_id),
    Fold.ORDER: _kept(_order),
    Fold.PERCENT: _kept(_percent),
    Fold.PATH_SESSION: _kept(_path_session),
    Fold.QUERY_SESSION: _kept(_query_session),
}
