"""Two workers of a simulated crawl share its hosts, though whoever comes first could have all of them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from crawlspace.engine.crawl import Crawl
from crawlspace.testing.sim import Size, simulate
from crawlspace.testing.sim.faults import Plan
from crawlspace.testing.sim.worker import Worker
from crawlspace.testing.sim.world import World

SIXTEEN_HOSTS = Size(hosts=16, pages=160, events=5_000, least=16)
SEEDS = range(3)


class Counting(World):
    """Counts the requests of each worker; nothing but the workers themselves keeps them from any host."""

    requests: Counter[int]

    def drawn(self, chance: random.Random) -> dict[str, Any]:
        return super().drawn(chance) | {"host.delay": 1, "concurrency.hosts": 1000, "concurrency.global": 64}

    async def opened(self) -> None:
        begins = self.checker.fetch_begins

        def counted(worker: Worker, url: str) -> None:
            self.requests[worker.number] += 1
            begins(worker, url)

        self.checker.fetch_begins = counted  # type: ignore[method-assign]


def smaller_parts(seeds: range) -> list[float]:
    """Of all requests, those of the worker that made fewer; one for each seed."""
    parts = []
    for seed in seeds:
        requests: Counter[int] = Counter()
        made = type("Made", (Counting,), {"requests": requests})
        report = simulate(seed, SIXTEEN_HOSTS, Plan(2, 5_000, ()), made)
        assert not report.violations, str(report)
        parts.append(min(requests[0], requests[1]) / requests.total())
    return parts


def test_two_workers_do_about_as_much_each() -> None:
    assert min(smaller_parts(SEEDS)) > 0.2


def test_without_sharing_one_would_do_nearly_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above stands on."""
    monkeypatch.setattr(Crawl, "share_hosts", lambda *_: None)
    assert max(smaller_parts(SEEDS)) < 0.1
