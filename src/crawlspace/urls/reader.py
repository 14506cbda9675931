"""Reads links: text to fetch URL and canonical form, one by one or a page's worth at a time.

What the caller makes of a reading is its own: a string, an address with a key. All memory kept is bounded and holds
nothing but answers that would be given again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from crawlspace.urls.parser import EDGE, Parsed, failure, is_http, resolve, without_credentials
from crawlspace.urls.policies import Policy
from crawlspace.urls.sites import Site, rewrite, site_of, split_head

_SITES_KEPT: Final = 4096
_RECENT_KEPT: Final = 8192
_RECENT_LENGTH: Final = 256
"""Longer URLs are read anew each time, so that the recent ones take 10 MB at most."""
_FOLDERS_KEPT: Final = 64
_TEXTS_KEPT: Final = 8192
"""Texts of links that are remembered with their answers, and folders in which they stood: 10 MB at most."""
_OF_PAGE: Final = frozenset({"", "#", "?", *EDGE})
_ABSOLUTE: Final = ("http://", "https://")
_NAME: Final = r"[A-Za-z0-9_~,=+-][A-Za-z0-9_~,=+.-]*"
_PATH: Final = re.compile(rf"(?:/{_NAME})*/?")
"""Paths that every parser leaves as they are: no dot segments, no empty ones, and no character with a meaning."""
_NAMES: Final = re.compile(rf"{_NAME}(?:/{_NAME})*/?")
"""The same for what is relative to a folder. There is no colon, so that no name is taken for a scheme."""

Good = TypeVar("Good")
Bad = TypeVar("Bad")


class Reader(Generic[Good, Bad]):
    """Reads texts under one policy.

    `good` makes the answer of fetch URL, canonical form and site; `bad` makes it of the text and the reason against.
    """

    def __init__(
        self, policy: Policy, good: Callable[[str, str, Site], Good], bad: Callable[[str, str], Bad]
    ) -> None:
        self._policy = policy
        self._longest = policy.max_length
        self._good = good
        self._bad = bad
        self._sites: dict[str, Site] = {}
        self._near = site_of("http://invalid", policy)
        """The site of the last link: most often that of the next."""
        self._recent: dict[str, Good] = {}
        self.recent = self._recent.get
        """The answer to a text that was read lately; None for others.

        A URL that the parser has written is the same URL whatever it stands in.
        """
        self._folders: dict[str, dict[str, Good]] = {}
        self._texts = 0

    def one(self, text: str, base: Parsed | None) -> Good | Bad:
        """The answer to one text, resolved against `base`."""
        known = self._recent.get(text)
        if known is not None:
            return known
        longest = self._longest
        if len(text) > longest and len(text.partition("#")[0].strip(EDGE)) > longest:
            return self._bad(text, "too_long")
        parsed = resolve(text, base)
        if parsed is None or not is_http(parsed):
            return self._bad(text, failure(text, base))
        href = without_credentials(parsed) if "@" in parsed.href else parsed.href
        fetch_url = href.partition("#")[0]
        if len(fetch_url) > longest:
            return self._bad(text, "too_long")
        site = self._site(split_head(href))
        canonical = rewrite(href if self._policy.routes else fetch_url, site)
        if len(canonical) > longest:
            return self._bad(text, "too_long")
        answer = self._good(fetch_url, canonical, site)
        if fetch_url == text and len(text) <= _RECENT_LENGTH:
            self._remember(text, answer)
        return answer

    def many(self, texts: Iterable[str], base: Parsed | None) -> list[Good | Bad]:
        """The answers to the links of one page, in order. A repeat within the pages of a folder is read once."""
        place = self._place(base)
        root = None if place is None else split_head(f"{place}/")
        folder = self._folder(place)
        answers: list[Good | Bad] = []
        routes = self._policy.routes
        for text in texts:
            cut = text if routes or "#" not in text else _without_fragment(text)
            answer = folder.get(cut)
            if answer is None:
                href = self._plain(cut, place, root)
                answer = self._quick(cut, base) if href is None else self._known(href)
                if answer is None:
                    answers.append(self.one(text, base))
                    continue
                if self._texts < _TEXTS_KEPT and _is_of_folder(cut):
                    folder[cut] = answer
                    self._texts += 1
            answers.append(answer)
        return answers

    def _place(self, base: Parsed | None) -> str | None:
        """The folder of the page, without its last slash; None when there is none on the web."""
        if base is None or not is_http(base):
            return None
        return base.href.partition("#")[0].partition("?")[0].rpartition("/")[0]

    def _folder(self, place: str | None) -> dict[str, Good]:
        """What is known of links in the pages of one folder."""
        if self._texts >= _TEXTS_KEPT or len(self._folders) >= _FOLDERS_KEPT:
            self._folders.clear()
            self._texts = 0
        return {} if place is None else self._folders.setdefault(place, {})

    def _plain(self, text: str, place: str | None, root: str | None) -> str | None:
        """What the parser would make of the text where no reading is needed, since nothing in it has a meaning."""
        if text[:1] == "/":
            return f"{root}{text}" if root is not None and _PATH.fullmatch(text) else None
        site = self._near.found
        if text.startswith(site):
            return text if _PATH.fullmatch(text, len(site) - 1) else None
        return f"{place}/{text}" if place is not None and _NAMES.fullmatch(text) else None

    def _quick(self, text: str, base: Parsed | None) -> Good | None:
        """What `one` gives for a usual link of a known site; None for all others."""
        parsed = resolve(text, base) if len(text) <= self._longest else None
        return None if parsed is None else self._known(parsed.href)

    def _known(self, href: str) -> Good | None:
        """What `one` gives for a URL as the parser writes it; None for rare kinds and where its site is not known."""
        answer = self._recent.get(href)
        if answer is not None:
            return answer
        longest = self._longest
        site = self._known_site(href)
        if site is None or "#" in href or len(href) > longest:
            return None
        if site.quick and "%" not in href and "?" not in href and ";" not in href:
            canonical = href
        else:
            canonical = rewrite(href, site)
        if len(canonical) > longest:
            return None
        answer = self._good(href, canonical, site)
        if len(href) <= _RECENT_LENGTH:
            self._remember(href, answer)
        return answer

    def _remember(self, href: str, answer: Good) -> None:
        if len(self._recent) >= _RECENT_KEPT:
            self._recent.clear()
        self._recent[href] = answer

    def _known_site(self, href: str) -> Site | None:
        """The site of `href` if it was met before, so that it is one of http or https without user information."""
        if href.startswith(self._near.found):
            return self._near
        site = self._sites.get(split_head(href))
        if site is not None:
            self._near = site
        return site

    def _site(self, head: str) -> Site:
        site = self._sites.get(head)
        if site is None:
            if len(self._sites) >= _SITES_KEPT:
                self._sites.clear()
            site = self._sites[head] = site_of(head, self._policy)
        return site


def _is_of_folder(text: str) -> bool:
    """Whether a link means the same in all pages of a folder: one that names no path goes by the page's own."""
    if len(text) > _RECENT_LENGTH or text[:1] in _OF_PAGE:
        return False
    return ":" not in text or text.startswith(_ABSOLUTE)


def _without_fragment(text: str) -> str:
    """`text` up to its fragment, unless that would lay bare a blank that the parser then trims."""
    cut = text.partition("#")[0]
    return text if cut[-1:] in EDGE and cut else cut
