"""Identity of URLs: one page, one key, and a reason for it. Usable without the rest of crawlspace.

>>> from crawlspace.urls import canonicalize, canonicalize_many
>>> canonicalize("HTTP://Example.com:80/a/../b?utm_source=x&b=1&a=2#top")
'http://example.com/b?a=2&b=1'
>>> canonicalize_many(["b", "mailto:me@example.com"], base="https://example.com/a/")
['https://example.com/a/b', None]
"""

from __future__ import annotations

from crawlspace.urls.canonical import UrlError, canonicalize, canonicalize_many
from crawlspace.urls.explain import Change, Explanation, explain
from crawlspace.urls.hosts import host_name, is_address, origin_of, registrable_domain
from crawlspace.urls.keys import Identity
from crawlspace.urls.policies import AGGRESSIVE, CONSERVATIVE, HostChoices, IdentitySettings, Policy, policy_from
from crawlspace.urls.rules import Rules

__all__ = [
    "AGGRESSIVE",
    "CONSERVATIVE",
    "Change",
    "Explanation",
    "HostChoices",
    "Identity",
    "IdentitySettings",
    "Policy",
    "Rules",
    "UrlError",
    "canonicalize",
    "canonicalize_many",
    "explain",
    "host_name",
    "is_address",
    "origin_of",
    "policy_from",
    "registrable_domain",
]
