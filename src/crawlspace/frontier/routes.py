"""What routes cost and bring: counted from settlements, the same for every store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from crawlspace.policy.outcome import BLOCKED
from crawlspace.types import Died, Finished, Refused, Released, Rerouted, Settlement, Unchanged


@dataclass(slots=True)
class Delta:
    """How the figures of one route move."""

    requests: int = 0
    pages: int = 0
    blocked: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Used:
    """The figures of routes that one batch of settlements moves. Pages that came by plain HTTP cost nothing here."""

    by_route: dict[str, Delta] = field(default_factory=dict)

    def count(self, settlement: Settlement) -> None:
        """Count one request that was made."""
        if isinstance(settlement, Refused | Released):
            return
        evidence = settlement.evidence
        if not evidence.route and evidence.error != BLOCKED:
            return
        delta = self.by_route.setdefault(evidence.route, Delta())
        delta.requests += 1
        delta.bytes += evidence.size
        delta.pages += isinstance(settlement, Finished | Unchanged)
        delta.blocked += isinstance(settlement, Rerouted | Died) and evidence.error == BLOCKED

    def rows(self) -> Iterator[tuple[str, int, int, int, int]]:
        """Name, requests, pages, blocked, bytes: by name, so that no two writers wait for each other in a circle."""
        for name, delta in sorted(self.by_route.items()):
            yield name, delta.requests, delta.pages, delta.blocked, delta.bytes
