"""Why a text has the canonical form it has: every step that changed something, before and after, and the reason.

This is the slow way on purpose: it takes all steps one by one and compares. It never raises for any text.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from crawlspace.urls.canonical import UrlError, canonicalize
from crawlspace.urls.parser import EDGE, resolve, without_credentials
from crawlspace.urls.policies import Policy
from crawlspace.urls.rules import HOST_STEPS, STEPS, Parts, parts_of


class Change(Struct, frozen=True):
    """One step that changed something."""

    name: str
    before: str
    after: str
    why: str
    source: str


class Explanation(Struct, frozen=True):
    """The way from a text to its canonical form, or the reason why there is none."""

    text: str
    canonical: str | None
    reason: str | None
    """Set when the text is no URL that could be fetched: `scheme`, `host`, `syntax`, `too_long` or `empty`."""
    changes: tuple[Change, ...]
    policy: str
    """Identifier of the policy."""


_FACTS: Final = (
    (re.compile(rf"\A[{re.escape(EDGE)}]|[{re.escape(EDGE)}]\Z"), "blanks and controls at the ends go"),
    (re.compile(r"[\t\n\r]"), "tabs and line ends go"),
    (re.compile(r"\A[^#?]*\\"), "backslashes are slashes"),
    (re.compile(r"\A[^:/?#]*[A-Z][^:/?#]*:"), "the scheme is written in lower case"),
    (re.compile(r"\A(?:[^:/?#]+:)?//[^/?#]*[^\x00-\x7f]"), "the host is written in ASCII (IDNA, UTS 46)"),
    (re.compile(r"\A(?:[^:/?#]+:)?//[^/?#]*[A-Z]"), "the host is written in lower case"),
    (re.compile(r"\A(?:[^:/?#]+:)?//[^/?#]*%"), "the host is percent-decoded"),
    (
        re.compile(r"(?i)\A(?:http://[^/?#]*:(?:0*80)?|https://[^/?#]*:(?:0*443)?)(?:[/?#]|\Z)"),
        "the scheme's own port goes",
    ),
    (re.compile(r"(?i)/(?:\.|%2e){1,2}(?:[/?#]|\Z)"), "dot segments are resolved"),
    (re.compile(r"\A(?:[^:/?#]+:)?//[^/?#]+(?:[?#]|\Z)"), "an empty path is a slash"),
)
"""What a text looks like, and what the parser does about it."""

_CREDENTIALS: Final = "user name and password say who asks, not for what"


def explain(text: str, base: str | None, policy: Policy) -> Explanation:
    """The way from `text`, relative to `base`, to its canonical form under `policy`."""
    start = None if base is None else resolve(base)
    try:
        canonical = canonicalize(text, base, policy)
    except UrlError as refusal:
        return Explanation(text, None, refusal.reason, (), policy.identifier)
    parsed = resolve(text, start)
    assert parsed is not None
    changes = [Change("parse", text, parsed.href, _facts(text, parsed.href), "URL Standard, URL parsing")]
    href = without_credentials(parsed)
    changes.append(Change("user-information", changes[0].after, href, _CREDENTIALS, "RFC 9110, 4.2.4"))
    changes += _folding(parts_of(href), policy)
    told = tuple(change for change in changes if change.before != change.after)
    return Explanation(text, canonical, None, told, policy.identifier)


def _facts(text: str, href: str) -> str:
    facts = [says for sign, says in _FACTS if sign.search(text)]
    if "://" not in text[:12]:
        facts.append("resolved against the address of its page")
    if href.count("%") > text.count("%"):
        facts.append("what may not stand in a URL is percent-encoded")
    return "; ".join(facts) or "written as browsers write it"


def _folding(parts: Parts, policy: Policy) -> list[Change]:
    """What the steps of the policy do, in their order."""
    changes = []
    name, rules = policy.fold_host(parts.name)
    while parts.name != name:
        own = policy.rules_for(parts.name)
        for step in HOST_STEPS:
            folded = step.apply(parts, own)
            changes.append(Change(step.name, parts.text(), folded.text(), step.why, step.source))
            parts = folded
    for step in STEPS:
        folded = step.apply(parts, rules)
        changes.append(Change(step.name, parts.text(), folded.text(), step.why, step.source))
        parts = folded
    return changes
