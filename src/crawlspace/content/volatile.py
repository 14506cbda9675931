"""What changes in a page whenever it is asked for, and says nothing: masked by rules that have names.

A rule takes a form that machines write, not every number that might change: a mask too many makes two pages one, a
mask too few only misses a copy. So an appointment (`12 March 2024, 20:00`) stays, and a time to the second or with a
zone goes; `3 comments` stays, and `1,234 page views` goes; a digest that a page shows is what it is about, and an id
behind the word `Request ID` is not. The words are English.

The rules run on RE2, whose time grows with the text alone: pages are written by strangers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import re2

_MONTH: Final = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
_DAY: Final = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? )?"
_NTH: Final = r"[0-3]?[0-9](?:st|nd|rd|th)?"
DATE: Final = (
    rf"(?:[12][0-9]{{3}}[-/.][01]?[0-9][-/.][0-3]?[0-9]|[0-3]?[0-9][-/.][0-3]?[0-9][-/.](?:[12][0-9])?[0-9]{{2}}"
    rf"|{_NTH}[ -](?:of )?{_MONTH},?[ -][12][0-9]{{3}}|{_MONTH} {_NTH},? [12][0-9]{{3}})"
)
"""A day with its year, in the spellings that are common in English pages; without regard to case."""
_TIME: Final = r"[0-2]?[0-9]:[0-5][0-9]"
_SECONDS: Final = r":[0-6][0-9](?:[.,][0-9]{1,9})?"
_HALF: Final = r"(?: ?[ap]\.?m\b\.?)?"
_ZONE: Final = r"(?: ?(?:z|utc|gmt|[a-z]{1,3}[sd]t|cet)\b| ?(?:utc|gmt)?[+-][0-9]{2}:?[0-9]{2}\b)"
_THEN: Final = r"(?:,? (?:at |- )?|t)"
_COUNT: Final = r"[0-9][0-9.,]*[km]?"
_ID: Final = r"(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-z+/._-]{8,}=*)"


class Rule(NamedTuple):
    """One kind of volatile text. `pattern` is RE2's, over UTF-8, without regard to case."""

    name: str
    pattern: str
    kept: str = ""
    """What stays before the mask, in the words of RE2's replacements."""


TEXT_RULES: Final = (
    Rule(
        "timestamp",
        rf"\b{_DAY}{DATE}{_THEN}{_TIME}(?:{_SECONDS}{_HALF}{_ZONE}?|{_HALF}{_ZONE})"
        rf"|\b{_DAY}{_MONTH} {_NTH} {_TIME}{_SECONDS}{_ZONE}? [12][0-9]{{3}}\b"
        rf"|\b(?:updated|modified|generated|rendered|printed|retrieved|accessed|refreshed|cached|loaded|(?:server|local|current) time)"
        rf"(?: (?:on|at|is))?:? {_DAY}(?:{DATE}{_THEN})?{_TIME}(?:{_SECONDS})?{_HALF}{_ZONE}?",
    ),
    Rule(
        "elapsed",
        r"\b(?:(?:generated|rendered|loaded|served|executed|processed) in|(?:page|request|query|search) took|(?:load|query|response|execution|generation) time:?)"
        r" (?:about |only )?[0-9]+(?:[.,][0-9]+)? ?(?:ms|msecs?|milliseconds?|s|secs?|seconds?)\b",
    ),
    Rule("age", r"\b(?:(?:[0-9]+|an?|a few|one|two|several) (?:sec(?:ond)?|min(?:ute)?|hour|day)s? ago|just now|(?:a )?moments? ago)\b"),
    Rule(
        "counter",
        rf"\b{_COUNT} ?(?:page ?views?|views?|visitors?|downloads?|likes|followers|(?:users?|guests?|people|members?) online)\b"
        rf"|\b(?:(?:page ?)?views|hits|visits|visitors?(?: number)?|downloads|likes|followers|(?:users |guests )?online(?: now)?) ?[:#=] ?{_COUNT}"
        rf"|\b(?:viewed|visited|read|downloaded|accessed) {_COUNT} times\b",
    ),
    Rule(
        "token",
        r"\b(?:(?:csrf|xsrf|session|security|request)[ _-]token|nonce|(?:request|trace|ray|session|correlation|incident)[ _-]?id|reference #) ?[:=#]? ?"
        rf"{_ID}",
    ),
)
"""Rules for the text of a page, in the order in which they run."""

LINK_RULES: Final = (
    Rule("session", r"(;(?:jsessionid|phpsessid|sessionid|sid)=)[0-9a-z!*.,~_-]{12,256}", r"\1"),
    Rule("session", r"(/)\((?:[a-z]\([0-9a-z]{24}\))+\)", r"\1"),
    Rule(
        "session",
        r"([?&](?:phpsessid|jsessionid|aspsessionid[a-z]{8}|sessionid|session_id|sessid|session|sid|oscsid|zenid)=)"
        r"(?:[0-9a-f]{16,128}|[0-9a-z]{20,128})\b",
        r"\1",
    ),
    Rule("session", r"([?&](?:cfid|cftoken)=)[0-9a-f-]{5,80}\b", r"\1"),
    Rule("token", r"([?&](?:csrf|xsrf|_csrf|csrf_?token|csrfmiddlewaretoken|authenticity_token|nonce|_wpnonce)=)[^&#\n]{6,}", r"\1"),
    Rule("age", r"([?&](?:_|nocache|cache_?buster|rnd|rand|random)=)[0-9.]{6,}\b", r"\1"),
)
"""Rules for resolved links. Names and values must both look right, as with the identity of addresses."""


class _Masks:
    """Rules made ready: one pass finds out whether any applies, which for most pages is all that is done."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._any = _compiled("|".join(f"(?:{rule.pattern})" for rule in rules))
        self._each = [(_compiled(rule.pattern), f"{rule.kept}{{{rule.name}}}".encode()) for rule in rules]

    def apply(self, text: bytes) -> bytes:
        if self._any.search(text) is None:
            return text
        for pattern, mask in self._each:
            text = pattern.sub(mask, text)
        return text


def _compiled(pattern: str) -> re2._Regexp:
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    return re2.compile(pattern.encode(), options)


_TEXT: Final = _Masks(TEXT_RULES)
_LINKS: Final = _Masks(LINK_RULES)


def mask(text: bytes) -> bytes:
    """The text, in UTF-8, with its volatile parts replaced by the names of their rules in braces."""
    return _TEXT.apply(text)


def mask_links(links: Iterable[str]) -> list[str]:
    """The distinct links, sorted, with their volatile parts replaced by the names of their rules in braces."""
    plain = "\n".join(sorted(set(links))).encode("utf-8", "replace")
    masked = _LINKS.apply(plain)
    return sorted(set(masked.decode().split("\n")))
