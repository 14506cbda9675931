"""Bugs that somebody could make, one patch each: the tests must find every one of them.

The names are those of the design's list, and of bugs that the simulation has found. Where a bug lies outside of what
it runs (addresses, URLs, the archive's files), a test of that part finds it, and is named here.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import mutants_postgres
import mutants_store
import pytest

from crawlspace.archive.segment import Segment
from crawlspace.engine import crawl
from crawlspace.engine.commit import Committer, Item
from crawlspace.engine.crawl import Crawl
from crawlspace.engine.intake import Intake
from crawlspace.engine.recent import Recent
from crawlspace.engine.robots import RobotsGate
from crawlspace.engine.sweep import Sweeper
from crawlspace.engine.visit import Visit
from crawlspace.errors import ArchiveSuspect, DiskFull
from crawlspace.exchange import FetchRequest
from crawlspace.fetch.dial import Dialler
from crawlspace.policy import decide
from crawlspace.policy.outcome import Kind, Outcome, classify
from crawlspace.types import Claim
from crawlspace.urls import canonical

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug, and who finds it: the simulation, unless tests are named."""

    name: str
    patch: Patch
    tests: tuple[str, ...] = ()


# -- the order of writing -----------------------------------------------------------------------------------------


def done_before_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group is settled first, and flushed when that is done."""

    async def store_(self: Any, group: list[Item]) -> list[Any]:
        return [[await self._archive.append(capture) for capture in item.captures] or None for item in group]

    async def commit(self: Any, group: list[Item]) -> None:
        pointers = await store_(self, group)
        await self._settle(group, [each and each[-1] for each in pointers])
        await self._archive.flush()

    monkeypatch.setattr(Committer, "_commit", commit)


def fsync_error_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flush that failed is taken for one that did not."""

    async def store_(self: Any, group: list[Item]) -> list[Any]:
        pointers = []
        for item in group:
            kept = [await self._archive.append(capture) for capture in item.captures]
            pointers.append(kept[-1] if kept else None)
        with suppress(ArchiveSuspect):
            await self._archive.flush()
        return pointers

    monkeypatch.setattr(Committer, "_store", store_)


# -- leases -------------------------------------------------------------------------------------------------------


def expiry_by_the_workers_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sweeps, brings his own time along: here one that is three minutes ahead."""

    async def once(self: Any) -> int:
        lost: int = await self._frontier.reclaim(self._clock.now() + 180_000)
        return lost

    monkeypatch.setattr(Sweeper, "_round", once)


def renewals_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A visit that takes longer than a lease loses it."""

    async def once(self: Any) -> int:
        lost: int = await self._frontier.reclaim()
        return lost

    monkeypatch.setattr(Sweeper, "_round", once)


def empty_lease_not_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """A visit that found nothing to do keeps its host."""
    spend = Visit.spend

    async def spend_(self: Any) -> None:
        if self._take() is None:
            return
        self._next = 0
        await spend(self)

    monkeypatch.setattr(Visit, "spend", spend_)


def leases_of_waiting_settlements_not_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease is kept alive while its visit goes on, and not while its settlements wait for a full disk."""
    ended = Crawl._visit_ended

    def _visit_ended(self: Any, task: Any) -> None:
        self._held.pop(self._visits[task].lease.token, None)
        ended(self, task)

    monkeypatch.setattr(Crawl, "_visit_ended", _visit_ended)


def expired_leases_polled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for the lease of another to end, asks a thousand times a second."""
    monkeypatch.setattr(crawl, "RACE_SECONDS", 0.001)

    sweep = Sweeper.once

    async def once(_self: Any) -> int:
        return 0

    async def run(self: Any) -> None:
        while True:
            await self._clock.sleep(30.0)
            await sweep(self)

    monkeypatch.setattr(Sweeper, "once", once)
    monkeypatch.setattr(Sweeper, "run", run)


def turn_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host is given back as due when only the wall clock says so."""
    monkeypatch.setattr(Visit, "_kept_pace", lambda self: self._pace)


def full_store_ends_the_crawl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the committer waits for room."""

    async def wait(_self: Any, full: DiskFull) -> None:
        raise full

    monkeypatch.setattr(Crawl, "_wait_for_space", wait)


# -- requests -----------------------------------------------------------------------------------------------------


def fence_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that was stopped past its lease goes on where it was."""
    monkeypatch.setattr(Visit, "_has_time", lambda self: not self.lost)


def retry_without_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails is tried again for ever."""
    monkeypatch.setattr(decide, "next_try", lambda _failed, now, _chance, _settings: now + 1000)


def redirect_followed_without_robots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A redirect is followed on the spot, wherever it leads."""

    async def fetch(self: Any, request: FetchRequest, _url: Any) -> tuple[list[Any], Outcome]:
        results = []
        for _ in range(5):
            results.append(await self._request(request))
            outcome = classify(results[-1], self.run.clock.now())
            self._follow_pace(outcome, results[-1])
            target = self.run.identity.identify(outcome.location or "", results[-1].url)
            if outcome.kind is not Kind.REDIRECT or not hasattr(target, "fetch_url"):
                break
            request = FetchRequest(target.fetch_url)
        return results, outcome

    monkeypatch.setattr(Visit, "_fetch", fetch)


def robots_never_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first rules of an origin hold for ever."""
    monkeypatch.setattr(RobotsGate, "known", lambda self, origin: self._cache.get(origin))


