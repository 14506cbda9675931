"""Text from the web, made safe to show on a terminal and in logs.

A URL, a header or an error message may hold control characters that move the cursor, change the window's title or
turn the reading direction around (CWE-150). They are escaped here, at the sink, and nowhere else, so that what is
stored stays as it came.
"""

from __future__ import annotations

import re

# C0 and DEL, C1, zero-width and joining marks, line and paragraph separators, directional marks, byte order mark, and
# surrogates, which no terminal can be sent.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def printable(text: str, limit: int = 2000) -> str:
    """`text` on one line with unsafe characters as `\\\\xNN` or `\\\\uNNNN`, cut at `limit` characters."""
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return _UNSAFE.sub(_escaped, text)


def printable_json(encoded: bytes) -> str:
    """JSON as a terminal may see it: unsafe characters, which only strings hold, in JSON's own escapes.

    Whoever reads it as JSON finds what was encoded.
    """
    return _UNSAFE.sub(_json_escaped, encoded.decode("utf-8", "replace"))


def _json_escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


def _escaped(match: re.Match[str]) -> str:
    number = ord(match.group())
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
