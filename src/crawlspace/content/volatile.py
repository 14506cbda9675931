"""What changes in a page whenever it is asked for, and says nothing: masked by rules that have names.

A rule takes a form that machines write, not every number that might change: a mask too many makes two pages one, a
mask too few only misses a copy. So an appointment (`12 March 2024, 20:00`) stays, and a time to the second or with a
zone goes; `3 comments` stays, and `1,234 page views` goes; a digest that a page shows is what it is about, and an id
behind the words `Request ID` is not. The words are English.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import re2

from crawlspace.content.patterns import any_of, compiled

_MONTHS: Final = (
    *("jan(?:uary)?", "feb(?:ruary)?", "mar(?:ch)?", "apr(?:il)?", "may", "june?", "july?", "aug(?:ust)?"),
    *("sept?(?:ember)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?"),
)
MONTH: Final = rf"{any_of(*_MONTHS)}\b\.?"
_DAY: Final = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? )?"
NTH: Final = r"[0-3]?[0-9](?:st|nd|rd|th)?"
_YEAR: Final = r"[12][0-9]{3}"
DATE: Final = any_of(
    rf"{_YEAR}[-/.][01]?[0-9][-/.][0-3]?[0-9]",
    r"[0-3]?[0-9][-/.][0-3]?[0-9][-/.](?:[12][0-9])?[0-9]{2}",
    rf"{NTH}[ -](?:of )?{MONTH},?[ -]{_YEAR}",
    rf"{MONTH} {NTH},? {_YEAR}",
)
"""A day with its year, in the spellings that are common in English pages."""
_TIME: Final = r"[0-2]?[0-9]:[0-5][0-9]"
_SECONDS: Final = r":[0-6][0-9](?:[.,][0-9]{1,9})?"
_HALF: Final = r"(?: ?[ap]\.?m\b\.?)?"
_ZONE: Final = r"(?: ?(?:z|utc|gmt|[a-z]{1,3}[sd]t|cet)\b| ?(?:utc|gmt)?[+-][0-9]{2}:?[0-9]{2}\b)"
_THEN: Final = r"(?:,? (?:at |- )?|t)"
_STAMPED: Final = any_of(
    *("updated", "modified", "generated", "rendered", "printed", "retrieved", "accessed", "refreshed", "cached"),
    r"(?:server|local|current) time",
)
_MADE: Final = any_of(
    r"(?:generated|rendered|loaded|served|executed|processed) in",
    r"(?:page|request|query|search) took",
    r"(?:load|query|response|execution|generation) time:?",
)
_DURATION: Final = r"[0-9]+(?:[.,][0-9]+)? ?(?:ms|msecs?|milliseconds?|s|secs?|seconds?)\b"
_COUNT: Final = r"(?:[0-9]{1,3}(?:[,.][0-9]{3})+|[0-9]+(?:\.[0-9])?[km]|[0-9]+)"
_COUNTED: Final = any_of(
    *("page ?views?", "views?", "visitors?", "downloads?", "likes", "followers"),
    r"(?:users?|guests?|people|members?) online",
)
_COUNTER: Final = any_of(
    *("(?:page ?)?views", "hits", "visits", r"visitors?(?: number)?", "downloads", "likes", "followers"),
    r"(?:users |guests )?online(?: now)?",
)
_ID_LABEL: Final = any_of(
    r"(?:csrf|xsrf|session|security|request)[ _-]token",
    r"(?:request|trace|ray|session|correlation|incident)[ _-]?id",
    *("nonce", "reference #"),
)
_HEX: Final = r"[0-9a-f]"
_ID: Final = any_of(
    rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}\b",
    r"[a-z+/_-]{0,12}[0-9][0-9a-z+/._-]{6,}=*",
)


class Rule(NamedTuple):
    """One kind of volatile text. Patterns are for `patterns.compiled` and hold no groups of their own."""

    name: str
    pattern: str
    """What is masked."""
    before: str = ""
    """What must stand before it, and stays."""


TEXT_RULES: Final = (
    Rule("timestamp", rf"\b{_DAY}{DATE}{_THEN}{_TIME}(?:{_SECONDS}{_HALF}{_ZONE}?|{_HALF}{_ZONE})"),
    Rule("timestamp", rf"\b{_DAY}{MONTH} {NTH} {_TIME}{_SECONDS}{_ZONE}? {_YEAR}\b"),
    Rule(
        "timestamp",
        rf"{_DAY}(?:{DATE}{_THEN})?{_TIME}(?:{_SECONDS})?{_HALF}{_ZONE}?",
        before=rf"\b{_STAMPED}(?: (?:on|at|is))?:? ",
    ),
    Rule("elapsed", _DURATION, before=rf"\b{_MADE} (?:about |only )?"),
    Rule("age", r"\b(?:[0-9]+|an?|a few|one|two|several) (?:sec(?:ond)?|min(?:ute)?|hour|day)s? ago\b"),
    Rule("age", r"\b(?:just now|(?:a )?moments? ago)\b"),
    Rule("counter", rf"{_COUNT} ?{_COUNTED}\b", before="(?:^|[^0-9.,])"),
    Rule("counter", _COUNT, before=rf"\b{_COUNTER} ?[:#=] ?"),
    Rule("counter", rf"{_COUNT} times\b", before=r"\b(?:viewed|visited|read|downloaded|accessed) "),
    Rule("token", _ID, before=rf"\b{_ID_LABEL} ?[:=#]? ?"),
)
"""Rules for the text of a page. Where two fit at one place, the earlier one does it."""

_SESSION_NAMES: Final = any_of(
    *("phpsessid", "jsessionid", "aspsessionid[a-z]{8}", "sessionid", "session_id", "sessid", "session", "sid"),
    *("oscsid", "zenid"),
)
_TOKEN_NAMES: Final = any_of(
    *("csrf", "xsrf", "_csrf", "csrf_?token", "csrfmiddlewaretoken", "authenticity_token", "nonce", "_wpnonce")
)

LINK_RULES: Final = (
    Rule("session", r"[0-9a-z!*.,~_-]{12,256}", before=r";(?:jsessionid|phpsessid|sessionid|sid)="),
    Rule("session", r"\((?:[a-z]\([0-9a-z]{24}\))+\)", before="/"),
    Rule("session", rf"(?:{_HEX}{{16,128}}|[0-9a-z]{{20,128}})\b", before=rf"[?&]{_SESSION_NAMES}="),
    Rule("session", rf"(?:{_HEX}|-){{5,80}}\b", before=r"[?&](?:cfid|cftoken)="),
    Rule("token", r"[^&#\n]{6,}", before=rf"[?&]{_TOKEN_NAMES}="),
    Rule("buster", r"[0-9.]{6,}\b", before=r"[?&](?:_|nocache|cache_?buster|rnd|rand|random)="),
)
"""Rules for resolved links. Name and value must both look right, as with the identity of addresses."""
_LINK_MARKS: Final = "?&;("
"""Without one of these no rule for links applies."""


class _Masks:
    """Rules made ready: one pass finds out whether any applies, and on most pages none does."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._whole = compiled(any_of(*(f"({rule.before})({rule.pattern})" for rule in rules)))
        self._masks = [f"{{{rule.name}}}".encode() for rule in rules]

    def apply(self, text: bytes) -> bytes:
        if self._whole.search(text) is None:
            return text
        masked: bytes = self._whole.sub(self._masked, text)
        return masked

    def _masked(self, found: re2._Match) -> bytes:
        groups: tuple[bytes | None, ...] = found.groups()
        number = next(number for number, masked in enumerate(groups[1::2]) if masked is not None)
        return (groups[2 * number] or b"") + self._masks[number]


_TEXT: Final = _Masks(TEXT_RULES)
_LINKS: Final = _Masks(LINK_RULES)


def mask(text: bytes) -> bytes:
    """A text in UTF-8 with its volatile parts replaced by the names of their rules in braces."""
    return _TEXT.apply(text)


def mask_links(links: Iterable[str]) -> list[str]:
    """The distinct links, sorted, with their volatile parts replaced by the names of their rules in braces."""
    distinct = sorted(set(links))
    text = "\n".join(distinct)
    if text.isascii() and not any(mark in text for mark in _LINK_MARKS):
        return distinct
    plain = text.encode("utf-8", "replace")
    masked = _LINKS.apply(plain)
    if masked is plain and text.isascii():
        return distinct
    return sorted(set(masked.decode().split("\n")))
