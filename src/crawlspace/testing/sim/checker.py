"""Holds every answer of the store against the invariants while the simulation runs.

It knows the store's rules in its own words: a dictionary of leases and a few counters, fed with nothing but calls and
answers. What a transaction must leave behind is read from the tables themselves.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from crawlspace.states import UrlState
from crawlspace.testing.frontier_contract_audit import audit
from crawlspace.testing.sim.manners import Holder, Manners
from crawlspace.testing.sim.verdict import Verdict
from crawlspace.testing.sim.web import Answer, Host, Kind
from crawlspace.types import (
    Answer as Settled,
)
from crawlspace.types import (
    Claimed,
    Finished,
    Lease,
    ProcessingFailed,
    Refused,
    Released,
    Settlement,
    WasRedirect,
    host_id,
)

if TYPE_CHECKING:
    from crawlspace.testing.sim.worker import Worker
    from crawlspace.testing.sim.world import World

UNAWARE = 40.0
"""Seconds after which a worker has asked for its leases again, and knows which are lost."""
IDLE_VISITS = IDLE_ASKS = 30
AUDIT_EVERY = 40
"""Answers between two recounts of all tables."""
_STATES = ", ".join(f"'{state.name.lower()}'" for state in UrlState)
_SUMS = f"SELECT (SELECT sum(n) FROM tally WHERE name IN ({_STATES})), (SELECT count(*) FROM seen)"  # noqa: S608 -- names of states
_OUTCOMES = "SELECT id, state FROM outcome"
_FIGURES = """
  SELECT name, n FROM tally WHERE name <> 'refused_beyond_cap'
  UNION ALL SELECT 'rows', count(*) FROM queue
  UNION ALL SELECT 'ends', count(*) FROM outcome
