"""A frontier made of a few dicts: the oracle for random sequences, never a backend.

It says what each answer must be. Which due hosts a lease picks is the store's choice; the model checks that the
choice was allowed, that the URLs were the host's best, and takes it over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.states import UrlState
from crawlspace.types import (
    PATH_DEPENDENT,
    Answer,
    Claim,
    Claimed,
    Died,
    Finished,
    Lease,
    Moved,
    ProcessingFailed,
    Reason,
    Refused,
    Released,
    RetryAt,
    Settlement,
    WasRedirect,
    Wish,
)

ENDS = {
    Finished: UrlState.DONE,
    ProcessingFailed: UrlState.STORED,
    WasRedirect: UrlState.REDIRECTED,
    Refused: UrlState.SKIPPED,
    Died: UrlState.DEAD,
}


@dataclass
class Url:
    id: int
    host: int
    front_class: int
    depth: int
    state: UrlState = UrlState.QUEUED
    attempts: int = 0
    suspect: int = 0
    due: int | None = None
    settled: int | None = None
    """The last lease that ended it or sent it back."""
    reason: str | None = None


@dataclass
class Host:
    seed: bool = False
    token: int | None = None
    until: int = 0
    next_at: int = 0
    delay: int = 1_000
    fetched: int = 0
    released: int | None = None
    held: set[bytes] = field(default_factory=set)


class Model:
    """All that a frontier knows."""

    def __init__(self, settings: FrontierSettings) -> None:
        self.settings = settings
        self.urls: dict[bytes, Url] = {}
        self.hosts: dict[int, Host] = {}
        self.beyond = 0
        self.token = 0

    def states(self) -> dict[UrlState, int]:
        counted = Counter(url.state for url in self.urls.values())
        return {state: counted[state] for state in UrlState}

    # -- claims ---------------------------------------------------------------------------------------------

    def claim(self, claim: Claim, hid: int) -> Claimed:
        host = self.hosts.setdefault(hid, Host())
        host.seed |= claim.seed_host
        url = self.urls.get(claim.address.key)
        if url is not None:
            self._repeat(url, claim)
            return Claimed.KNOWN
        reason = claim.refusal or (Reason.HOST_BUDGET if self._full(hid) else None)
        if reason is not None and self._refused(hid, reason) >= self.settings.refusals_kept:
            self.beyond += 1
            return Claimed.OVER_BUDGET
        url = self.urls[claim.address.key] = Url(len(self.urls) + 1, hid, claim.front_class, claim.depth)
        if reason is not None:
            url.state, url.reason = UrlState.SKIPPED, reason
        return Claimed.NEW

    def _repeat(self, url: Url, claim: Claim) -> None:
        if claim.refusal is not None:
            return
        if url.state is UrlState.QUEUED:
            url.front_class = min(url.front_class, claim.front_class)
            url.depth = min(url.depth, claim.depth)
        elif url.state is UrlState.SKIPPED and url.reason in PATH_DEPENDENT and not self._full(url.host):
            fresh = Url(url.id, url.host, claim.front_class, claim.depth, settled=url.settled)
            self.urls[claim.address.key] = fresh

    def _full(self, hid: int) -> bool:
        limit = self.settings.queue_per_host
        waiting = sum(
            url.host == hid and url.state in (UrlState.QUEUED, UrlState.LEASED) for url in self.urls.values()
        )
        return limit is not None and not self.hosts[hid].seed and waiting >= limit

    def _refused(self, hid: int, reason: str) -> int:
        return sum(
            url.host == hid and url.state is UrlState.SKIPPED and url.reason == reason for url in self.urls.values()
        )

    # -- leases ---------------------------------------------------------------------------------------------

    def left(self, host: Host) -> int:
        budget = self.settings.pages(host.seed)
        return 1_000 if budget is None else budget - host.fetched

    def due(self, now: int) -> dict[int, list[bytes]]:
        """Hosts that may be leased now, with their queues in order."""
        queues: dict[int, list[bytes]] = {}
        for key, url in self.urls.items():
            if url.state is UrlState.QUEUED and (url.due is None or url.due <= now):
                queues.setdefault(url.host, []).append(key)
        for queue in queues.values():
            queue.sort(key=lambda key: (self.urls[key].front_class, self.urls[key].id))
        return {
            hid: queue
            for hid, queue in queues.items()
            if self.hosts[hid].token is None and self.hosts[hid].next_at <= now and self.left(self.hosts[hid]) > 0
        }

    def leased(self, leases: Sequence[Lease], wish: Wish, now: int) -> None:
        """Check what `lease` gave, and take it over."""
        due = self.due(now)
        assert len(leases) == min(wish.hosts, len(due))
        for url in self.urls.values():
            if url.due is not None and url.due <= now:
                url.due = None
        for lease in leases:
            host = self.hosts[lease.host.hid]
            expected = self._best(due.pop(lease.host.hid), host, wish)
            assert [url.key for url in lease.urls] == expected
            assert lease.token > self.token, "tokens increase"
            self.token = host.token = lease.token
            host.until, host.held = now + wish.ttl_ms, set(expected)
            assert (lease.until, lease.host.fetched) == (host.until, host.fetched)
            for given in lease.urls:
                url = self.urls[given.key]
                told = (given.id, given.front_class, given.depth, given.attempts, given.suspect)
                assert told == (url.id, url.front_class, url.depth, url.attempts, url.suspect)
                url.state = UrlState.LEASED

    def _best(self, queue: list[bytes], host: Host, wish: Wish) -> list[bytes]:
        fit = min(wish.urls_per_host, self.left(host), max(1, wish.visit_ms // max(1, host.delay)))
        best = queue[:fit]
        if self.urls[best[0]].suspect:
            return best[:1]
        return best[: next((at for at, key in enumerate(best) if self.urls[key].suspect), len(best))]

    def lose(self, hids: list[int], now: int) -> None:
        """Leases that are lost together blame none of their URLs."""
        for hid in hids:
            self._lose(hid, now, alone=len(hids) == 1)

    def _lose(self, hid: int, now: int, *, alone: bool) -> None:
        host = self.hosts[hid]
        for key in host.held:
            url = self.urls[key]
            if url.state is UrlState.LEASED:
                url.suspect = url.suspect + 1 if alone else max(url.suspect, 1)
                url.state = UrlState.QUEUED
                if url.suspect >= 4:
                    url.state, url.reason, url.settled = UrlState.DEAD, "crashes_worker", None
        host.token, host.held = None, set()
        host.next_at = max(host.next_at, now + host.delay)

    def expired(self, now: int) -> list[int]:
        return [hid for hid, host in self.hosts.items() if host.token is not None and host.until <= now]

    # -- settlements ----------------------------------------------------------------------------------------

    def settle(self, settlement: Settlement) -> Answer:
        host = self.hosts[settlement.hid]
        if isinstance(settlement, Released):
            return self._release(settlement, host)
        url = self.urls[settlement.url.key]
        if settlement.token != host.token or url.state is not UrlState.LEASED:
            return Answer.ALREADY if url.settled == settlement.token else Answer.STALE
        url.settled = settlement.token
        host.fetched += not isinstance(settlement, Refused)
        if isinstance(settlement, RetryAt):
            url.state, url.due, url.attempts = UrlState.QUEUED, settlement.due, url.attempts + 1
        elif isinstance(settlement, Moved):
            url.state = UrlState.QUEUED
        else:
            url.state = ENDS[type(settlement)]
            url.reason = settlement.reason if isinstance(settlement, Refused) else None
        return Answer.SETTLED

    def _release(self, settlement: Released, host: Host) -> Answer:
        if settlement.token != host.token:
            return Answer.ALREADY if settlement.token == host.released else Answer.STALE
        for url in self.urls.values():
            if url.host != settlement.hid:
                continue
            if url.state is UrlState.LEASED:
                url.state = UrlState.QUEUED
            if url.state is UrlState.QUEUED and settlement.condemned:
                url.state, url.due, url.settled = UrlState.DEAD, None, None
        host.token, host.released, host.held = None, settlement.token, set()
        host.next_at, host.delay = settlement.pace.next_at, settlement.pace.delay_ms
        return Answer.SETTLED

    def revive(self, numbers: Sequence[int]) -> int:
        revived = 0
        for url in self.urls.values():
            if url.id in numbers and url.state is UrlState.DEAD:
                url.state, url.attempts, url.suspect = UrlState.QUEUED, 0, 0
                revived += 1
        return revived
