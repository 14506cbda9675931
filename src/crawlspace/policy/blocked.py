"""Pages that only keep us out, told from pages: a table of signatures, and one function that reads it.

A signature is what the makers of a wall put into every one of its answers: a header of theirs, a cookie's name, the
address of their script, a title. Words that people write about walls are no signature, so that an article on captchas
stays a page: under a status of success only what stands in a tag or a header counts, and only in pages that are small
and have hardly a link. Statuses of failure say already that there is no page; there one marker is enough.

An ordinary page pays for the look at its status, its size and the number of its links. The markers are looked for in
the first 64 KiB: all at once whether there is any, and each alone only where there is, so that the time is linear in
what is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import re2

from crawlspace.exchange import FetchResult, Headers
from crawlspace.policy.patterns import Patterns
from crawlspace.policy.routes import SignatureRule
from crawlspace.policy.signatures import SIGNATURES, Signature, Sort

LOOKED_AT = 64 * 1024
"""Bytes of a body in which markers are looked for."""
SMALL = 16 * 1024
"""A page with a status of success that is larger is taken for one."""
FEW_LINKS = 8
"""As is one with more links."""
_TRIES = 5
"""Places of one marker that are looked at."""
GONE = frozenset({404, 410})
"""Statuses of failure that are the page's own answer: whoever guards a door does not say that there is no house."""


class _Candidates(NamedTuple):
    """The signatures of one status."""

    all: tuple[Signature, ...]
    headers: tuple[Signature, ...]
    """Those that are known by headers alone."""
    unmarked: tuple[Signature, ...]
    """Those that need no marker in the body."""
    markers: re2._Regexp
    """Finds a marker of any of the others."""

    @classmethod
    def of(cls, signatures: tuple[Signature, ...]) -> _Candidates:
        words = [word for each in signatures for word in each.body or each.also]
        return cls(
            signatures,
            tuple(each for each in signatures if not each.reads_body),
            tuple(each for each in signatures if not (each.body or each.also)),
            re2.compile(b"|".join(map(re2.escape, words))),
        )


class Detector:
    """The table, with what the user added and left out."""

    def __init__(self, own: Sequence[SignatureRule] = (), ignore: Sequence[str] = ()) -> None:
        left_out = frozenset(ignore)
        self._signatures = tuple(each for each in SIGNATURES if each.id not in left_out)
        self._own = tuple(map(_Own, own))
        self._named = frozenset(name for each in self._signatures for name, _ in each.headers)
        self._of_status: dict[int, _Candidates] = {}

    def recognise(self, result: FetchResult) -> Signature | None:
        """The signature of the wall that this answer is; None for a page."""
        page = _Page(result)
        for own in self._own:
            if own.fits(page):
                return own.signature
        status = result.status
        if status in GONE:
            return None
        reads = status >= 400 or page.may_be_wall
        if not reads and not result.headers.has_any(self._named):
            return None
        known = self._for(status)
        if not reads:
            candidates = known.headers
        else:
            candidates = known.all if known.markers.search(page.text) else known.unmarked
        return next((each for each in candidates if _fits(each, page)), None)

    def _for(self, status: int) -> _Candidates:
        found = self._of_status.get(status)
        if found is None:
            fitting = (each for each in self._signatures if not each.statuses or status in each.statuses)
            found = self._of_status[status] = _Candidates.of(tuple(fitting))
        return found


class _Page:
    """What is looked at of an answer; made when it is asked for."""

    def __init__(self, result: FetchResult) -> None:
        self.url = result.url
        self.status = result.status
        self.headers: Headers = result.headers
        self._body = result.body
        self._text: bytes | None = None

    @property
    def may_be_wall(self) -> bool:
        """Whether a page with a status of success is as small and as bare of links as a wall."""
        return 0 < len(self._body) <= SMALL and not (_has_links(self._body, b"<a ") or _has_links(self._body, b"<A "))

    @property
    def text(self) -> bytes:
        """The beginning of the body, in lower case."""
        if self._text is None:
            self._text = self._body[:LOOKED_AT].lower()
        return self._text

    @property
    def title(self) -> str:
        """The title, in lower case, white space folded."""
        start = self.text.find(b">", self.text.find(b"<title")) + 1 if b"<title" in self.text else 0
        end = self.text.find(b"</title", start)
        if not start or end < 0:
            return ""
        return " ".join(self.text[start:end].decode("utf-8", "replace").split())

    def shows(self, marker: bytes) -> bool:
        """Whether the body has this, under a status of success in its markup and not in what people read."""
        place = self.text.find(marker)
        for _ in range(_TRIES):
            if place < 0:
                return False
            if self.status >= 300 or self._in_markup(place):
                return True
            place = self.text.find(marker, place + 1)
        return False

    def _in_markup(self, place: int) -> bool:
        before = self.text[:place]
        return before.rfind(b"<") > before.rfind(b">") or before.rfind(b"<script") > before.rfind(b"</script")


class _Own:
    """A signature of the user's."""

    def __init__(self, rule: SignatureRule) -> None:
        name, _, value = rule.header.partition(":")
        self.signature = Signature(
            id=rule.id,
            vendor="",
            sort=Sort(rule.sort),
            source="routing.signatures",
            statuses=frozenset(rule.statuses),
            headers=((name.strip().lower(), value.strip()),) if rule.header else (),
            titles=(" ".join(rule.title.lower().split()),) if rule.title else (),
            body=(rule.body.lower().encode(),) if rule.body else (),
        )
        where = f"routing.signatures, {rule.id}"
        self._patterns = None if rule.url is None else Patterns.of((rule.url,), where)

    def fits(self, page: _Page) -> bool:
        return (self._patterns is None or self._patterns.match(page.url)) and _fits(self.signature, page)


def _has_links(body: bytes, start: bytes) -> bool:
    """Whether there are more than a few: looked at no further than that."""
    place = -1
    for _ in range(FEW_LINKS + 1):
        place = body.find(start, place + 1)
        if place < 0:
            return False
    return True


def _fits(signature: Signature, page: _Page) -> bool:
    if signature.statuses and page.status not in signature.statuses:
        return False
    if signature.headers and not any(_has(page.headers, *each) for each in signature.headers):
        return False
    if signature.titles and page.title not in signature.titles:
        return False
    if signature.body and not any(map(page.shows, signature.body)):
        return False
    return not signature.also or any(marker in page.text for marker in signature.also)


def _has(headers: Headers, name: str, part: str) -> bool:
    return any(part.lower() in value.lower() for value in headers.all(name))