"""
_BEYOND = "SELECT n FROM tally WHERE name = 'refused_beyond_cap'"
_OVERDUE = "SELECT count(*), min(due_at) FROM delayed WHERE due_at <= ?"


class Repeated(NamedTuple):
    """A call that was made twice, with both answers."""

    name: str
    claims: int
    """Links that it tells of."""
    first: Sequence[Any]
    second: Sequence[Any]


@dataclass(slots=True)
class Held:
    """One lease, as the answers have it."""

    worker: Worker
    token: int
    host: str
    until: int
    fence: float
    renewed_at: float
    urls: set[int]
    settled: set[int] = field(default_factory=set)


class Checker:
    """The invariants of one simulation."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._history = world.history
        self.connection: sqlite3.Connection
        self.leases: dict[int, Held] = {}
        self._last_token = 0
        self._answers = 0
        self._ended: dict[int, UrlState] = {}
        self._key_of: dict[int, bytes] = {}
        self._place_of: dict[bytes, int] = {}
        self._hid_of: dict[str, int] = {}
        self.fetches: Counter[bytes] = Counter()
        self.spent: Counter[bytes] = Counter()
        """Requests that were settled, by key."""
        self.attempts: Counter[int] = Counter()
        """The same by number, begun anew when a person or a rule lets a URL in again."""
        self.losses: Counter[bytes] = Counter()
        self.done: set[int] = set()
        self._idle: Counter[str] = Counter()
        """Visits in a row, by host, that settled nothing."""
        self._clock_set_at = -1.0
        self.manners = Manners(world.web, world.settings, world.history, self._holder)

    def begins(self) -> None:
        """The store is open and empty."""
        for page in self._world.web.pages:
            address = self._world.identity.identify(page.url)
            key: bytes = address.key  # type: ignore[union-attr]
            self._key_of[page.place] = key
            self._place_of[key] = page.place
            self._hid_of[page.host.name] = host_id(key)

    # -- what is told -----------------------------------------------------------------------------------------

    def disturbed(self, worker: Worker, seconds: float) -> None:
        """For so long this worker cannot do what it should."""
        worker.disturbed_at = max(worker.disturbed_at, self._now() + seconds)
        self.manners.slack += seconds

    def clock_was_set(self, seconds: float) -> None:
        """Forth or back."""
        self._clock_set_at = self._now()
        self.manners.slack += abs(seconds)
        if seconds > 0:
            self.manners.clock_leaps(self._now())

    def fetch_begins(self, worker: Worker, url: str) -> None:
        """A request leaves."""
        worker.idle_asks = 0
        self.manners.begins(worker.name, url, self._now())
        page = self._world.web.page_of(url)
        if page is not None and page.kind not in (Kind.COOKIE, Kind.CIRCLE):
            self.fetches[self._key_of[page.place]] += 1

    def fetch_ends(self, worker: Worker, url: str, answer: Answer | None) -> None:
        """Its answer has come, or its worker is gone."""
        self.manners.ends(worker.name, url, answer, self._now())

    def store_answered(self, worker: Worker, name: str, args: tuple[Any, ...], answer: Any, asked: float) -> None:
        """The store has done something for a worker; `asked` is when it began to wait for that."""
        self._polls(worker, idle=name == "lease" and not answer)
        match name:
            case "lease":
                self._leased(worker, answer, asked, args[0].ttl_ms)
            case "renew":
                self._renewed(args[0], answer, asked, args[1])
            case "settle":
                self._settled(worker, args[0], answer)
            case "reclaim":
                self._lost(taken_back=True, by=worker)
            case "void_leases":
                self._lost(taken_back=False, by=worker)
            case "keep_robots":
                for file in args[0]:
                    self.manners.rules_are_kept(file.origin)
        self._now_and_then()

    def _polls(self, worker: Worker, *, idle: bool) -> None:
        """Who asks again and again for nothing, with nothing in between, does not wait for what is due."""
        worker.idle_asks = worker.idle_asks + 1 if idle else 0
        if worker.idle_asks > IDLE_ASKS:
            self._broken("L4", f"{worker.name} asks for leases {IDLE_ASKS} times, and gets and does nothing")

    # -- leases -----------------------------------------------------------------------------------------------

    def _leased(self, worker: Worker, leases: Sequence[Lease], asked: float, ttl_ms: int) -> None:
        for lease in leases:
            hid = lease.host.hid
            if lease.token <= self._last_token:
                self._broken("I5", f"token {lease.token} comes after {self._last_token}")
            self._last_token = max(self._last_token, lease.token)
            if hid in self.leases:
                held = self.leases[hid]
                self._broken("I4", f"{lease.host.name} is leased to {worker.name}, and {held.worker.name} holds it")
            if any(url.suspect for url in lease.urls) and len(lease.urls) > 1:
                self._broken("I14", f"a suspect is leased together with others: {lease.urls[0].url}")
            for url in lease.urls:
                if self._ended.get(url.id, UrlState.SKIPPED) is not UrlState.SKIPPED:
                    self._broken("I17", f"{url.url} is leased after it was {self._ended[url.id].name}")
                if self._ended.pop(url.id, None) is not None:
                    self.attempts[url.id] = 0
                if url.attempts != self.attempts[url.id]:
                    said = f"{url.attempts} attempts and had {self.attempts[url.id]}"
                    self._broken("I14", f"{url.url} is said to have had {said}")
            urls = {url.id for url in lease.urls}
            fence = asked + ttl_ms / 1000
            self.leases[hid] = Held(worker, lease.token, lease.host.name, lease.until, fence, asked, urls)
        overdue, first = self.connection.execute(_OVERDUE, (self._world.clock.now(),)).fetchone()
        if overdue:
            self._broken("L3", f"{overdue} retries are due, since {self._world.clock.now() - first} ms")

    def _renewed(self, tokens: Sequence[int], kept: Sequence[bool], asked: float, ttl_ms: int) -> None:
        by_token = {held.token: held for held in self.leases.values()}
        for token, renewed in zip(tokens, kept, strict=True):
            held = by_token.get(token)
            if renewed != (held is not None):
                self._broken("I5", f"renewing token {token} is answered {renewed}")
            elif held is not None:
                held.until = self._world.clock.now() + ttl_ms
                # Two renewals may be under way behind a pause, and the answers come in any order.
                held.fence = max(held.fence, asked + ttl_ms / 1000)
                held.renewed_at = max(held.renewed_at, asked)

    def _lost(self, *, taken_back: bool, by: Worker) -> None:
        """Leases that are gone from the store without their holder's doing."""
        live = {token for (token,) in self.connection.execute("SELECT token FROM host WHERE token IS NOT NULL")}
        for hid, held in list(self.leases.items()):
            if held.token in live:
                continue
            del self.leases[hid]
            for number in held.urls - held.settled:
                self.losses[self._key(number)] += 1
            if taken_back:
                self._may_be_taken_back(held, by)

    def _may_be_taken_back(self, held: Held, by: Worker) -> None:
        late = (self._world.clock.now() - held.until) / 1000
        if late < 0:
            self._broken("I4", f"the lease of {held.host} is taken from {held.worker.name} {-late} s too early")
        watched_since = max(by.started_at, by.disturbed_at, self._clock_set_at)
        if late > UNAWARE and self._now() - watched_since > late:
            self._broken("L1", f"the lease of {held.host} is taken back {late} s after its end")
        if self._clock_set_at >= held.renewed_at:
            self.manners.robbed[held.worker.name, held.host] = self._now() + UNAWARE
        undisturbed = held.renewed_at > max(held.worker.disturbed_at, self._clock_set_at)
        if not held.worker.dead and undisturbed:
            self._broken(
                "I11", f"{held.worker.name} lives, and lost its lease of {held.host}: it will be fetched again"
            )

    def _holder(self, host: Host) -> Holder | None:
        held = self.leases.get(self._hid_of[host.name])
        return None if held is None else Holder(held.worker.name, held.fence)

    # -- settlements ------------------------------------------------------------------------------------------

    def _settled(self, worker: Worker, settlements: Sequence[Settlement], answers: Sequence[Settled]) -> None:
        for settlement, answer in zip(settlements, answers, strict=True):
            held = self.leases.get(settlement.hid)
            current = held if held is not None and held.token == settlement.token else None
            if isinstance(settlement, Released):
                self._released(worker, settlement, answer, current)
                continue
            number = settlement.url.id
            fresh = current is not None and number in current.urls and number not in current.settled
            if fresh != (answer is Settled.SETTLED):
                whose = "its lease is current" if fresh else "its lease is not current"
                self._broken("I5", f"{_named(settlement)} of {settlement.url.url} is {answer.name}, and {whose}")
            if current is None or answer is not Settled.SETTLED:
                continue
            current.settled.add(number)
            self._applied(settlement)

    def _released(self, worker: Worker, settlement: Released, answer: Settled, current: Held | None) -> None:
        if (answer is Settled.SETTLED) != (current is not None):
            self._broken("I5", f"releasing token {settlement.token} is answered {answer.name}")
        if current is not None:
            self.manners.pace_is_kept(worker.name, current.host)
            del self.leases[settlement.hid]
            self._idle[current.host] = 0 if current.settled else self._idle[current.host] + 1
            if self._idle[current.host] > IDLE_VISITS:
                self._broken("L4", f"{current.host} goes round: {IDLE_VISITS} visits, and nothing was done")

    def _applied(self, settlement: Settlement) -> None:
        assert not isinstance(settlement, Released)
        url = settlement.url
        if not isinstance(settlement, Refused):
            self.spent[url.key] += 1
            self.attempts[url.id] += 1
            if self.attempts[url.id] > self._world.settings.retry.max:
                self._broken("I14", f"{url.url} is asked for {self.attempts[url.id]} times")
        if isinstance(settlement, Finished | ProcessingFailed | WasRedirect):
            self._is_stored(settlement)
        if isinstance(settlement, Finished):
            if url.id in self.done:
                self._broken("I10", f"{url.url} is done a second time")
            self.done.add(url.id)
            self._links_are_known(settlement)

    def _is_stored(self, settlement: Finished | ProcessingFailed | WasRedirect) -> None:
        pointer, digest = settlement.evidence.pointer, settlement.evidence.digest
        capture = None if pointer is None else self._world.capture(pointer)
        if capture is None:
            self._broken("I7", f"{settlement.url.url} is settled, and its capture is not in the archive")
        elif digest is not None and hashlib.sha256(capture.payload).digest() != digest:
            self._broken("I7", f"{settlement.url.url} is settled with the capture of something else")

    def _links_are_known(self, settlement: Finished) -> None:
        place = self._place_of.get(settlement.url.key)
        if place is None or settlement.evidence.error is not None:
            return
        web = self._world.web
        links = web.source(web.pages[place]).links
        keys = [self._key_of[link] for link in dict.fromkeys(links)]
        holes = ",".join("?" * len(keys))
        known = self.connection.execute(f"SELECT count(*) FROM seen WHERE fp IN ({holes})", keys).fetchone()[0]  # noqa: S608 -- holes only
        if known < len(keys):
            self._broken("I8", f"{settlement.url.url} is done, and {len(keys) - known} of its links are not known")

    # -- sums and repeats -------------------------------------------------------------------------------------

    def figures(self) -> tuple[list[tuple[str, int]], int]:
        """What a call that changes nothing leaves as it is, and the refusals beyond the cap.

        Those are counted as often as they are told, since nothing is kept by which a second could be known.
        """
        return self.connection.execute(_FIGURES).fetchall(), self.connection.execute(_BEYOND).fetchone()[0]

    def repeated(self, call: Repeated, before: tuple[list[tuple[str, int]], int]) -> None:
        """A call was made twice in a row."""
        name, first, second = call.name, call.first, call.second
        again = {"claim": Claimed.NEW, "settle": Settled.SETTLED}.get(name)
        if again is not None and again in second:
            self._broken("I16", f"a second {name} is answered {again.name}")
        elif again is None and list(first) != list(second):
            self._broken("I16", f"a second {name} is answered {second}, not {first}")
        after, beyond = self.figures()
        if after != before[0]:
            moved = sorted(set(after) ^ set(before[0]))
            self._broken("I16", f"a second {name} changes figures: {moved}")
        if not 0 <= beyond - before[1] <= call.claims:
            told = f"{beyond - before[1]} refusals beyond the cap, and tells of {call.claims} links"
            self._broken("I16", f"a second {name} counts {told}")

    def audit(self) -> None:
        """Recount everything."""
        try:
            audit(self.connection)
        except AssertionError as error:
            self._broken("I1/I2", f"the store's numbers are not those of its rows: {str(error)[:300]}")
        ended = {number: UrlState(state) for number, state in self.connection.execute(_OUTCOMES)}
        for number, state in self._ended.items():
            if state is not UrlState.SKIPPED and ended.get(number) is not state:
                self._broken("I17", f"URL {number} was {state.name} and is {ended.get(number)}")
        self._ended = ended

    def at_the_end(self) -> None:
        """Everybody has finished: compare with what the web holds."""
        self.audit()
        Verdict(self._world, self, self._place_of).give()

    def committed(self) -> None:
        """A transaction has ended: this is what a reader can see."""
        total, seen = self.connection.execute(_SUMS).fetchone()
        if (total or 0) != seen:
            self._broken("I1", f"{seen} URLs are known, and their states add up to {total}")

    def _now_and_then(self) -> None:
        """Recount all tables after so many answers."""
        self._answers += 1
        if self._answers % AUDIT_EVERY == 0:
            self.audit()

    def _key(self, number: int) -> bytes:
        key: bytes = self.connection.execute("SELECT fp FROM seen WHERE id = ?", (number,)).fetchone()[0]
        return key

    def _broken(self, name: str, what: str) -> None:
        self._history.broken(name, what)

    def _now(self) -> float:
        return self._world.clock.monotonic()


def _named(settlement: Settlement) -> str:
    return type(settlement).__name__
