"""What the crawl may ask for: a verdict with its reason for every link, given before anything is queued.

The scope is drawn around the seeds. It grows only when a seed itself has moved for good (`Scope.widen`). What a URL
is (host, patterns, length, path, parameters) is judged first, what its way was (nofollow, depth, redirects) last: a
refusal for its way then says that a better way would have passed.

A seed was named by the person who runs the crawl, so the limits that stop crawled URLs from growing do not hold for
it; exclusions do. Includes leave out whatever stands at depth 0, the seeds and where they redirect to: otherwise
`include = ["/docs/"]` would stop at the front door.

Robots, budgets and the address guard are asked elsewhere; a pass here is no permission to fetch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum, unique
from typing import Annotated, assert_never

import msgspec
from msgspec import Meta, Struct

from crawlspace.errors import StoreDamaged
from crawlspace.policy.patterns import Patterns
from crawlspace.types import Address, Reason, Relation
from crawlspace.urls import host_name, is_address, origin_of, registrable_domain

BELONGINGS = frozenset({Relation.REQUISITE, Relation.STYLED})
"""Relations of what belongs to a page and is none: it may lie on any host, and is not followed further."""

_FIRST_SLASH = len("https://")
"""Where to look for the slash after the host, as in `urls.sites`."""
_REMEMBERED = 16_384
"""Beginnings of URLs, up to the path, whose verdict is kept; a verdict is a few hundred bytes, and what is forgotten
is judged again."""


# Looked up once: a member is found by way of its class's metaclass.
_HYPERLINK = Relation.HYPERLINK
_SEED = Relation.SEED


@unique
class Strategy(StrEnum):
    """How far around a seed the crawl goes."""

    DOMAIN = "domain"
    """The registrable domain with all its hosts and ports; the origin where the host is an address or one label."""
    HOST = "host"
    ORIGIN = "origin"
    ANY = "any"


Pattern = Annotated[str, Meta(min_length=1, max_length=2000)]


class ScopeSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which URLs belong to the crawl."""

    strategy: Annotated[
        Strategy,
        Meta(description="How far around each seed: its registrable `domain`, `host` or `origin`, or `any` URL."),
    ] = Strategy.DOMAIN
    include: Annotated[
        tuple[Pattern, ...],
        Meta(
            description="RE2 patterns, or globs behind `glob:`; below the seeds only URLs that fit one are crawled."
        ),
    ] = ()
    exclude: Annotated[
        tuple[Pattern, ...],
        Meta(
            description="RE2 patterns, or globs behind `glob:`; URLs that fit one are never crawled, seeds included."
        ),
    ] = ()
    max_depth: Annotated[
        int, Meta(description="Links followed from a seed; 0 fetches the seeds alone.", ge=0, le=1_000_000)
    ] = 20
    max_path_depth: Annotated[
        int, Meta(description="Segments in the path of a URL that was found by a link.", ge=0, le=10_000)
    ] = 20
    max_params: Annotated[
        int, Meta(description="Query parameters of a URL that was found by a link.", ge=0, le=10_000)
    ] = 20
    max_url_length: Annotated[
        int, Meta(description="Characters in a URL that was found by a link.", ge=16, le=65_536)
    ] = 2083
    hosts_per_domain: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Hosts of one registrable domain; URLs of further ones are refused, seeds' hosts apart."),
    ] = 5_000
    hosts_per_address: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Hosts at one address; further ones are not visited, seeds' hosts apart."),
    ] = 20_000
    max_hops: Annotated[int, Meta(description="Redirects in a row that are followed.", ge=0, le=100)] = 10
    path_repeat: Annotated[
        int,
        Meta(description="How often one segment may stand in a path before it looks like a loop.", ge=1, le=10_000),
    ] = 3
    nofollow: Annotated[
        bool,
        Meta(
            description="Refuse links marked rel=nofollow; off, since the mark speaks of endorsement, not of access."
        ),
    ] = False


