"""Which URLs count as one: rules for every host, rules for some hosts, and an identifier for all of it.

A policy is a value: its text holds every effective rule, its identifier is a hash of the text, and both are stored
with the crawl. Two policies with one identifier give every URL the same canonical form. What says only which URLs
are taken at all (`max_length`) or what is requested (`fetch`) is no part of the identity.

Host rules are looked up under the folded host name, so that a canonical URL meets the rules that made it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Annotated, Any, Final, Literal

import msgspec
import re2

from crawlspace.errors import ConfigError
from crawlspace.urls.parser import resolve
from crawlspace.urls.rules import HOST_STEPS, OPTIONAL, STEPS, Parts, Rules, Step, TrailingSlash
from crawlspace.urls.trackers import NOT_ON, TRACKERS

MAX_LENGTH: Final = 8192
"""Apache (LimitRequestLine 8190) and nginx (8 KiB buffers) refuse longer ones; RFC 9110, 4.1 asks for 8,000."""

INDEX_DOCUMENTS: Final = (
    *("index.html", "index.htm", "index.shtml", "index.php", "index.asp", "index.aspx", "index.jsp"),
    *("default.htm", "default.html", "default.asp", "default.aspx", "Default.aspx", "Default.asp"),
)

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_NameList = Annotated[list[_Name], msgspec.Meta(max_length=1000)]
_PrefixList = Annotated[list[Annotated[str, msgspec.Meta(max_length=200)]], msgspec.Meta(max_length=1000)]
_HostName = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
_Pattern = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class Choices(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What may be chosen for all hosts or for some; what is not given stays as the policy has it."""

    fold_scheme: Annotated[bool | None, msgspec.Meta(description="Count http and https as one")] = None
    fold_trailing_dot: Annotated[
        bool | None, msgspec.Meta(description="Count a host name with a dot at its end as the one without")
    ] = None
    fold_www: Annotated[bool | None, msgspec.Meta(description="Count www.NAME and NAME as one host")] = None
    hash_routes: Annotated[
        bool | None, msgspec.Meta(description="Keep fragments that start with #! as part of the identity")
    ] = None
    percent_encoding: Annotated[
        bool | None, msgspec.Meta(description="Count spellings of one percent-encoding as one")
    ] = None
    lower_path: Annotated[bool | None, msgspec.Meta(description="Ignore case in paths")] = None
    path_sessions: Annotated[
        bool | None, msgspec.Meta(description="Ignore ;jsessionid= in paths where its value looks like an id")
    ] = None
    segment_sessions: Annotated[
        bool | None, msgspec.Meta(description="Ignore path segments that hold an ASP.NET session id")
    ] = None
    path_params: Annotated[
        _NameList | None, msgspec.Meta(description="Parameters of path segments to ignore, such as v in /a;v=1/b")
    ] = None
    id_segments: Annotated[
        _PrefixList | None,
        msgspec.Meta(
            description="Path segments to ignore where they are one of these prefixes and then look like a random "
            "id; an empty prefix means the whole segment"
        ),
    ] = None
    merge_slashes: Annotated[bool | None, msgspec.Meta(description="Count repeated slashes in paths as one")] = None
    view_segments: Annotated[
        _NameList | None,
        msgspec.Meta(description="Last segments of a path that show the page before them otherwise, such as print"),
    ] = None
    index_documents: Annotated[
        _NameList | None, msgspec.Meta(description="File names that stand for their folder, such as index.html")
    ] = None
    trailing_slash: Annotated[
        TrailingSlash | None, msgspec.Meta(description="Slash at the end of a path: keep, strip or add")
    ] = None
    semicolons: Annotated[bool | None, msgspec.Meta(description="Divide parameters at ; as at &")] = None
    drop_blank_params: Annotated[
        bool | None, msgspec.Meta(description="Ignore empty pieces of a query, as in ?&a=1&&b=2")
    ] = None
    strip_trackers: Annotated[
        bool | None, msgspec.Meta(description="Ignore the parameters of the built-in table of trackers")
    ] = None
    strip_sessions: Annotated[
        bool | None, msgspec.Meta(description="Ignore session ids in queries where their value looks like an id")
    ] = None
    strip: Annotated[
        _NameList | None, msgspec.Meta(description="Further parameters to ignore; a * at the end makes a prefix")
    ] = None
    keep: Annotated[
        _NameList | None, msgspec.Meta(description="Parameters never to ignore; a * at the end makes a prefix")
    ] = None
    sort: Annotated[bool | None, msgspec.Meta(description="Ignore the order of differently named parameters")] = None
    drop_empty_query: Annotated[bool | None, msgspec.Meta(description="Ignore a ? with nothing after it")] = None


