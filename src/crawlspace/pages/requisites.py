"""What a browser fetches to show a page: images, style sheets, scripts, media. Their addresses, as text.

Sources: HTML Standard, "srcset attributes" and "link types".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

SELECTOR: Final = (
    "img,source,script[src],embed[src],object[data],input[src],video,audio,track[src],body[background],link[href]"
)

_ADDRESSES: Final[Mapping[str, tuple[str, ...]]] = {
    "img": ("src",),
    "source": ("src",),
    "script": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "input": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "body": ("background",),
}
_LINKED: Final = frozenset(
    {"stylesheet", "icon", "apple-touch-icon", "mask-icon", "manifest", "preload", "modulepreload"}
)
_CANDIDATE: Final = re.compile(r"[\t\n\f\r ,]*([^\t\n\f\r ]+)")
_DESCRIPTORS: Final = re.compile(r"((?:[^(),]|\([^)]*(?:\)|\Z)|\))*)(?:,|\Z)")


def requisites(tag: str, attributes: Mapping[str, str | None], relations: frozenset[str] = frozenset()) -> list[str]:
    """Addresses that an element makes a browser fetch; `relations` are those of a link element."""
    if tag == "link":
        return [attributes.get("href") or ""] if relations & _LINKED else []
    found = [value for name in _ADDRESSES.get(tag, ()) if (value := attributes.get(name))]
    return found + candidates(attributes.get("srcset") or "") if tag in ("img", "source") else found


def candidates(srcset: str) -> list[str]:
    """The addresses of a srcset attribute; those whose descriptors cannot be read are left out."""
    found: list[str] = []
    position = 0
    while candidate := _CANDIDATE.match(srcset, position):
        position = candidate.end()
        address = candidate[1].rstrip(",")
        descriptors = ""
        if address == candidate[1] and (rest := _DESCRIPTORS.match(srcset, position)):
            descriptors = rest[1]
            position = rest.end()
        if address and _readable(descriptors.split()):
            found.append(address)
    return found


_WIDTH: Final = re.compile(r"[0-9]+\Z")
_DENSITY: Final = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")


def _readable(descriptors: list[str]) -> bool:
    kinds = [word[-1] for word in descriptors]
    if len(set(kinds)) != len(kinds) or set(kinds) - {"w", "h", "x"} or ("x" in kinds and len(kinds) > 1):
        return False
    return kinds != ["h"] and all(_valid(word[:-1], word[-1]) for word in descriptors)


def _valid(number: str, kind: str) -> bool:
    if kind == "x":
        return _DENSITY.match(number) is not None and not (number.startswith("-") and float(number) < 0)
    return _WIDTH.match(number) is not None and int(number[:9]) > 0