class _Stored(Struct, frozen=True, forbid_unknown_fields=True):
    """What a crawl keeps of its scope: where it started, from which the roots follow under any strategy."""

    seeds: list[tuple[str, str]]
    """Host and origin of each."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The settings, applied to a set of seeds."""

    settings: ScopeSettings
    _seeds: frozenset[tuple[str, str]]
    _roots: frozenset[str]
    _hosts: frozenset[str]
    _include: Patterns
    _exclude: Patterns
    _ignored: tuple[str, ...] = ()
    _verdicts: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, settings: ScopeSettings, seeds: Sequence[Address]) -> Scope:
        """The scope around these seeds; raises `ConfigError` for a pattern that cannot be read."""
        return cls._around(settings, frozenset(map(_place, seeds)))

    @classmethod
    def restore(cls, settings: ScopeSettings, roots: str | None) -> Scope:
        """The scope of a stored crawl, as grown, under the settings of now; raises `StoreDamaged`, `ConfigError`.

        None is the scope of a crawl that has no seed yet.
        """
        if roots is None:
            return cls.of(settings, ())
        try:
            stored = msgspec.json.decode(roots, type=_Stored)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise StoreDamaged(f"the stored scope cannot be read: {error}") from error
        return cls._around(settings, frozenset(stored.seeds))

    @classmethod
    def _around(
        cls, settings: ScopeSettings, seeds: frozenset[tuple[str, str]], ignored: tuple[str, ...] = ()
    ) -> Scope:
        return cls(
            settings,
            seeds,
            frozenset(_root(settings.strategy, host, origin) for host, origin in seeds),
            frozenset(_bare(host) for host, _ in seeds),
            Patterns.of(settings.include, "scope.include"),
            _unwanted(settings, ignored),
            ignored,
        )

    @property
    def roots(self) -> str:
        """JSON text from which `restore` makes this scope again; equal scopes give equal texts."""
        return msgspec.json.encode(_Stored(sorted(self._seeds))).decode()

    def as_kept(self, roots: str | None) -> Scope:
        """The scope around the seeds that these roots tell of, all else as here; raises `StoreDamaged`."""
        if roots is None or roots == self.roots:
            return self
        return Scope.restore(self.settings, roots).ignoring(self._ignored)

    def widen(self, *addresses: Address) -> Scope:
        """The scope with these as further seeds: a seed that moved for good, or seeds that came later."""
        seeds = self._seeds.union(map(_place, addresses))
        return self if seeds == self._seeds else self._around(self.settings, seeds, self._ignored)

    def ignoring(self, patterns: Sequence[str]) -> Scope:
        """The scope that excludes what fits these too, in the place of those ignored before; raises `ConfigError`."""
        ignored = tuple(patterns)
        if ignored == self._ignored:
            return self
        return replace(self, _exclude=_unwanted(self.settings, ignored), _ignored=ignored)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Patterns that it excludes for a while, beside those of the settings."""
        return self._ignored

    def is_seed_host(self, address: Address) -> bool:
        """Whether the host is a seed's own, a leading `www.` apart: its pages are what the crawl is for."""
        return _bare(address.host) in self._hosts

    def judge(
        self, address: Address, *, depth: int, hops: int, relation: Relation, nofollow: bool = False
    ) -> Reason | None:
        """Why this link is refused; None when it is in scope.

        `depth` counts links from a seed, `hops` redirects in a row that led here. A sitemap file is as near as what a
        seed links to, however many files lie above it. What belongs to a page is where the page is, on whatever host.
        Includes speak of pages, and of neither.
        """
        settings = self.settings
        if relation is not _HYPERLINK:  # as most links are
            if relation is Relation.SITEMAP_FILE:
                depth = 1
            elif relation in BELONGINGS:
                depth = 0
        refusal = self._judge_place(address, depth, relation)
        if refusal is None and relation is not _SEED and not _is_short_and_flat(address, settings):
            refusal = _judge_shape(address, settings)
        if refusal is not None:
            return refusal
        if nofollow and settings.nofollow:
            return Reason.NOFOLLOW
        if depth > settings.max_depth:
            return Reason.DEPTH
        return Reason.REDIRECT_CHAIN if hops > settings.max_hops else None

    def _judge_place(self, address: Address, depth: int, relation: Relation) -> Reason | None:
        if (relation is _HYPERLINK or relation not in BELONGINGS) and not self._holds(address):
            return Reason.OUT_OF_SCOPE
        if self._exclude.texts and self._exclude.match(address.canonical):
            return Reason.EXCLUDED
        if self._include.texts and depth > 0 and relation is not Relation.SITEMAP_FILE:
            return None if self._include.match(address.canonical) else Reason.NOT_INCLUDED
        return None

    def _holds(self, address: Address) -> bool:
        strategy = self.settings.strategy
        if strategy == Strategy.ANY:
            return True
        url = address.fetch_url
        end = url.find("/", _FIRST_SLASH)
        head = url if end < 0 else url[:end]
        verdict = self._verdicts.get(head)
        if verdict is None:
            if len(self._verdicts) >= _REMEMBERED:
                self._verdicts.clear()
            verdict = _root(strategy, address.host, origin_of(url)) in self._roots
            self._verdicts[head] = verdict
        return verdict


def _unwanted(settings: ScopeSettings, ignored: tuple[str, ...]) -> Patterns:
    exclude = Patterns.of(settings.exclude, "scope.exclude")
    if not ignored:
        return exclude
    Patterns.of(ignored, "ignore")  # says which one is wrong, under the name that people know
    return Patterns.of((*settings.exclude, *ignored), "scope.exclude and ignore")


def _place(address: Address) -> tuple[str, str]:
    return address.host, origin_of(address.fetch_url)


def _bare(host: str) -> str:
    return host.removeprefix("www.")


def _root(strategy: Strategy, host: str, origin: str) -> str:
    """What a URL shares with a seed exactly when it belongs to it. An origin has `://`, so kinds never mix."""
    match strategy:
        case Strategy.DOMAIN:
            name = host_name(host)
            if is_address(name) or "." not in name.rstrip("."):
                return origin
            return registrable_domain(name)
        case Strategy.HOST | Strategy.ANY:
            return host
        case Strategy.ORIGIN:
            return origin
        case _ as unknown:
            assert_never(unknown)


def _is_short_and_flat(address: Address, settings: ScopeSettings) -> bool:
    """Whether counting alone shows that `_judge_shape` finds nothing; three slashes are none of the path's."""
    canonical = address.canonical
    return (
        canonical.count("/") - 3 < min(settings.max_path_depth, settings.path_repeat)
        and canonical.count("&") < settings.max_params
        and len(canonical) <= settings.max_url_length
        and len(address.fetch_url) <= settings.max_url_length
    )


def _judge_shape(address: Address, settings: ScopeSettings) -> Reason | None:
    """The limits that end what a server could make up without end: longer, deeper, more of the same."""
    canonical = address.canonical
    if max(len(canonical), len(address.fetch_url)) > settings.max_url_length:
        return Reason.URL_LENGTH
    before, _, query = canonical.partition("?")
    if query and query.count("&") >= settings.max_params:
        return Reason.PARAM_LIMIT
    path = before.partition("://")[2].partition("/")[2].removesuffix("/")
    slashes = path.count("/")
    if path and slashes >= settings.max_path_depth:
        return Reason.PATH_DEPTH
    # Fewer segments than may repeat need no counting: nearly every URL.
    if slashes >= settings.path_repeat and max(Counter(path.split("/")).values()) > settings.path_repeat:
        return Reason.PATH_REPEAT
    return None