class HostChoices(Choices, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Rules for some hosts: exactly one of `host`, `suffix` and `pattern` says which. Later entries win."""

    host: Annotated[_HostName | None, msgspec.Meta(description="One host name, without port")] = None
    suffix: Annotated[
        _HostName | None, msgspec.Meta(description="A domain: the name itself and all names below it")
    ] = None
    pattern: Annotated[
        _Pattern | None, msgspec.Meta(description="RE2 expression that the whole host name must match")
    ] = None
    fold_into: Annotated[
        _HostName | None, msgspec.Meta(description="Count these hosts as this one, which has the same pages")
    ] = None


class IdentitySettings(Choices, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which URLs count as one page."""

    policy: Annotated[
        Literal["conservative", "aggressive"],
        msgspec.Meta(description="Rules to start from: conservative merges only what is surely one page"),
    ] = "conservative"
    fetch: Annotated[
        Literal["as_found", "canonical"],
        msgspec.Meta(description="What is requested: the URL as first found, or its canonical form"),
    ] = "as_found"
    max_length: Annotated[
        int, msgspec.Meta(description="Longest URL taken, in characters of its ASCII form", ge=64, le=65536)
    ] = MAX_LENGTH
    hosts: Annotated[
        list[HostChoices], msgspec.Meta(description="Rules for some hosts, later ones win", max_length=10_000)
    ] = []


_CONSERVATIVE_RULES: Final = Rules()
_AGGRESSIVE_RULES: Final = Rules(
    fold_scheme=True,
    fold_www=True,
    segment_sessions=True,
    merge_slashes=True,
    index_documents=INDEX_DOCUMENTS,
    trailing_slash="strip",
)
_STARTS: Final = {"conservative": _CONSERVATIVE_RULES, "aggressive": _AGGRESSIVE_RULES}
_HOST_FIELDS: Final = frozenset(step.setting for step in HOST_STEPS)
_ADDING: Final = ("strip", "keep", "path_params", "id_segments", "view_segments")
_PARAMETERS: Final = ("strip", "keep")
_SEGMENTS: Final = {"index_documents": "file name", "view_segments": "segment of a path"}
_LATER: Final = frozenset(step.setting for step in (*HOST_STEPS, *STEPS) if step.name in OPTIONAL)


def _given(choices: Choices) -> dict[str, Any]:
    """What `choices` decides, as fields of `Rules`."""
    values = ((name, getattr(choices, name, None)) for name in Rules.__struct_fields__)
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values if value is not None}


def _merged(rules: Rules, given: dict[str, Any]) -> Rules:
    """`rules` with what was given; lists of parameters add up, everything else is replaced."""
    added = {name: tuple(sorted({*getattr(rules, name), *given[name]})) for name in _ADDING if name in given}
    return msgspec.structs.replace(rules, **(given | added))


class _HostEntry:
    """Rules for some hosts, checked and ready."""

    __slots__ = ("given", "kind", "matches", "text")

    def __init__(self, choices: HostChoices, place: str) -> None:
        named = {kind: text for kind in ("host", "suffix", "pattern") if (text := getattr(choices, kind)) is not None}
        if len(named) != 1:
            raise ConfigError(f"{place} must have exactly one of host, suffix and pattern; it has {len(named)}")
        self.kind, text = next(iter(named.items()))
        self.given = _given(choices)
        if choices.fold_into is not None:
            self.given["fold_into"] = _host_text(choices.fold_into, f"{place}.fold_into")
        self.text = text if self.kind == "pattern" else _host_text(text, place)
        self.matches = _matcher(self.kind, self.text, place)


def _matcher(kind: str, text: str, place: str) -> Callable[[str], bool]:
    if kind == "host":
        return text.__eq__
    if kind == "suffix":
        return lambda name: name == text or name.endswith(f".{text}")
    options = re2.Options()
    options.log_errors = False
    try:
        expression = re2.compile(text, options)
    except re2.error as error:
        raise ConfigError(f"{place}.pattern: {text!r} is no RE2 expression: {_words(error)}") from error
    return lambda name: expression.fullmatch(name) is not None


