"""Times as pages, sitemaps and feeds write them, to milliseconds since 1970 UTC.

Sources: the W3C's note on date and time formats, a profile of ISO 8601; RFC 5322, section 3.3, with the two-digit
years of RFC 822.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Final

_LONGEST: Final = 64
_W3C: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d{1,12})?)?\s*(Z|[+-]\d\d:?\d\d)?)?)?)?\Z",
    re.I,
)


def read_time(text: str) -> int | None:
    """The time, or None for a text that is none. A date is its first moment; without a zone it is UTC."""
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    found = _W3C.match(text)
    try:
        moment = _w3c(found) if found else parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return round(moment.timestamp()) * 1000
    except (ValueError, OverflowError):
        return None


def _w3c(found: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second = (int(part) if part else None for part in found.groups()[:6])
    assert year is not None
    return datetime(year, month or 1, day or 1, hour or 0, minute or 0, second or 0, tzinfo=_zone(found[7]))


def _zone(text: str | None) -> timezone:
    if text is None or text in "Zz":
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
