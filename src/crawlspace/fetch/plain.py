"""Heads as nearly all servers send them, read by one search instead of llhttp's callbacks.

What is read here, llhttp reads the same: the expression holds a part of its strict grammar, and whatever does not
fit, odd or wrong, is given to it (see `grammar`). So nothing is decided here but that a head is plain.
"""

from __future__ import annotations

import re
from functools import lru_cache

from crawlspace.exchange import HeadText
from crawlspace.fetch.grammar import Framed, words

_HEAD = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9][0-9]) [\t -~\x80-\xff]*+\r\n"
    rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]++:[\t -~\x80-\xff]*+\r\n)*+\r\n"
)
_FRAMING = re.compile(rb"\n(con(?:tent-(?:length|encoding)|nection)|transfer-encoding):([^\r]*+)")
"""Fields of a head in lower case that say how its body ends and what is to be undone."""
_LENGTH = re.compile(rb"[\t ]*+[0-9]{1,15}[\t ]*+")


def plain_head(data: bytes) -> Framed | None:
    """The head that `data` begins with; None when there is no whole one, or it is not plain."""
    found = _HEAD.match(data)
    if found is None:
        return None
    text = found[0]
    folded = text.lower()
    fields = _FRAMING.findall(folded)
    said: dict[bytes, bytes] = dict(fields)
    if len(said) < len(fields):  # one comes twice: seldom, and never simple
        return None
    length = said.get(b"content-length")
    if b"transfer-encoding" in said:
        if length is not None or said[b"transfer-encoding"].strip() != b"chunked":
            return None
    elif length is not None and not _LENGTH.fullmatch(length):
        return None
    coding = said.get(b"content-encoding")
    wish = said.get(b"connection", b"")
    return Framed(
        text,
        int(found[1]),
        HeadText(text),
        True,
        b"close" not in wish or "close" not in _words(wish),
        None if length is None else int(length),
        b"transfer-encoding" in said,
        () if coding is None else _words(coding),
    )


@lru_cache(maxsize=256)
def _words(value: bytes) -> tuple[str, ...]:
    return words(value.decode("latin-1"))
