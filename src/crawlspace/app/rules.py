"""The URL rules of a crawl against those of the settings: under others it is not opened, and told why in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from crawlspace.errors import CrawlDirError, StoreDamaged
from crawlspace.frontier.rekeying import UNFINISHED, decoded
from crawlspace.settings import Settings
from crawlspace.urls import Policy
from crawlspace.urls.difference import difference
from crawlspace.urls.learned import with_rules
from crawlspace.urls.variants import HostRule

RULES = "url_rules"
"""The fact that holds the identifier of a crawl's rules."""
RULES_TEXT = "url_rules_text"
NEW_RULES_TEXT = "rekey_rules_text"
"""The text of the rules that an unfinished re-keying leads to."""

LEARNED = "learned_rules"
"""The fact that holds the learned rules that a crawl is under, in order."""
LEARNED_GOAL = "learned_goal"
"""Those that it is to be under: set before a re-keying that applies or undoes some, and empty when it is done."""

_TOLD = 12


_decode_rules = msgspec.json.Decoder(list[HostRule]).decode


def rules_in(notes: Mapping[str, str]) -> list[HostRule]:
    """The learned rules that a crawl with these facts is under, in the order in which they came into effect."""
    return _read_rules(notes.get(LEARNED))


def goal_in(notes: Mapping[str, str]) -> list[HostRule]:
    """Those that it is to be under."""
    return _read_rules(notes.get(LEARNED_GOAL) or notes.get(LEARNED))


def written(rules: Sequence[HostRule]) -> str:
    """Learned rules as a fact of the store."""
    return msgspec.json.encode(rules).decode()


def under(settings: Settings, rules: Sequence[HostRule]) -> Settings:
    """The settings under which these learned rules hold too."""
    return msgspec.structs.replace(settings, identity=with_rules(settings.identity, rules))


def _read_rules(fact: str | None) -> list[HostRule]:
    try:
        return _decode_rules(fact) if fact else []
    except msgspec.DecodeError as error:
        raise StoreDamaged(f"the learned rules of the crawl cannot be read: {error}") from error


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
