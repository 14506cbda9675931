"""Routes: other ways to ask for a page that plain HTTP is kept from, and the rules by which a URL goes on them.

A route is a name and a kind: another HTTP client of our own (with its own proxies, cookies or log-in), a client that
looks like a browser's, a browser, or a service somewhere that fetches for us. Each has its own budget and its own
tries. A URL that is blocked leaves the way it was on, which is no try of that way, and goes on by the next route that
its rule names and that it was not on yet; so a URL goes round no more often than there are routes. Behind the last
one it is a dead letter of class `blocked`.

Robots rules, scope, pace and the address guard hold on every route: a route changes who asks and how, never what or
how often.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum, unique
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from crawlspace.errors import ConfigError
from crawlspace.policy.patterns import Patterns
from crawlspace.policy.signatures import SIGNATURES

PLAIN = ""
"""The name of the way that every URL takes first."""

ROUTE_NAME = r"^[a-z][a-z0-9_-]{0,30}$"
_Name = Annotated[str, Meta(pattern=ROUTE_NAME, description="Name of a route.")]
_Pattern = Annotated[str, Meta(min_length=1, max_length=2000)]
LONGEST = 100.0
"""Seconds that a request on a route may take: a host's lease, which has to outlast it, holds for 120."""


class RouteBase(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    """What every route has."""

    requests: Annotated[int, Meta(ge=0)] | None = None
    """Requests that may go by it in the whole crawl; None: any number."""
    attempts: Annotated[int, Meta(ge=1, le=20)] = 2
    """Requests for one URL on it, where they fail for now."""
    timeout: Annotated[float, Meta(gt=0, le=LONGEST)] | None = None
    """Seconds from the start of a request to its last byte; None: as `fetch.timeout`."""

    def seconds(self, usual: float) -> float:
        """How long a request on it may take."""
        return usual if self.timeout is None else self.timeout


@unique
class When(StrEnum):
    """When a rule sends a URL on its routes."""

    BLOCKED = "blocked"
    """After it was blocked."""
    ALWAYS = "always"
    """At once, by the first of them."""


class RoutingRule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which URLs go by which routes. What is not said fits everything."""

    url: _Pattern | None = None
    """Their addresses: RE2, or a glob behind `glob:`."""
    signatures: tuple[Annotated[str, Meta(max_length=100)], ...] = ()
    """By what they are known to be blocked."""
    routes: tuple[_Name, ...]
    """In this order."""
    when: When = When.BLOCKED


class SignatureRule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """By what pages of a site are known that only keep us out. What is said must all fit."""

    id: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,60}$")]
    """The name under which it is told, and by which rules ask for it."""
    url: _Pattern | None = None
    """Addresses of the pages that are looked at: RE2, or a glob behind `glob:`."""
    statuses: tuple[Annotated[int, Meta(ge=100, le=999)], ...] = ()
    header: Annotated[str, Meta(max_length=1000)] = ""
    """A field and what its value contains: `x-shield: denied`."""
    title: Annotated[str, Meta(max_length=1000)] = ""
    """The whole title, whatever its case."""
    body: Annotated[str, Meta(max_length=1000)] = ""
    """Text of the page's first 64 KiB, whatever its case (of ASCII letters)."""
    sort: Literal["challenge", "captcha", "wall", "rate_limit"] = "wall"

    def __post_init__(self) -> None:
        if not (self.statuses or self.header or self.title or self.body):
            raise ValueError(
                f"{self.id} says nothing by which a page would be known: statuses, header, title or body"
            )


class RoutingSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What becomes of blocked pages."""

    detect: Annotated[
        bool, Meta(description="Tell pages that only keep us out (challenges, captchas, walls) from pages.")
    ] = True
    signatures: Annotated[
        tuple[SignatureRule, ...],
        Meta(
            description="Tables with `id` and `statuses`, `header`, `title`, `body` or `url`: by what further such "
            "pages are known."
        ),
    ] = ()
    ignore: Annotated[
        tuple[Annotated[str, Meta(max_length=100)], ...],
        Meta(description="Signatures of the built-in table that are not looked for, by their id."),
    ] = ()
    order: Annotated[
        tuple[_Name, ...],
        Meta(
            description="Routes that a blocked URL goes by, in this order, where no rule fits; names of [routes.*]."
        ),
    ] = ()
    rules: Annotated[
        tuple[RoutingRule, ...],
        Meta(
            description="Tables with `routes`, and `url`, `signatures` or `when` (`blocked`, or `always`: at once); "
            "the first that fits counts."
        ),
    ] = ()


class _Rule(Struct, frozen=True):
    patterns: Patterns | None
    rule: RoutingRule

    def fits(self, url: str) -> bool:
        return self.patterns is None or self.patterns.match(url)


class Routing(Struct, frozen=True):
    """The rules, applied to URLs."""

    settings: RoutingSettings
    routes: Mapping[str, RouteBase] = field(default_factory=dict)
    _rules: tuple[_Rule, ...] = ()

    @classmethod
    def of(cls, settings: RoutingSettings, routes: Mapping[str, RouteBase]) -> Routing:
        """Raises `ConfigError` for a name of nothing: a route, a signature; and for a pattern that cannot be read."""
        _require(settings.order, routes, "routing.order")
        known = [each.id for each in SIGNATURES]
        _require_signatures(settings.ignore, known, "routing.ignore")
        known += [each.id for each in settings.signatures]
        rules = []
        for number, rule in enumerate(settings.rules, 1):
            where = f"routing.rules, rule {number}"
            if not rule.routes:
                raise ConfigError(f"{where}: it names no route")
            _require(rule.routes, routes, where)
            _require_signatures(rule.signatures, known, where)
            rules.append(_Rule(None if rule.url is None else Patterns.of((rule.url,), where), rule))
        return cls(settings, routes, tuple(rules))

    def first(self, url: str) -> str:
        """The route that a URL takes although nothing has blocked it yet; empty for plain HTTP."""
        for each in self._rules:
            if each.rule.when == When.ALWAYS and each.fits(url):
                return each.rule.routes[0]
        return PLAIN

    def onward(self, url: str, gone: tuple[str, ...], signature: str = "") -> Iterator[str]:
        """The routes that are left for a URL that was on these and is blocked, in order."""
        return (name for name in self._order(url, signature) if name in self.routes and name not in gone)

    def _order(self, url: str, signature: str) -> tuple[str, ...]:
        for each in self._rules:
            known = not each.rule.signatures or signature in each.rule.signatures
            if known and each.fits(url):
                return each.rule.routes
        return self.settings.order


def _require(names: tuple[str, ...], routes: Mapping[str, RouteBase], where: str) -> None:
    for name in names:
        if name not in routes:
            known = ", ".join(sorted(routes)) or "none yet"
            raise ConfigError(f"{where}: there is no route {name!r}", hint=f"set routes.{name}.kind; routes: {known}")


def _require_signatures(names: tuple[str, ...], known: Sequence[str], where: str) -> None:
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"signatures: {', '.join(known)}"
            raise ConfigError(f"{where}: there is no signature {name!r}", hint=hint)
