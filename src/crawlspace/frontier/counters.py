"""What a crawl counts beside its URLs' states, and how one transaction moves a host's counters."""

from __future__ import annotations

from dataclasses import dataclass

from crawlspace.frontier.settings import CLASSES
from crawlspace.states import UrlState

PAGES = "pages"
FETCHES = "fetches"
BYTES = "bytes"
DUPLICATES = "duplicates"
HOSTS = "hosts"
REFUSED_BEYOND_CAP = "refused_beyond_cap"

STATE_NAMES = {state: state.name.lower() for state in UrlState}


@dataclass(slots=True)
class HostDelta:
    """How one host's counters move. `queued` counts rows in the queue, leased ones included."""

    seed: int = 0
    met: int = 0
    best_class: int = CLASSES - 1
    """Best class among the rows that join the queue."""
    queued: int = 0
    leased: int = 0
    delayed: int = 0
    fetched: int = 0
    done: int = 0
    dead: int = 0
    discovered: int = 0
    duplicates: int = 0

    def join(self, front_class: int) -> None:
        """One row more in the queue."""
        self.queued += 1
        self.best_class = min(self.best_class, front_class)