def _words(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _host_text(text: str, place: str) -> str:
    """A host name as the parser writes it."""
    bare = text.strip().lstrip(".")
    wrong = set("/?#@\\") if bare.startswith("[") else set("/?#@\\:")
    parsed = None if not bare or wrong & set(bare) else resolve(f"http://{bare}/")
    if parsed is None or parsed.port:
        raise ConfigError(f"{place}: {text!r} is no host name (write it without scheme, port and path)")
    return parsed.hostname


class Policy:
    """The rules of identity of one crawl. Compared by identifier; made by `policy_from`."""

    __slots__ = ("_entries", "_known", "base", "fetch_canonical", "identifier", "max_length", "routes", "text")

    def __init__(self, base: Rules, entries: Iterable[_HostEntry], max_length: int, fetch_canonical: bool) -> None:
        self.base = base
        self._entries = tuple(entries)
        self.max_length = max_length
        self.fetch_canonical = fetch_canonical
        self.routes = base.hash_routes or any(entry.given.get("hash_routes") for entry in self._entries)
        """Whether fragments matter anywhere."""
        self.text = self._write()
        """Every effective rule, as JSON with sorted keys."""
        self.identifier = blake2b(self.text.encode(), digest_size=8, person=b"crawlspace.rules").hexdigest()
        self._known: dict[tuple[int, ...], Rules] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and self.identifier == other.identifier

    def __hash__(self) -> int:
        return hash(self.identifier)

    def __repr__(self) -> str:
        return f"Policy({self.identifier})"

    def rules_for(self, name: str) -> Rules:
        """The rules of one host name, taken as it stands."""
        taken = tuple(index for index, entry in enumerate(self._entries) if entry.matches(name))
        if taken not in self._known:
            rules = self.base
            for index in taken:
                rules = _merged(rules, self._entries[index].given)
            if len(self._known) >= len(self._entries) + 1000:
                self._known.clear()
            self._known[taken] = rules
        return self._known[taken]

    def is_chosen(self, name: str, choice: str) -> bool:
        """Whether the rules for some hosts make this choice for this host name, whatever it is."""
        return any(choice in entry.given for entry in self._entries if entry.matches(name))

    def fold_host(self, name: str) -> tuple[str, Rules]:
        """The host name after the host rules, and the rules that hold for its URLs."""
        while True:
            folded, rules = self.fold_once(name)
            if folded == name:
                return name, rules
            name = folded

    def fold_once(self, name: str) -> tuple[str, Rules]:
        """The host name after one round of the rules that hold for it, and these."""
        rules = self.rules_for(name)
        folded = name
        for step in HOST_STEPS:
            folded = step.apply(Parts("http", folded, "", "/", None), rules).name
        return folded, rules

    def _write(self) -> str:
        used = {name for entry in self._entries for name in entry.given} | {
            name for name in _LATER if getattr(self.base, name)
        }
        rules = msgspec.to_builtins(self.base)
        content = {
            "parser": "URL Standard",
            "steps": [step.identifier for step in (*HOST_STEPS, *STEPS) if _is_told(step, used)],
            "rules": {name: value for name, value in rules.items() if value or name not in _LATER},
            "hosts": [{entry.kind: entry.text, "rules": entry.given} for entry in self._entries],
            "trackers": sorted(TRACKERS),
            "trackers_not_on": {name: list(words) for name, words in NOT_ON.items()},
        }
        return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _is_told(step: Step, used: set[str]) -> bool:
    return step.name not in OPTIONAL or step.setting in used


def policy_from(settings: IdentitySettings) -> Policy:
    """The policy that the settings describe. Raises `ConfigError`, naming the entry that is wrong."""
    base = _merged(_STARTS[settings.policy], _given(settings))
    _check_names(base, "identity")
    entries = []
    for index, choices in enumerate(settings.hosts):
        entry = _HostEntry(choices, f"identity.hosts[{index}]")
        _check_names(_merged(base, entry.given), f"identity.hosts[{index}]")
        entries.append(entry)
    policy = Policy(base, entries, settings.max_length, settings.fetch == "canonical")
    for index, entry in enumerate(entries):
        _check_circle(policy, entry, f"identity.hosts[{index}]")
    for index, entry in enumerate(entries):
        _check_reached(policy, entry, f"identity.hosts[{index}]")
    return policy


def _check_names(rules: Rules, place: str) -> None:
    for field, what in _SEGMENTS.items():
        for segment in getattr(rules, field):
            if not segment or "/" in segment or segment in (".", ".."):
                raise ConfigError(f"{place}.{field}: {segment!r} is no {what}")
    for field in _PARAMETERS:
        for pattern in getattr(rules, field):
            if "*" in pattern[:-1] or any(mark in pattern for mark in "=&#"):
                raise ConfigError(
                    f"{place}.{field}: {pattern!r} is no parameter name (a * may stand at its end, nowhere else)"
                )


def _check_circle(policy: Policy, entry: _HostEntry, place: str) -> None:
    """Hosts that are counted as each other in a circle would be counted as none."""
    name = entry.given.get("fold_into", "")
    met = [name]
    while (folded := policy.fold_once(name)[0]) != name:
        if folded in met:
            raise ConfigError(
                f"{place}.fold_into: {' is counted as '.join([*met, folded])}",
                hint="one of these hosts must stay what it is",
            )
        met.append(folded)
        name = folded


def _check_reached(policy: Policy, entry: _HostEntry, place: str) -> None:
    """A rule for a name that is folded away would never apply."""
    if entry.kind != "host" or not set(entry.given) - _HOST_FIELDS:
        return
    folded, _rules = policy.fold_host(entry.text)
    if folded != entry.text:
        raise ConfigError(
            f"{place}: URLs of {entry.text!r} are counted under {folded!r}, so the rule would never apply; "
            f"write it for {folded!r}"
        )


CONSERVATIVE: Final = policy_from(IdentitySettings())
"""Merges only what cannot be two pages, and what names trackers and session ids."""
AGGRESSIVE: Final = policy_from(IdentitySettings(policy="aggressive"))
"""Also merges what is one page on most sites: index documents, www, slashes, http and https."""
