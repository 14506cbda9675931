"""Secrets are taken out of heads before they are written anywhere. Pure.

Only values go; names and all other bytes stay as they were on the wire. A value that continues on a folded line
(RFC 9112, section 5.2) goes with its continuation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_REDACTED = rb"\1: [redacted]"
_FAMILY = "proxy-"
"""How the names of a proxy's headers begin: all of them are meant."""
_ALWAYS = ("authorization", "cookie", "cookie2", _FAMILY)
_SET_COOKIE = ("set-cookie", "set-cookie2")


class Redaction:
    """Which header values never reach the disk."""

    __slots__ = ("_request", "_response")

    def __init__(self, names: Iterable[str] = (), *, set_cookie: bool = False) -> None:
        """`names` are further request headers; with `set_cookie`, response heads lose theirs too."""
        self._request = _Values((*_ALWAYS, *names))
        self._response = _Values(_SET_COOKIE) if set_cookie else None

    def request(self, head: bytes) -> bytes:
        return self._request.without(head)

    def response(self, head: bytes) -> bytes:
        return self._response.without(head) if self._response else head


class _Values:
    """The values of headers by their names."""

    __slots__ = ("_pattern", "_words")

    def __init__(self, names: Iterable[str]) -> None:
        words = [name.lower() for name in names]
        self._words = [word.encode() for word in words]
        alternatives = "|".join(re.escape(word) + (r"[^:\r\n]*" if word == _FAMILY else "") for word in words)
        self._pattern = re.compile(rf"(?im)^({alternatives})[ \t]*:[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*".encode())

    def without(self, head: bytes) -> bytes:
        """The head with the values taken out."""
        # Most heads have none of the words anywhere, which is told in a tenth of the time.
        folded = head.lower()
        for word in self._words:
            if word in folded:
                return self._pattern.sub(_REDACTED, head)
        return head
