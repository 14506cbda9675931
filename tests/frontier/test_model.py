"""Random sequences of everything that can happen to a frontier give the same answers as a model of a few dicts."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.states import UrlState
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_audit import audit, integrity
from crawlspace.testing.frontier_contract_model import Model
from crawlspace.testing.frontier_contract_words import (
    T0,
    address,
    died,
    failed_processing,
    finished,
    link,
    redirected,
    released,
    retry,
    seen,
)
from crawlspace.types import Claim, Lease, Moved, QueuedUrl, Reason, Refused, Settlement, Wish, host_id

SETTINGS = FrontierSettings(pages_per_host=8, pages_per_seed_host=None, queue_per_host=6, refusals_kept=2)
TTL = 5_000
HOSTS = ("a.test", "b.test", "c.test", "seed.test")

T = TypeVar("T")

claims = st.builds(
    lambda name, host, front_class, depth, refusal: link(
        str(name), host, front_class=front_class, depth=depth, refusal=refusal, seed_host=host == "seed.test"
    ),
    st.integers(0, 11),
    st.sampled_from(HOSTS),
    st.integers(0, 9),
    st.integers(0, 4),
    st.sampled_from([None, None, None, Reason.DEPTH, Reason.EXCLUDED]),
)


def settlement(kind: int, lease: Lease, url: QueuedUrl, now: int, wait: int) -> Settlement:
    """One of the ways to end a URL."""
    match kind:
        case 0:
            return died(lease, url)
        case 1:
            return failed_processing(lease, url)
        case 2:
            return redirected(lease, url, "http://b.test/")
        case 3:
            return retry(lease, url, now + wait)
        case 4:
            return Refused(lease.token, lease.host.hid, url, Reason.ROBOTS if wait % 2 else Reason.DEPTH)
        case 5:
            return Moved(lease.token, lease.host.hid, url, seen(301), url.url + "!")
        case _:
            return finished(lease, url, seen(200, b"body %d" % (wait % 5)))


class Frontier(RuleBasedStateMachine):
    """One store, one model, many workers that forget, repeat and come late."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock(T0)
        self.copies = 0
        self.path = self.directory / "frontier.db"
        self.model = Model(SETTINGS)
        self.leases: list[Lease] = []
        self.store = self.opened()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def opened(self) -> SqliteFrontier:
        return self.run(SqliteFrontier.open(self.path, SETTINGS, self.clock, threaded=False))

    def teardown(self) -> None:
        self.run(self.store.close())
        self.loop.close()
        assert integrity(self.path) == "ok"
        shutil.rmtree(self.directory)

    @property
    def now(self) -> int:
        return self.clock.now()

    @initialize(batch=st.lists(claims, min_size=10, max_size=30))
    def begin(self, batch: list[Claim]) -> None:
        self.claim(batch)

    @rule(batch=st.lists(claims, max_size=25))
    def claim(self, batch: list[Claim]) -> None:
        answers = self.run(self.store.claim(batch, self.now))
        assert answers == [self.model.claim(claim, host_id(claim.address.key)) for claim in batch]

    @rule(hosts=st.integers(0, 5), urls=st.integers(1, 6), worker=st.integers(1, 3))
    def lease(self, hosts: int, urls: int, worker: int) -> None:
        wish = Wish(worker, hosts, urls, TTL, visit_ms=4_000)
        leases = self.run(self.store.lease(wish, self.now))
        self.model.leased(leases, wish, self.now)
        self.leases += leases

    @precondition(lambda self: self.leases)
    @rule(
        which=st.integers(0, 200),
        kinds=st.lists(st.integers(0, 9), min_size=1, max_size=6),
        wait=st.integers(0, 4_000),
        found=st.lists(claims, max_size=4),
        release=st.sampled_from(["no", "yes", "yes", "condemned"]),
        repeats=st.integers(1, 2),
    )
    def settle(self, which: int, kinds: list[int], wait: int, found: list[Claim], release: str, repeats: int) -> None:
        """By any lease there ever was, recent ones more often; links come with it; sometimes all of it twice."""
        self.tell(self.leases[-1 - which % min(len(self.leases), 6)], kinds, wait, found, release, repeats)

    @rule(
        ms=st.sampled_from([0, 1_000, 4_000]),
        urls=st.integers(1, 6),
        kinds=st.lists(st.integers(0, 9), max_size=6),
        wait=st.integers(0, 1_000),
    )
    def visit(self, ms: int, urls: int, kinds: list[int], wait: int) -> None:
        """What happens most: all due hosts are visited, some of their URLs settled, and given back."""
        self.wait(ms)
        before = len(self.leases)
        self.lease(4, urls, 1)
        for lease in self.leases[before:]:
            self.tell(lease, kinds, wait, [], "yes", 1)

    def tell(self, lease: Lease, kinds: list[int], wait: int, found: list[Claim], release: str, repeats: int) -> None:
        told = [settlement(kind, lease, url, self.now, wait) for kind, url in zip(kinds, lease.urls, strict=False)]
        if release != "no":
            told.append(released(lease, self.now + wait, release if release == "condemned" else None, delay_ms=wait))
        for _ in range(repeats):
            answers = self.run(self.store.settle(told, found, self.now))
            for claim in found:
                self.model.claim(claim, host_id(claim.address.key))
            assert answers == [self.model.settle(one) for one in told]

    @precondition(lambda self: self.leases)
    @rule(which=st.integers(0, 200))
    def renew(self, which: int) -> None:
        lease = self.leases[-1 - which % min(len(self.leases), 6)]
        host = self.model.hosts[lease.host.hid]
        [alive] = self.run(self.store.renew([lease.token], TTL, self.now))
        assert alive == (host.token == lease.token)
        if alive:
            host.until = self.now + TTL

    @rule(ms=st.sampled_from([0, 1, 500, 1_000, 4_000, TTL]))
    def wait(self, ms: int) -> None:
        self.clock.advance(ms)

    @rule(ms=st.sampled_from([-3_000, 3_000]))
    def step_the_clock(self, ms: int) -> None:
        self.clock.step(ms)

    @rule()
    def reclaim(self) -> None:
        lost = self.model.expired(self.now)
        assert self.run(self.store.reclaim(self.now)) == len(lost)
        self.model.lose(lost, self.now)

    @rule(numbers=st.lists(st.integers(1, 40), max_size=8))
    def revive(self, numbers: list[int]) -> None:
        assert self.run(self.store.revive(numbers, self.now)) == self.model.revive(numbers)

    @rule()
    def reopen(self) -> None:
        self.run(self.store.close())
        self.store = self.opened()

    @rule()
    def crash(self) -> None:
        """The files as they lie now are all that is left; the next owner voids every lease."""
        self.copies += 1
        left = self.directory / f"copy{self.copies}.db"
        for suffix in ("", "-wal"):
            if (file := Path(f"{self.path}{suffix}")).exists():
                shutil.copy(file, f"{left}{suffix}")
        self.run(self.store.close())
        self.path = left
        self.store = self.opened()
        held = [hid for hid, host in self.model.hosts.items() if host.token is not None]
        assert self.run(self.store.void_leases(self.now)) == len(held)
        self.model.lose(held, self.now)

    @invariant()
    def counts_are_the_models(self) -> None:
        counts = self.run(self.store.counts())
        assert dict(counts.states) == self.model.states()
        assert counts.refused_beyond_cap == self.model.beyond
        assert counts.fetches == sum(host.fetched for host in self.model.hosts.values())

    @invariant()
    def somebody_is_due_exactly_when_the_store_says_so(self) -> None:
        due = self.run(self.store.due_in(self.now))
        something = bool(self.model.due(self.now)) or bool(self.model.expired(self.now))
        if something:
            assert due is not None
            assert due == 0
        waits = any(url.state is UrlState.LEASED for url in self.model.urls.values())
        assert due is not None or not waits

    @invariant()
    def every_url_is_where_the_model_has_it(self) -> None:
        keys = list(self.model.urls)
        for key, story in zip(keys, self.run(self.store.find(keys)), strict=True):
            url = self.model.urls[key]
            assert story is not None
            assert (story.id, story.state, story.depth) == (url.id, url.state, url.depth)
        assert self.run(self.store.find([address("never claimed").key])) == [None]

    @invariant()
    def every_number_is_what_its_rows_say(self) -> None:
        audit(self.store._connection)


TestFrontier = Frontier.TestCase
TestFrontier.settings = settings(
    max_examples=max(18, settings.default.max_examples // 20),
    stateful_step_count=30,
    deadline=None,
    # Shrinking takes minutes, and forty steps can be read.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
