"""Query parameters as raw pairs: taken apart, filtered and sorted without ever being decoded or written anew.

A piece keeps its bytes, so `a` and `a=`, `+` and `%20`, blank values and repeated names stay what they are. Sorting
is by name alone and stable: the values of one name keep their order, which may carry meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from crawlspace.urls.sessions import cold_fusion, is_session

_BOTH: Final = re.compile("[&;]")

Judge = Callable[[str, str], bool]
"""Says of a name and a value whether the parameter goes."""


def name_of(piece: str) -> str:
    return piece.partition("=")[0]


def only_ampersands(query: str) -> str:
    """A query whose parameters were also divided by semicolons, divided by `&` alone (HTML 4.01, B.2.2)."""
    return query.replace(";", "&")


def without_blanks(query: str) -> str | None:
    """Without empty pieces (`?&a=1&&b=2`); None when nothing is left. URL Standard, urlencoded parsing, step 3.1."""
    return _joined([piece for piece in query.split("&") if piece])


def without(query: str, goes: Judge) -> str | None:
    """Without the parameters of which `goes` is true; None when it took the last one."""
    pieces = query.split("&")
    kept = [piece for piece in pieces if not goes(*_pair(piece))]
    return query if len(kept) == len(pieces) else _joined(kept)


def without_sessions(query: str, kept: Judge) -> str | None:
    """Without session ids whose values look like ids; those of which `kept` is true stay."""
    both = cold_fusion([_pair(piece) for piece in query.split("&")]) if "cf" in query.lower() else False

    def goes(name: str, value: str) -> bool:
        if kept(name, value):
            return False
        return (both and name.lower() in ("cfid", "cftoken")) or is_session(name, value)

    return without(query, goes)


def in_order(pieces: list[str]) -> list[str]:
    """Sorted by name, repeated names in their own order.

    Not where a piece without `=` holds a slash: such a query is a route (`?/topic/57-abc/&do=last`), and its parts
    are read by position.
    """
    if any("/" in piece and "=" not in piece for piece in pieces):
        return pieces
    return sorted(pieces, key=name_of)


def _pair(piece: str) -> tuple[str, str]:
    name, _, value = piece.partition("=")
    return name, value


def _joined(pieces: Sequence[str]) -> str | None:
    return "&".join(pieces) if pieces else None
