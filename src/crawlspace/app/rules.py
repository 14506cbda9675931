"""The URL rules of a crawl against those of the settings: under others it is not opened, and told why in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crawlspace.errors import CrawlDirError
from crawlspace.frontier.sqlite.rekey import UNFINISHED, decoded
from crawlspace.urls import Policy
from crawlspace.urls.difference import difference

RULES = "url_rules"
"""The fact that holds the identifier of a crawl's rules."""
RULES_TEXT = "url_rules_text"
NEW_RULES_TEXT = "rekey_rules_text"
"""The text of the rules that an unfinished re-keying leads to."""

_TOLD = 12


def require_rules(notes: Mapping[str, str], policy: Policy, directory: object) -> None:
    """Raise `CrawlDirError` unless a crawl with these facts can go on under `policy`."""
    progress = decoded(notes.get(UNFINISHED))
    if progress is not None:
        raise CrawlDirError(
            f"a re-keying of this crawl to other URL rules is not finished (stage: {progress.stage})",
            hint=f"go on with it first: crawlspace rekey {directory} --apply, with the settings that it began with",
        )
    if notes.get(RULES) != policy.identifier:
        raise CrawlDirError(
            f"this crawl was made under other URL rules: {in_words(notes.get(RULES_TEXT, ''), policy.text)}",
            hint=f"either re-key it: crawlspace rekey {directory} shows what that would do; or set the rules back: "
            f"[identity] in {directory}/effective.toml has those of its last run",
        )


def in_words(old: str, new: str) -> str:
    """The difference on one line."""
    return "; ".join(shortened(difference(old, new))) or "another way to write the same ones"


def shortened(told: Sequence[str]) -> list[str]:
    """The first of many."""
    more = len(told) - _TOLD
    return [*told[:_TOLD], f"and {more} more differences"] if more > 0 else list(told)
