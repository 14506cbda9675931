"""Two addresses of one page, and the one rule that would make them one.

A rule names the host it holds for and, where its kind needs one, a detail: a parameter, an index document, a prefix,
the other host. Rules are for canonical forms, so that only what the crawl's own rules leave apart is told. Addresses
that differ in more than one rule takes away say nothing, but for the scheme and the `www.` of one host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum, unique
from typing import Any, Final, NamedTuple

import msgspec

from crawlspace.urls import percent
from crawlspace.urls.rules import HOST_STEPS, STEPS, Parts, Rules, parts_of
from crawlspace.urls.sessions import is_id_segment, is_strict_id

_INDEX: Final = re.compile(r"(?:index|default|home|main|start|welcome)(?:\.[A-Za-z]{2,6})?", re.IGNORECASE)
_ENDS_LIKE_ID: Final = re.compile(r"((?:.*[^0-9A-Za-z])?)([0-9A-Za-z]{16,128})")
_NO_NAME: Final = re.compile(r"[=&#*]|\A\Z")
_NOTHING: Final = Rules()
_VIEWS: Final = frozenset(
    {
        *("print", "printer", "printable", "print-view", "printview", "print.html", "print.php"),
        *("amp", "mobile", "lite", "plain", "text", "textonly", "text-only", "reader"),
    }
)
"""Words that name another form of a page and no other page; what a rule is learned of must be known as such."""
_LONGEST: Final = 200
"""Characters of a name that a rule may have."""


@unique
class RuleKind(StrEnum):
    """What a rule folds. The words are stored and shown, and never change their meaning."""

    SCHEME = "scheme"
    """http and https are one."""
    WWW = "www"
    """The name with `www.` is the one without; the rule's host is the one with."""
    MIRROR = "mirror"
    """The host has the pages of the host in `detail`."""
    SLASH = "slash"
    """A slash at the end of the path changes nothing."""
    INDEX = "index"
    """The file `detail` stands for its folder."""
    CASE = "case"
    """Letters of the path may be large or small."""
    PARAM = "param"
    """The query's parameter `detail` changes nothing."""
    PATH_PARAM = "path_param"
    """The parameter `detail` of path segments changes nothing."""
    ID_SEGMENT = "id_segment"
    """Segments that begin with `detail` and then look like a random id change nothing."""
    VIEW = "view"
    """A last segment `detail` shows the page before it in another form, as for printing."""


HOST_KINDS: Final = frozenset({RuleKind.WWW, RuleKind.MIRROR})
"""Kinds that fold the names of hosts."""


