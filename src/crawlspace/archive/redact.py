"""Secrets are taken out of heads before they are written anywhere. Pure.

Only values go; names and all other bytes stay as they were on the wire. A value that continues on a folded line
(RFC 9112, section 5.2) goes with its continuation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_REDACTED = rb"\1: [redacted]"
_ALWAYS = ("authorization", "cookie", "cookie2", "proxy-[^:\r\n]*")
_SET_COOKIE = ("set-cookie", "set-cookie2")


class Redaction:
    """Which header values never reach the disk."""

    __slots__ = ("_request", "_response")

    def __init__(self, names: Iterable[str] = (), *, set_cookie: bool = False) -> None:
        """`names` are further request headers; with `set_cookie`, response heads lose theirs too."""
        self._request = _values_of((*_ALWAYS, *(re.escape(name) for name in names)))
        self._response = _values_of(_SET_COOKIE) if set_cookie else None

    def request(self, head: bytes) -> bytes:
        return self._request.sub(_REDACTED, head)

    def response(self, head: bytes) -> bytes:
        return self._response.sub(_REDACTED, head) if self._response else head


def _values_of(names: Iterable[str]) -> re.Pattern[bytes]:
    alternatives = "|".join(names)
    return re.compile(rf"(?im)^({alternatives})[ \t]*:[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*".encode("latin-1"))