# -- counting and knowing -----------------------------------------------------------------------------------------


def bloom_filter_as_authority(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set that is sometimes wrong decides what is known."""
    chance = random.Random(1)
    holds = Recent.holds

    def holds_(self: Recent, key: bytes, front_class: int, depth: int) -> bool:
        return holds(self, key, front_class, depth) or chance.random() < 0.05

    monkeypatch.setattr(Recent, "holds", holds_)


def remembered_before_it_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A link counts as known as soon as it was seen, whatever becomes of the page."""
    found = Intake.found

    def found_(self: Intake, address: Any, way: Any) -> Claim | None:
        claim = found(self, address, way)
        if claim is not None:
            self.recent.commit([claim])
        return claim

    monkeypatch.setattr(Intake, "found", found_)
    # The page that carried the link is put back, as after a failed read.
    read = Visit._spend
    chance = random.Random(2)

    async def spend(self: Any, url: Any) -> None:
        if chance.random() < 0.1:
            real, self.run.basket.put = self.run.basket.put, _swallow
            try:
                await read(self, url)
            finally:
                self.run.basket.put = real
            return
        await read(self, url)

    monkeypatch.setattr(Visit, "_spend", spend)


async def _swallow(_item: Item) -> None:
    """Lose it."""


# -- outside of the simulation ------------------------------------------------------------------------------------


def resolver_called_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer is judged, and a second one says where to connect."""
    endpoints = Dialler.endpoints

    async def twice(self: Any, origin: Any, reach: Any) -> Any:
        await endpoints(self, origin, reach)
        return await self.lookup(origin)

    monkeypatch.setattr(Dialler, "endpoints", twice)


def normaliser_not_idempotent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slash at the end is dropped, of two only the last."""
    form = canonical._form
    monkeypatch.setattr(canonical, "_form", lambda *parts: form(*parts).removesuffix("/"))


def fsync_error_of_a_file_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose fsync failed is written on."""
    sync = Segment.sync

    def ignoring(self: Segment) -> None:
        try:
            sync(self)
        except OSError:
            self.flushed = self.end

    monkeypatch.setattr(Segment, "sync", ignoring)


def begin(name: str) -> None:
    """Put a bug into this interpreter, for as long as it runs."""
    next(mutant for mutant in MUTANTS if mutant.name == name).patch(pytest.MonkeyPatch())


MUTANTS = (
    Mutant("done before store", done_before_store),
    Mutant("commit before offers", mutants_store.commit_before_offers),
    Mutant("offers acknowledged by one shard only", mutants_store.offers_of_one_shard_only),
    Mutant("no token check", mutants_store.no_token_check),
    Mutant("token check against worker id", mutants_store.token_check_against_the_worker),
    Mutant("lease expiry by worker clock", expiry_by_the_workers_clock),
    Mutant("renewals forgotten", renewals_forgotten),
    Mutant("host in two ready sets", mutants_store.host_in_two_ready_sets),
    Mutant("empty lease not released", empty_lease_not_released),
    Mutant("expire that uses up an attempt", mutants_store.expiry_uses_up_an_attempt),
    Mutant("suspect leased together with others", mutants_store.suspects_leased_together),
    Mutant("leases of waiting settlements not renewed", leases_of_waiting_settlements_not_renewed),
    Mutant("expired leases polled for", expired_leases_polled_for),
    Mutant("turn not stored", turn_not_stored),
    Mutant("full store ends the crawl", full_store_ends_the_crawl),
    Mutant("fence not looked at", fence_not_looked_at),
    Mutant("retry without cap", retry_without_cap),
    Mutant("redirect followed inline without robots", redirect_followed_without_robots),
    Mutant("robots never asked again", robots_never_asked_again),
    Mutant("pace not stored", mutants_store.delay_not_stored),
    Mutant("tally outside the transaction", mutants_store.tally_outside_the_transaction),
    Mutant("Bloom as authority", bloom_filter_as_authority),
    Mutant("remembered before it is claimed", remembered_before_it_is_claimed),
    Mutant("check-await-add race", mutants_store.check_then_wait_then_add),
    Mutant("duplicate inside one offer batch inserted twice", mutants_store.duplicate_in_one_batch),
    Mutant("fsync error ignored", fsync_error_ignored),
    Mutant(
        "fsync error of a file ignored",
        fsync_error_of_a_file_ignored,
        ("tests/archive/test_faults.py::test_a_file_whose_fsync_failed_is_never_written_again",),
    ),
    Mutant(
        "next_at not clamped after a clock jump",
        mutants_store.next_at_not_clamped,
        ("tests/frontier/test_store.py::test_a_clock_that_was_ahead_silences_nobody",),
    ),
    Mutant(
        "one-statement PG lease",
        mutants_postgres.lease_in_one_statement,
        (
            "tests/frontier_postgres/test_interleaving.py::test_urls_that_end_while_hosts_are_looked_for_are_not_given_out",
        ),
    ),
    Mutant(
        "resolver called twice",
        resolver_called_twice,
        ("tests/fetch/test_dial.py::test_a_name_that_turns_to_a_private_address_is_not_followed",),
    ),
    Mutant(
        "normaliser not idempotent",
        normaliser_not_idempotent,
        ("tests/urls/test_url_properties.py::test_canonical_forms_are_fixed_points_and_read_as_themselves",),
    ),
)
