"""The canonical form of a URL: what is compared, never what is requested.

canonicalize("HTTP://Example.com:80/a/../b?utm_source=x&b=1&a=2#top")  # http://example.com/b?a=2&b=1
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from crawlspace.urls.parser import resolve
from crawlspace.urls.policies import CONSERVATIVE, Policy
from crawlspace.urls.reader import Reader
from crawlspace.urls.sites import Site


class UrlError(ValueError):
    """The text is no http or https URL; `reason` is `scheme`, `host`, `syntax`, `too_long` or `empty`."""

    def __init__(self, text: str, reason: str) -> None:
        shown = text if len(text) <= 100 else f"{text[:100]}..."
        super().__init__(f"{shown!r} is no URL that could be fetched: {reason}")
        self.text = text
        self.reason = reason


def _form(_fetch_url: str, canonical: str, _site: Site) -> str:
    return canonical


@lru_cache(maxsize=16)
def _reader(policy: Policy, _max_length: int) -> Reader[str, UrlError]:
    """One reader a policy; policies that differ in length only are equal, so the length is part of the question."""
    return Reader(policy, _form, UrlError)


def canonicalize(url: str, base: str | None = None, policy: Policy = CONSERVATIVE) -> str:
    """The canonical form of `url`, resolved against `base`.

    Raises `UrlError`, and nothing else, for what is no http or https URL.
    """
    start = None if base is None else resolve(base)
    if base is not None and start is None:
        raise UrlError(url, "syntax")
    found = _reader(policy, policy.max_length).one(url, start)
    if isinstance(found, UrlError):
        raise found
    return found


def canonicalize_many(
    urls: Iterable[str], base: str | None = None, policy: Policy = CONSERVATIVE
) -> list[str | None]:
    """The canonical forms of a page's links, in order; None for what is no http or https URL."""
    start = None if base is None else resolve(base)
    if base is not None and start is None:
        return [None for _ in urls]
    forms = _reader(policy, policy.max_length).many(urls, start)
    return [None if isinstance(form, UrlError) else form for form in forms]
