"""What differs between two sets of URL rules, in words, and whether pages that were one may come apart.

Works on the texts of policies as they are stored with a crawl, also on those that another version wrote: what it does
not know it shows as it stands, and takes for a change that may part pages. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from crawlspace.urls.rules import OPTIONAL

_NAMES_TOLD: Final = 8
_MISSING: Final = object()

_PARTS_WHEN_SET: Final = frozenset({"hash_routes"})
"""Choices that keep pages apart; all other yes-or-no choices make pages one."""
_EITHER_WAY: Final = frozenset({"semicolons"})
"""`?utm_source=1;a=2` is all tracker without it, and has a parameter `a` with it."""
_ORDER: Final = {"trailing_slash": ("keep", "add", "strip")}
"""Words of a choice; each makes one what those before it make one."""
_JOINING_LISTS: Final = frozenset({"strip", "index_documents", "path_params", "view_segments"})
_PARTING_LISTS: Final = frozenset({"keep"})
_ADDING: Final = frozenset({"strip", "keep", "path_params", "id_segments", "view_segments"})
"""Lists of a host that add to those of all hosts; every other choice of a host replaces."""
_HOST_FOLDS: Final = ("fold_trailing_dot", "fold_www", "fold_into")
"""Choices that decide under which name the rules of some hosts are looked up."""
_KINDS: Final = ("host", "suffix", "pattern")


def difference(old: str, new: str) -> list[str]:
    """Each rule that differs, as `fold_www: no -> yes`; empty when the two give every URL the same form."""
    before, after = _read(old), _read(new)
    told = [f"{name}: {_word(was)} -> {_word(now)}" for name, was, now in _plain_changes(before, after)]
    told += _changed_rules(before.get("rules"), after.get("rules"), "")
    told += _changed_hosts(before.get("hosts"), after.get("hosts"))
    told += _changed_list("steps", *_steps(before, after))
    told += _changed_list("trackers", before.get("trackers"), after.get("trackers"))
    if before.get("trackers_not_on") != after.get("trackers_not_on"):
        told.append("trackers that stay on some paths: others")
    return told


def may_part(old: str, new: str) -> bool:
    """Whether URLs that were one page under `old` may be two under `new`; False only when that cannot be.

    Two sets of rules that both keep routes in fragments count as such too: the address that was fetched does not
    say which route it stood for.
    """
    before, after = _read(old), _read(new)
    if _keeps_routes(before) and _keeps_routes(after):
        return True
    was_taken, is_taken = _steps(before, after)
    if list(_plain_changes(before, after)) or was_taken != is_taken:
        return True
    if before.get("trackers_not_on") != after.get("trackers_not_on"):
        return True
    if not set(_list(before.get("trackers"))) <= set(_list(after.get("trackers"))):
        return True
    if _list(before.get("hosts")) and _folds(before) != _folds(after):
        return True
    was, now = _dict(before.get("rules")), _dict(after.get("rules"))
    if any(_parts(name, was.get(name, _MISSING), now.get(name, _MISSING)) for name in was.keys() | now.keys()):
        return True
    return _hosts_part(_list(before.get("hosts")), _list(after.get("hosts")))


# -- reading ------------------------------------------------------------------------------------------------


def _read(text: str) -> dict[str, Any]:
    try:
        return _dict(json.loads(text))
    except ValueError:
        return {}


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _plain_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[tuple[str, Any, Any]]:
    """Changes of entries that have no words of their own, such as the parser."""
    known = {"rules", "hosts", "steps", "trackers", "trackers_not_on"}
    for name in sorted((before.keys() | after.keys()) - known):
        was, now = before.get(name, _MISSING), after.get(name, _MISSING)
        if was != now:
            yield name, was, now


def _steps(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[object, object]:
    """The steps of both, without those that are named only where a rule asks for them: the rule says it then."""
    both = [text.get("steps") for text in (before, after)]
    if not all(isinstance(steps, list) for steps in both):
        return both[0], both[1]
    names = [{str(step).partition("/")[0] for step in _list(steps)} for steps in both]
    left_out = OPTIONAL & (names[0] ^ names[1])
    was, now = ([step for step in _list(steps) if str(step).partition("/")[0] not in left_out] for steps in both)
    return was, now


def _keeps_routes(text: Mapping[str, Any]) -> bool:
    every = [text.get("rules"), *(_dict(entry).get("rules") for entry in _list(text.get("hosts")))]
    return any(_dict(rules).get("hash_routes") for rules in every)


def _folds(text: Mapping[str, Any]) -> list[Any]:
    """Every choice about the names of hosts."""
    every = [_dict(text.get("rules")), *(_dict(_dict(entry).get("rules")) for entry in _list(text.get("hosts")))]
    chosen = ([rules.get(name) for name in _HOST_FOLDS] for rules in every)
    return [choice for choice in chosen if any(value is not None for value in choice)]


# -- words --------------------------------------------------------------------------------------------------


def _changed_rules(was: object, now: object, place: str) -> list[str]:
    before, after = _dict(was), _dict(now)
    told = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, _MISSING), after.get(name, _MISSING)
        if isinstance(old, list) and isinstance(new, list):
            told += _changed_list(place + name, old, new)
        elif old != new:
            told.append(f"{place}{name}: {_word(old)} -> {_word(new)}")
    return told


def _changed_list(name: str, was: object, now: object) -> list[str]:
    before, after = _list(was), _list(now)
    if before == after:
        return []
    added = [entry for entry in after if entry not in before]
    removed = [entry for entry in before if entry not in after]
    if not added and not removed:
        return [f"{name}: in another order"]
    told = [f"{sign} {_names(entries)}" for sign, entries in (("with", added), ("without", removed)) if entries]
    return [f"{name}: {', '.join(told)}"]


def _changed_hosts(was: object, now: object) -> list[str]:
    before, after = _by_place(was), _by_place(now)
    told = []
    for place in [*before, *(place for place in after if place not in before)]:
        if place not in after:
            told.append(f"rules for {place}: gone")
        else:
            told += _changed_rules(before.get(place), after[place], f"rules for {place}: ")
    if not told and _list(was) != _list(now):
        told.append("rules for some hosts: in another order")
    return told


def _by_place(entries: object) -> dict[str, dict[str, Any]]:
    """The rules of each host, suffix or pattern; later entries win."""
    found: dict[str, dict[str, Any]] = {}
    for entry in map(_dict, _list(entries)):
        place = next((f"{kind} {entry[kind]}" for kind in _KINDS if kind in entry), "some hosts")
        found[place] = {**found.get(place, {}), **_dict(entry.get("rules"))}
    return found


def _word(value: object) -> str:
    if value is _MISSING:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return _names(value) if value else "none"
    return str(value)


def _names(entries: list[Any]) -> str:
    told = ", ".join(map(str, entries[:_NAMES_TOLD]))
    more = len(entries) - _NAMES_TOLD
    return f"{told} and {more} more" if more > 0 else told


# -- may pages come apart? ----------------------------------------------------------------------------------


def _parts(name: str, was: object, now: object) -> bool:
    """Whether this change of one rule may part pages."""
    if was == now:
        return False
    if isinstance(was, bool) and isinstance(now, bool):
        return name in _EITHER_WAY or now == (name in _PARTS_WHEN_SET)
    if isinstance(was, list) and isinstance(now, list):
        return _list_parts(name, set(was), set(now))
    order = _ORDER.get(name, ())
    return was not in order or now not in order or order.index(str(now)) < order.index(str(was))


def _list_parts(name: str, was: set[Any], now: set[Any]) -> bool:
    if name in _JOINING_LISTS:
        return not was <= now
    return name not in _PARTING_LISTS or not now <= was


def _hosts_part(was: list[Any], now: list[Any]) -> bool:
    """Host rules that only grew at the end, by choices that make pages one, part nothing."""
    if now[: len(was)] != was:
        return True
    return any(
        _choice_parts(name, value)
        for entry in now[len(was) :]
        for name, value in _dict(_dict(entry).get("rules")).items()
    )


def _choice_parts(name: str, value: object) -> bool:
    """Whether choosing this for a host, whatever held there before, may part pages."""
    if name in _EITHER_WAY:
        return True
    if isinstance(value, bool):
        return value == (name in _PARTS_WHEN_SET)
    if isinstance(value, list):
        return name not in _JOINING_LISTS & _ADDING
    return value != _ORDER.get(name, ("",))[-1]
