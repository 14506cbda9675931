"""What can be set about a frontier, whatever database it lives in."""

from __future__ import annotations

from enum import StrEnum, unique
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Meta

from crawlspace.content.simhash import SimHashSettings
from crawlspace.policy.groups import Grouping, GroupSettings
from crawlspace.policy.traps import TrapSettings

CLASSES = 10
"""Front classes: 0 leaves first."""


_Count = Annotated[int, Meta(ge=0)]


@unique
class Durability(StrEnum):
    """What a power cut may take; a killed process never loses anything that was answered."""

    NORMAL = "normal"
    FULL = "full"


class StoreSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a person may set about the store itself."""

    queue_per_host: Annotated[
        _Count | None, Meta(description="URLs waiting at a host that is no seed's; further ones are refused.")
    ] = 100_000
    refusals_kept: Annotated[
        int, Meta(ge=0, description="Refused URLs kept for each host and reason; further ones are only counted.")
    ] = 100
    class_quotas: Annotated[
        tuple[Annotated[int, Meta(ge=1)], ...],
        Meta(
            min_length=CLASSES,
            max_length=CLASSES,
            description="Of 100 hosts leased, how many go to each front class before the rest goes by class alone.",
        ),
    ] = (14, 12, 10, 8, 7, 6, 5, 4, 3, 2)
    cache_mb: Annotated[int, Meta(ge=1, le=65_536, description="Mebibytes of memory for the store's pages.")] = 64
    durability: Annotated[
        Durability,
        Meta(description="normal: a power cut may undo the last seconds, which are then fetched again; full: never."),
    ] = Durability.NORMAL

    def __post_init__(self) -> None:
        if sum(self.class_quotas) > 100:
            raise ValueError(f"class_quotas add up to {sum(self.class_quotas)}, at most 100 are there to give")


class FrontierSettings(StoreSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Limits and weights of the frontier: the store's own, with the budgets and the pace that hosts begin with."""

    pages_per_host: _Count | None = 10_000
    """Requests for a host that is no seed's; then it is parked. None: no limit."""
    pages_per_seed_host: _Count | None = None
    """Requests for a host of a seed; then it is parked. None: no limit."""
    delay_ms: int = 1000
    """Milliseconds between requests to a host that was never visited."""
    hosts_per_domain: _Count | None = None
    """Hosts of one registrable domain, those of seeds apart; further ones are refused. None: no limit."""
    hosts_per_address: _Count | None = None
    """Hosts at one address, those of seeds apart; further ones are parked. None: no limit."""
    group: GroupSettings = msgspec.field(default_factory=GroupSettings)
    """Hosts that share a clock."""
    near_distance: Annotated[int, Meta(ge=1, le=7)] = SimHashSettings().distance
    """Bits in which the SimHash of near-duplicates may differ."""
    traps: TrapSettings = msgspec.field(default_factory=TrapSettings)
    """When addresses of one shape are slowed, and refused."""
    revisits: bool = False
    """Whether URLs whose next visit is due are queued again."""
    waits_for_visits: bool = False
    """Whether a crawl with nothing else to do waits for the next visit that comes due."""

    def pages(self, seed: bool) -> int | None:
        """The page budget of a host."""
        return self.pages_per_seed_host if seed else self.pages_per_host

    def grouping(self) -> Grouping:
        """The pace groups of hosts; raises `ConfigError` for a pattern that cannot be read."""
        return _grouping(self.group)


@lru_cache(maxsize=16)
def _grouping(settings: GroupSettings) -> Grouping:
    return Grouping.of(settings)
