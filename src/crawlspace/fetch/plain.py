"""Heads as nearly all servers send them, read by one search instead of llhttp's callbacks.

What is read here, llhttp reads the same: the expression holds a part of its strict grammar, and whatever does not
fit, odd or wrong, is given to it (see `grammar`). So nothing is decided here but that a head is plain.
"""

from __future__ import annotations

import re

from crawlspace.exchange import HeadText
from crawlspace.fetch.grammar import Framed, words

_HEAD = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9][0-9]) [\t -~\x80-\xff]*+\r\n"
    rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]++:[\t -~\x80-\xff]*+\r\n)*+\r\n"
)
_FRAMING = re.compile(rb"\n(content-length|transfer-encoding|content-encoding|connection):([^\r]*+)")
"""Fields of a head in lower case that say how its body ends and what is to be undone."""
_LENGTH = re.compile(rb"[0-9]{1,15}")


def plain_head(data: bytes) -> Framed | None:
    """The head that `data` begins with; None when there is no whole one, or it is not plain."""
    found = _HEAD.match(data)
    if found is None:
        return None
    text = found[0]
    folded = text.lower()
    said: dict[bytes, bytes] = {}
    for name, value in _FRAMING.findall(folded):
        if name in said:  # seldom, and never simple
            return None
        said[name] = value.strip()
    chunked = said.get(b"transfer-encoding")
    length = said.get(b"content-length")
    if chunked is not None and chunked != b"chunked":
        return None
    if length is not None and (chunked is not None or not _LENGTH.fullmatch(length)):
        return None
    return Framed(
        text,
        int(found[1]),
        HeadText(text, folded),
        True,
        b"close" not in said.get(b"connection", b"") or "close" not in _words(said[b"connection"]),
        None if length is None else int(length),
        chunked is not None,
        _words(said[b"content-encoding"]) if b"content-encoding" in said else (),
    )


def _words(value: bytes) -> tuple[str, ...]:
    return words(value.decode("latin-1"))
