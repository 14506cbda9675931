"""Two clocks, a worker's own and that of the store: what one says, in the words of the other."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from crawlspace.types import Lease, Released, Rerouted, RetryAt, Settlement


class Time(Struct, frozen=True):
    """When a call happens by the store's clock, and how far that is ahead of the worker's: at least and at most."""

    now: int
    least: int = 0
    most: int = 0
    rests: bool = False
    """Nobody is to lease anything for now."""


def ours(settlement: Settlement, time: Time) -> Settlement:
    """A settlement with its times by the store's clock, rather later than earlier."""
    if time.most == 0:
        return settlement
    if isinstance(settlement, RetryAt | Rerouted):
        return replace(settlement, due=settlement.due + time.most)
    if isinstance(settlement, Released):
        pace = replace(settlement.pace, next_at=settlement.pace.next_at + time.most)
        group_next_at = settlement.group_next_at and settlement.group_next_at + time.most
        return replace(settlement, pace=pace, group_next_at=group_next_at)
    return settlement


def theirs(lease: Lease, time: Time) -> Lease:
    """A lease with its times by the worker's clock, rather later than earlier."""
    if time.least == 0:
        return lease
    pace = replace(lease.host.pace, next_at=lease.host.pace.next_at - time.least)
    return replace(lease, host=replace(lease.host, pace=pace), until=lease.until - time.least)
