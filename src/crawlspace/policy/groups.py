"""Pace groups: hosts that share one clock, because they share a machine, an owner, or a rule that a person wrote.

By default every host has a clock of its own. Where hosts are grouped, no request to one of a group starts sooner
than the group's delay after another, and no more hosts of it are visited at once than its concurrency says; each
host's own delay holds beside that. A host belongs to one group at most: that of the first rule that fits its name,
else its registrable domain or its address.

What the store counts for its caps has names of the same kinds, so that a domain and an address are never mixed up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum, unique
from functools import lru_cache
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from crawlspace.policy.patterns import Patterns
from crawlspace.urls import host_name, is_address, registrable_domain

_REMEMBERED = 16_384
"""Hosts whose rule is kept at hand; what is forgotten is looked up again."""

_Delay = Annotated[float, Meta(ge=0, le=86_400)]
_Concurrency = Annotated[int, Meta(ge=1, le=10_000)]


@unique
class GroupBy(StrEnum):
    """What makes hosts one group."""

    NONE = "none"
    DOMAIN = "domain"
    """The registrable domain; a host that is an address, or one label, is its own."""
    ADDRESS = "address"
    """The address that the host's name resolves to, the lowest where there are several."""


class GroupRule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Hosts that are one group because their names fit a pattern."""

    host: Annotated[
        str,
        Meta(min_length=1, max_length=2000, description="Names of the hosts: RE2, or a glob behind `glob:`."),
    ]
    delay: _Delay = 1.0
    concurrency: _Concurrency = 1


class GroupSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Hosts that share a clock beside their own."""

    by: Annotated[
        GroupBy,
        Meta(description="Hosts share a clock by registrable `domain`, by `address`, or not at all (`none`)."),
    ] = GroupBy.NONE
    delay: Annotated[
        _Delay, Meta(description="Seconds from the start of a request to a group to the start of the next.")
    ] = 1.0
    concurrency: Annotated[_Concurrency, Meta(description="Hosts of one group that are visited at once.")] = 1
    rules: Annotated[
        tuple[GroupRule, ...],
        Meta(
            description="Tables with `host`, `delay` and `concurrency`; the hosts that fit one are a group, "
            "whatever `by` says. The first that fits counts."
        ),
    ] = ()


class PaceGroup(NamedTuple):
    """A group, and what it asks for."""

    name: str
    """For people too: `domain example.com`, `address 192.0.2.7` or `rule glob:*.example.com`."""
    delay_ms: int
    concurrency: int


@dataclass(slots=True)
class Grouping:
    """The settings, applied to hosts."""

    settings: GroupSettings
    _rules: tuple[tuple[Patterns, PaceGroup], ...]
    _known: dict[str, PaceGroup | None] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: GroupSettings) -> Grouping:
        """Raises `ConfigError` for a pattern that cannot be read."""
        rules = [
            (
                Patterns.of((rule.host,), f"group.rules, rule {n}"),
                PaceGroup(f"rule {rule.host}", round(rule.delay * 1000), rule.concurrency),
            )
            for n, rule in enumerate(settings.rules, 1)
        ]
        return cls(settings, tuple(rules))

    def group(self, host: str, address: str | None) -> PaceGroup | None:
        """The group of a host, whose address is None until it is known; None when it shares its clock with nobody."""
        if self.settings.by == GroupBy.ADDRESS:
            return self._by_rule(host) or (None if address is None else self._named(address_name(address)))
        return self._by_rule(host) or (self._named(domain_name(host)) if self.settings.by == GroupBy.DOMAIN else None)

    @property
    def is_off(self) -> bool:
        """Whether no host can be in a group."""
        return self.settings.by == GroupBy.NONE and not self._rules

    def wants_address(self, host: str) -> bool:
        """Whether the group of this host cannot be told without its address."""
        return self.settings.by == GroupBy.ADDRESS and self._by_rule(host) is None

    def named(self, name: str) -> PaceGroup | None:
        """The group of this name under the settings of now; None when they make none of its kind."""
        for _, group in self._rules:
            if group.name == name:
                return group
        kind = self.settings.by
        return self._named(name) if kind != GroupBy.NONE and name.startswith(f"{kind} ") else None

    def _named(self, name: str) -> PaceGroup:
        return PaceGroup(name, round(self.settings.delay * 1000), self.settings.concurrency)

    def _by_rule(self, host: str) -> PaceGroup | None:
        if not self._rules:
            return None
        if host not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[host] = next((group for patterns, group in self._rules if patterns.match(host)), None)
        return self._known[host]


@lru_cache(maxsize=_REMEMBERED)
def domain_name(host: str) -> str:
    """The name under which a host's domain is counted and paced."""
    name = host_name(host)
    return f"domain {host if is_address(name) or '.' not in name else registrable_domain(name)}"


def address_name(address: str) -> str:
    """The name under which an address is counted and paced."""
    return f"address {address}"
