"""Session ids in URLs: named parameters that tell visitors apart, not pages.

A name alone proves nothing (`sid` is a story's number on some sites, `CFID` could be anything), so each is taken for
a session id only with a value that looks like one. Names compare without case, since servers write them in both.

Evidence: the Servlet specification (`;jsessionid=`), PHP's `session.name` and `session.sid_length`, ASP's cookie
names, ColdFusion's `CFID` and `CFTOKEN`, ASP.NET's cookieless sessions; and the rules with which Heritrix, Nutch,
crawler-commons and urlcanon have removed them from archives for twenty years.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_TOKEN: Final = re.compile(r"(?=[^0-9]*[0-9])[0-9A-Za-z$!*~.,\-]{12,256}")
"""What PHP and servlet engines hand out: long, with at least one digit."""
_LETTERS: Final = re.compile(r"[A-Za-z]{20,32}")
_HEX: Final = re.compile(r"(?=[0-9]*[A-Fa-f])(?=[A-Fa-f]*[0-9])[0-9A-Fa-f]{16,128}")
_MIXED: Final = re.compile(r"[0-9A-Za-z]{20,128}")
_TURNS: Final = re.compile(r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])")
_MANY_TURNS: Final = 5
"""Changes between letters and digits in a random id of 20: 5 to 11; in words with a date at their end: 1 or 2."""
_CFTOKEN: Final = re.compile(r"[0-9]{7,10}|[0-9A-Fa-f]{16,20}-?[0-9A-Fa-f\-]{16,60}")
_CFID: Final = re.compile(r"[0-9]{1,12}|[0-9A-Fa-f]{8}-[0-9A-Fa-f\-]{16,40}")

_IN_TEXT: Final = re.compile(r";jsessionid=([^;/?&=]*)(?=[;/&]|\Z)", re.IGNORECASE)
_SEGMENT: Final = re.compile(r"\((?:[0-9a-z]{24}|(?:[A-Za-z]\([0-9A-Za-z]{24}\))+)\)")
_DOT_SEGMENT: Final = re.compile(r"/(?:\.|%2e){1,2}(?:/|\Z)", re.IGNORECASE)


def is_strict_id(value: str) -> bool:
    """Whether a value can hardly be anything but a random id: long hexadecimal, or letters and digits in turns."""
    if _HEX.fullmatch(value):
        return True
    return _MIXED.fullmatch(value) is not None and len(_TURNS.findall(value)) >= _MANY_TURNS


def is_session(name: str, value: str) -> bool:
    """Whether this query parameter is a session id by itself (ColdFusion's pair is judged by `cold_fusion`)."""
    lowered = name.lower()
    if lowered in ("phpsessid", "jsessionid"):
        return _TOKEN.fullmatch(value) is not None
    if lowered == "sid":
        return is_strict_id(value)
    return lowered.startswith("aspsessionid") and _LETTERS.fullmatch(value) is not None


def cold_fusion(pairs: Sequence[tuple[str, str]]) -> bool:
    """Whether these name and value pairs hold ColdFusion's two session parameters, both with id-like values."""
    found = {name.lower(): value for name, value in pairs if name.lower() in ("cfid", "cftoken")}
    return bool(
        len(found) == 2 and _CFID.fullmatch(found["cfid"]) is not None and _CFTOKEN.fullmatch(found["cftoken"])
    )


def without_path_session(text: str) -> str:
    """A path or query without `;jsessionid=...` where its value looks like an id."""
    if ";" not in text:
        return text
    shorter = _IN_TEXT.sub(lambda found: "" if _TOKEN.fullmatch(found[1]) else found[0], text)
    # What is left may be a dot segment that the parser has never seen as one: such a path stays as it was.
    return text if shorter != text and _DOT_SEGMENT.search(shorter) else shorter


def without_session_segments(path: str) -> str:
    """A path without the segments in which ASP.NET writes its cookieless session ids."""
    if "/(" not in path:
        return path
    first, *rest = path.split("/")
    kept = [segment for segment in rest if not _SEGMENT.fullmatch(segment)]
    return "/".join([first, *kept]) if kept else "/"


def without_path_params(path: str, names: frozenset[str]) -> str:
    """A path without the parameters of its segments (`/a;v=1/b`) that have one of these names."""
    first, *rest = path.split("/")
    segments = [_without_params(segment, names) for segment in rest]
    # A segment that held nothing else goes whole, so that no slash more stands where it was.
    kept = [each for each, found in zip(segments[:-1], rest, strict=False) if each or not found]
    shorter = "/".join([first, *kept, segments[-1]])
    return path if shorter != path and _DOT_SEGMENT.search(shorter) else shorter


def _without_params(segment: str, names: frozenset[str]) -> str:
    own, *params = segment.split(";")
    return ";".join([own, *(each for each in params if each.partition("=")[0] not in names)])


def without_id_segments(path: str, prefixes: Sequence[str]) -> str:
    """A path without the segments that are one of these prefixes and then what looks like a random id."""
    first, *rest = path.split("/")
    kept = [segment for segment in rest if not any(is_id_segment(segment, prefix) for prefix in prefixes)]
    return "/".join([first, *kept]) if kept else "/"


def is_id_segment(segment: str, prefix: str) -> bool:
    """Whether a path segment is this prefix and then what looks like a random id."""
    return segment.startswith(prefix) and is_strict_id(segment[len(prefix) :])
