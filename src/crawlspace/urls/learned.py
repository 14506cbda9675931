"""Learned rules as settings: a crawl's own rules, and behind them one entry for each rule that is in effect.

A person's word comes first: a learned rule whose choice the settings make for that host themselves is left out, as is
one that would count hosts as each other in a circle. Entries stand in the order in which the rules came into effect,
so that a crawl whose rules only grow need not part pages for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from crawlspace.urls.policies import HostChoices, IdentitySettings, Policy, policy_from
from crawlspace.urls.variants import HOST_KINDS, HostRule, RuleKind

_ADDING = frozenset({RuleKind.PARAM, RuleKind.PATH_PARAM, RuleKind.ID_SEGMENT, RuleKind.VIEW})
"""Kinds whose choices add up with those of the settings."""


def with_rules(settings: IdentitySettings, rules: Sequence[HostRule]) -> IdentitySettings:
    """The settings under which these rules hold too."""
    own = policy_from(settings)
    folds = _folds(own, rules)
    folded = policy_from(msgspec.structs.replace(settings, hosts=[*settings.hosts, *folds.values()]))
    documents: dict[str, list[str]] = {}
    entries: list[HostChoices] = []
    for rule in rules:
        entry = folds.get(rule) if rule.kind in HOST_KINDS else _entry(own, folded, rule, documents)
        if entry is not None and entry not in entries:
            entries.append(entry)
    return msgspec.structs.replace(settings, hosts=[*settings.hosts, *entries])


def _folds(own: Policy, rules: Sequence[HostRule]) -> dict[HostRule, HostChoices]:
    """What folds host names, each name into one other."""
    targets: dict[str, str] = {}
    found: dict[HostRule, HostChoices] = {}
    for rule in rules:
        if rule.kind not in HOST_KINDS or rule.host in targets or own.is_chosen(rule.host, rule.choice[0]):
            continue
        if not _leads_to(own, targets, rule.names[1], rule.host):
            targets[rule.host] = rule.names[1]
            found[rule] = _choices(rule.host, rule)
    return found


def _leads_to(own: Policy, targets: Mapping[str, str], name: str, goal: str) -> bool:
    """Whether a host is counted, in the end or on the way, as `goal`."""
    while name != goal:
        following = targets.get(name) or own.fold_once(name)[0]
        if following == name:
            return False
        name = following
    return True


def _entry(own: Policy, folded: Policy, rule: HostRule, documents: dict[str, list[str]]) -> HostChoices | None:
    """The entry for the name under which the host's URLs stand by now; None where the settings have their own."""
    host = folded.fold_host(rule.host)[0]
    name = rule.choice[0]
    if rule.detail in getattr(own.rules_for(host), name) if rule.kind in _ADDING else own.is_chosen(host, name):
        return None
    if rule.kind is not RuleKind.INDEX:
        return _choices(host, rule)
    known = documents.setdefault(host, list(folded.rules_for(host).index_documents))
    if rule.detail not in known:
        known.append(rule.detail)
    return HostChoices(host=host, index_documents=list(known))


def _choices(host: str, rule: HostRule) -> HostChoices:
    name, value = rule.choice
    return HostChoices(host=host, **{name: value})
