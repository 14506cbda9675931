"""How many hosts a domain has, and how many it may have more: the reckoning that all stores share."""

from __future__ import annotations

from dataclasses import dataclass

from crawlspace.frontier.settings import FrontierSettings

FREED_AT_ONCE = 500
"""Hosts that one call looks at when an address may have more."""

Place = tuple[str, int]
"""Where hosts that rest are looked at: behind this address and number."""
FIRST: Place = ("", 0)


@dataclass(slots=True)
class Crowd:
    """The hosts of one domain, as a batch finds them and as it goes on."""

    hosts: int = 0
    """Those that were queued at least once."""
    refused: int = 0
    """Those that are known although they were refused for the number of hosts."""
    more_hosts: int = 0
    more_refused: int = 0

    def has_room(self, settings: FrontierSettings) -> bool:
        """Whether it may have one host more."""
        limit = settings.hosts_per_domain
        return limit is None or self.hosts + self.more_hosts < limit

    def keeps(self, settings: FrontierSettings) -> bool:
        """Whether one more host without room is to be known; whoever is told so makes it known."""
        if self.refused + self.more_refused >= settings.refusals_kept:
            return False
        self.more_refused += 1
        return True

    @property
    def has_grown(self) -> bool:
        return bool(self.more_hosts or self.more_refused)