class HostRule(NamedTuple):
    """A rule of identity for one host."""

    kind: RuleKind
    host: str
    """Name without port, as canonical URLs have it."""
    detail: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The host names whose URLs it may change, or make one with others."""
        if self.kind is RuleKind.MIRROR:
            return self.host, self.detail
        if self.kind is RuleKind.WWW:
            return self.host, self.host.removeprefix("www.")
        return (self.host,)

    @property
    def choice(self) -> tuple[str, Any]:
        """The field of `HostChoices` that makes it so, and its value."""
        return _CHOICES[self.kind](self.detail)

    def form(self, canonical: str) -> str | None:
        """The form of a canonical URL under this rule alone; None when the rule is not for its host."""
        parts = parts_of(canonical)
        if parts.name not in self.names:
            return None
        if self.kind is RuleKind.MIRROR:
            # Whether the schemes are one is for another rule to say.
            return parts._replace(name=self.detail, scheme="" if not parts.port else parts.scheme).text()
        name, value = self.choice
        chosen = {name: tuple(value) if isinstance(value, list) else value}
        return _STEPS[name](parts, msgspec.structs.replace(_NOTHING, **chosen)).text()

    def __str__(self) -> str:
        return " ".join(filter(None, (self.host, self.kind, self.detail)))


_CHOICES: Mapping[RuleKind, Callable[[str], tuple[str, Any]]] = {
    RuleKind.SCHEME: lambda _: ("fold_scheme", True),
    RuleKind.WWW: lambda _: ("fold_www", True),
    RuleKind.MIRROR: lambda detail: ("fold_into", detail),
    RuleKind.SLASH: lambda _: ("trailing_slash", "strip"),
    RuleKind.INDEX: lambda detail: ("index_documents", [detail]),
    RuleKind.CASE: lambda _: ("lower_path", True),
    RuleKind.PARAM: lambda detail: ("strip", [detail]),
    RuleKind.PATH_PARAM: lambda detail: ("path_params", [detail]),
    RuleKind.ID_SEGMENT: lambda detail: ("id_segments", [detail]),
    RuleKind.VIEW: lambda detail: ("view_segments", [detail]),
}
_STEPS: Mapping[str, Callable[[Parts, Rules], Parts]] = {step.setting: step.apply for step in (*HOST_STEPS, *STEPS)}


def variants(one: str, other: str) -> tuple[HostRule, ...]:
    """Rules that together make two canonical URLs one; empty when it would take others, or they are one.

    Of two hosts the one with the longer name is counted as the other.
    """
    first, second = parts_of(one), parts_of(other)
    if first.port != second.port or first.fragment != second.fragment:
        return ()
    of_host = _host_rules(first, second)
    if first.path != second.path:
        return () if of_host or first.query != second.query else _path_rule(first, second)
    if first.query != second.query:
        return () if of_host else _param_rule(first, second)
    return of_host


def looks_random(rule: HostRule, one: str, other: str) -> bool:
    """Whether what the rule takes from these two URLs are ids by their looks: sessions, not pages."""
    if rule.kind is RuleKind.ID_SEGMENT:
        return True
    if rule.kind is not RuleKind.PARAM:
        return False
    values = [*_values(parts_of(one), rule.detail), *_values(parts_of(other), rule.detail)]
    return bool(values) and all(map(is_strict_id, values))


def is_view(page: str, other: str) -> bool:
    """Whether an address, or a path, is that of a page with a word for another form of it behind."""
    before, slash, last = other.rpartition("/")
    return last in _VIEWS and bool(slash) and before == page and not page.endswith("/")


def names_view(url: str) -> bool:
    """Whether the last segment of an address is such a word."""
    return url.rpartition("/")[2] in _VIEWS


def _values(parts: Parts, name: str) -> list[str]:
    pieces = (piece.partition("=") for piece in (parts.query or "").split("&"))
    return [value for found, _, value in pieces if found == name]


def _host_rules(first: Parts, second: Parts) -> tuple[HostRule, ...]:
    rules = []
    if first.name != second.name:
        bare = {first.name.removeprefix("www."), second.name.removeprefix("www.")}
        if len(bare) == 2:
            stays, goes = sorted((first.name, second.name), key=lambda name: (len(name), name))
            return (HostRule(RuleKind.MIRROR, goes, stays),)
        rules.append(HostRule(RuleKind.WWW, max(first.name, second.name, key=len)))
    if first.scheme != second.scheme:
        rules.append(HostRule(RuleKind.SCHEME, second.name))
    return tuple(rules)


# -- paths --------------------------------------------------------------------------------------------------


def _path_rule(first: Parts, second: Parts) -> tuple[HostRule, ...]:
    shorter, longer = sorted((first.path, second.path), key=len)
    host = first.name
    if longer == f"{shorter}/":
        return (HostRule(RuleKind.SLASH, host),)
    document = longer.removeprefix(shorter)
    if shorter.endswith("/") and longer.startswith(shorter) and _INDEX.fullmatch(document):
        return (HostRule(RuleKind.INDEX, host, document),)
    if is_view(shorter, longer):
        return (HostRule(RuleKind.VIEW, host, longer.rpartition("/")[2]),)
    if percent.lower(shorter) == percent.lower(longer):
        return (HostRule(RuleKind.CASE, host),)
    return _segment_rule(host, shorter.split("/"), longer.split("/"))


def _segment_rule(host: str, shorter: Sequence[str], longer: Sequence[str]) -> tuple[HostRule, ...]:
    if len(shorter) == len(longer):
        pairs = [(one, other) for one, other in zip(shorter, longer, strict=True) if one != other]
        found = [_param_names(one, other) for one, other in pairs]
        names: set[str] = set().union(*found)
        if len(names) == 1 and all(found):
            name = names.pop()
            return () if _is_no_name(name) else (HostRule(RuleKind.PATH_PARAM, host, name),)
        if len(pairs) == 1 and not names:
            prefixes = {_id_prefix(segment) for segment in pairs[0]}
            prefix = prefixes.pop()
            return () if prefixes or prefix is None else (HostRule(RuleKind.ID_SEGMENT, host, prefix),)
        return ()
    at = next((place for place, segment in enumerate(shorter) if segment != longer[place]), len(shorter))
    prefix = _id_prefix(longer[at])
    if prefix is None or [*longer[:at], *longer[at + 1 :]] != list(shorter):
        return ()
    return (HostRule(RuleKind.ID_SEGMENT, host, prefix),)


def _param_names(one: str, other: str) -> set[str]:
    """Names of the parameters in which two segments differ; the empty name where nothing else would make them one."""
    (own, *params), (its, *others) = one.split(";"), other.split(";")
    # A segment that is all parameters goes whole, and its slash with it.
    if own != its or not own:
        return {""} if params or others else set()
    differ = set(params) ^ set(others)
    return {each.partition("=")[0] for each in differ} or {""}


def _id_prefix(segment: str) -> str | None:
    """What stands before the random id at a segment's end; None when there is none."""
    found = _ENDS_LIKE_ID.fullmatch(segment)
    return found[1] if found and len(found[1]) <= _LONGEST and is_id_segment(segment, found[1]) else None


# -- queries ------------------------------------------------------------------------------------------------


def _param_rule(first: Parts, second: Parts) -> tuple[HostRule, ...]:
    both = [_by_name(parts.query) for parts in (first, second)]
    names = {name for name in both[0].keys() | both[1].keys() if both[0].get(name) != both[1].get(name)}
    if len(names) != 1:
        return ()
    (name,) = names
    return () if _is_no_name(name) else (HostRule(RuleKind.PARAM, first.name, name),)


def _by_name(query: str | None) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for piece in (query or "").split("&"):
        if piece:
            found.setdefault(piece.partition("=")[0], []).append(piece)
    return found


def _is_no_name(name: str) -> bool:
    """Whether a rule could not name it: settings give `*` a meaning."""
    return len(name) > _LONGEST or _NO_NAME.search(name) is not None
