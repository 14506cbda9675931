"""One host's way from a URL as found to its canonical form.

`rewrite` is the quick way through the rules: it proves that no other step can apply, or takes them all. `stepwise`
takes them all. Both give the same for every URL under every policy, which a property test holds.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from crawlspace.urls.params import in_order
from crawlspace.urls.percent import normal
from crawlspace.urls.policies import Policy
from crawlspace.urls.rules import STEPS, Matcher, Parts, Rules, Step, authority, parts_of
from crawlspace.urls.trackers import NOT_ON, TRACKERS

_FIRST_SLASH: Final = len("https://")
"""Where to look for the slash after the host: no host is empty, so `http://` may count one more."""
_CHANGES_BODY: Final = (
    *("lower_path", "segment_sessions", "merge_slashes", "index_documents", "hash_routes", "semicolons"),
    *("path_params", "id_segments", "view_segments"),
)
"""Choices whose steps `rewrite` does not know."""
_FOLD_SCHEME: Final = next(step for step in STEPS if step.setting == "fold_scheme")
_SESSION_NAMES: Final = frozenset({"phpsessid", "jsessionid", "sid", "cfid", "cftoken"})


class Site(NamedTuple):
    """What holds for all URLs of one scheme and host as found."""

    found: str
    """Scheme, authority and first slash of these URLs, as the parser writes them."""
    head: str
    """Scheme and authority of their canonical forms."""
    host: str
    """The unit of pace: name after the host rules, with its port."""
    parts: Parts
    """Scheme, name and port of their canonical forms."""
    rules: Rules
    steps: tuple[Step, ...]
    """Those that the rules ask for, in order; scheme and host are done."""
    plain: bool
    """Whether a path and query without `%`, `?` and `;` are their own canonical form."""
    quick: bool
    """Whether also scheme and host are."""
    strips: frozenset[str]
    """Parameters that go by their name alone."""
    doubts: frozenset[str]
    """Parameters that go or stay by something else."""
    prefixes: tuple[str, ...]
    """Beginnings of names of parameters that may go."""


class _Common(NamedTuple):
    """What all sites with the same rules have in common."""

    steps: tuple[Step, ...]
    plain: bool
    strips: frozenset[str]
    doubts: frozenset[str]
    prefixes: tuple[str, ...]


def site_of(head: str, policy: Policy) -> Site:
    """The site of `head`, scheme and authority of a URL as the parser writes it."""
    found = parts_of(f"{head}/")
    name, rules = policy.fold_host(found.name)
    parts = found._replace(name=name)
    parts = _FOLD_SCHEME.apply(parts, rules)
    folded = f"{parts.scheme}://{authority(name, parts.port)}"
    common = _common(rules)
    return Site(
        found=f"{head}/",
        head=folded,
        host=authority(name, found.port),
        parts=parts,
        rules=rules,
        steps=common.steps,
        plain=common.plain,
        quick=common.plain and folded == head,
        strips=common.strips,
        doubts=common.doubts,
        prefixes=common.prefixes,
    )


@lru_cache(maxsize=64)
def _common(rules: Rules) -> _Common:
    """Made once for the rules that hold for most hosts."""
    named = (TRACKERS if rules.strip_trackers else frozenset()) | frozenset(rules.strip)
    keep = Matcher(rules.keep)
    return _Common(
        steps=tuple(step for step in STEPS if _asked_for(step, rules)),
        plain=rules.trailing_slash == "keep" and not any(getattr(rules, choice) for choice in _CHANGES_BODY),
        strips=frozenset(name for name in named if name not in NOT_ON and not keep(name)),
        doubts=frozenset(NOT_ON) & named,
        prefixes=tuple(pattern[:-1] for pattern in rules.strip if pattern.endswith("*")),
    )


def _asked_for(step: Step, rules: Rules) -> bool:
    choice = getattr(rules, step.setting)
    if step.setting == "hash_routes":
        return True
    return step.setting != "fold_scheme" and bool(choice) and choice != "keep"


def split_head(href: str) -> str:
    """Scheme and authority of what the parser has written."""
    return href[: href.find("/", _FIRST_SLASH)]


def rewrite(href: str, site: Site) -> str:
    """The canonical form of `href`, a URL of this site as the parser has written it."""
    body = href[len(site.found) - 1 :]
    if not site.plain or ";" in body or "#" in body:
        return stepwise(href, site)
    if "%" in body and site.rules.percent_encoding:
        body = normal(body)
    path, mark, query = body.partition("?")
    if not mark:
        return f"{site.head}{body}"
    pieces = query.split("&")
    names = [piece.partition("=")[0] for piece in pieces]
    if _is_doubtful(query, names, site):
        return stepwise(href, site)
    settled = _settled(pieces, names, site)
    return f"{site.head}{path}?{'&'.join(settled)}" if settled else f"{site.head}{path}"


def _is_doubtful(query: str, names: list[str], site: Site) -> bool:
    """Whether a step may apply that `_settled` does not take: blank pieces, session ids, names on conditions."""
    if "" in names or (site.doubts and not site.doubts.isdisjoint(names)):
        return True
    if site.prefixes and any(name.startswith(site.prefixes) for name in names):
        return True
    small = query.lower()
    if not ("sid" in small or "sessionid" in small or "cf" in small):
        return False
    return any(name in _SESSION_NAMES or name.startswith("aspsessionid") for name in map(str.lower, names))


def _settled(pieces: list[str], names: list[str], site: Site) -> list[str]:
    """The pieces of a query without those that go by name, in order."""
    if not site.strips.isdisjoint(names):
        pieces = [piece for piece, name in zip(pieces, names, strict=True) if name not in site.strips]
        names = [name for name in names if name not in site.strips]
    if site.rules.sort and len(names) > 1 and names != sorted(names):
        return in_order(pieces)
    return pieces


def stepwise(href: str, site: Site) -> str:
    """The canonical form, by taking every step that the rules of the site ask for."""
    found = parts_of(href)
    parts = site.parts._replace(path=found.path, query=found.query, fragment=found.fragment)
    for step in site.steps:
        parts = step.apply(parts, site.rules)
    return parts.text()
