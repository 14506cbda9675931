"""Bugs of the embedded store; see `mutants.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from crawlspace.frontier.sqlite import lease as leasing
from crawlspace.frontier.sqlite import loss, settle, store
from crawlspace.frontier.sqlite.book import Book
from crawlspace.frontier.sqlite.claim import Claiming
from crawlspace.frontier.sqlite.connection import writing
from crawlspace.types import Claim, Released


def offers_of_one_shard_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links to the hosts of one half never arrive, and nobody notices."""
    both = store.SqliteFrontier.settle

    async def settle_(self: Any, settlements: Sequence[Any], claims: Sequence[Claim], now: int | None = None) -> Any:
        return await both(self, settlements, [claim for claim in claims if claim.address.key[0] % 2], now)

    monkeypatch.setattr(store.SqliteFrontier, "settle", settle_)


def commit_before_offers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The links of a page are claimed in a second call, after the page is done."""
    both = store.SqliteFrontier.settle

    async def settle_(self: Any, settlements: Sequence[Any], claims: Sequence[Claim], now: int | None = None) -> Any:
        answers = await both(self, settlements, (), now)
        self.later = [*getattr(self, "later", ()), *claims]
        return answers

    async def lease(self: Any, wish: Any, now: int | None = None) -> Any:
        claims, self.later = getattr(self, "later", ()), []
        await self.claim(claims, now)
        return await first(self, wish, now)

    first = store.SqliteFrontier.lease
    monkeypatch.setattr(store.SqliteFrontier, "settle", settle_)
    monkeypatch.setattr(store.SqliteFrontier, "lease", lease)


def no_token_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever settles, is believed."""
    one = settle.Settling._one

    def _one(self: Any, settlement: Any) -> Any:
        token = self._fence(settlement.hid).token
        return one(self, settlement if token is None else replace(settlement, token=token))

    monkeypatch.setattr(settle.Settling, "_one", _one)


def token_check_against_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A late settlement is taken when the same worker holds the host again."""
    one = settle.Settling._one
    occupy = leasing.Leasing._grant
    holders: dict[int, int] = {}

    def _grant(self: Any, admitted: Any, token: int, wish: Any) -> Any:
        holders[token] = wish.worker
        return occupy(self, admitted, token, wish)

    def _one(self: Any, settlement: Any) -> Any:
        token = self._fence(settlement.hid).token
        if token is not None and holders.get(token) == holders.get(settlement.token):
            settlement = replace(settlement, token=token)
        return one(self, settlement)

    monkeypatch.setattr(leasing.Leasing, "_grant", _grant)
    monkeypatch.setattr(settle.Settling, "_one", _one)


def host_in_two_ready_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leased host is still among the due ones."""
    statement = leasing._SQL["due"].replace(" AND token IS NULL", "")
    assert statement != leasing._SQL["due"]
    monkeypatch.setitem(leasing._SQL, "due", statement)
    hold = "INSERT OR REPLACE" + leasing._SQL["hold"].removeprefix("INSERT")
    monkeypatch.setitem(leasing._SQL, "hold", hold)


def expiry_uses_up_an_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL whose lease was lost counts as asked for."""
    statement = loss._SQL["suspect"].replace("SET suspect", "SET attempts = attempts + 1, suspect")
    assert statement != loss._SQL["suspect"]
    monkeypatch.setitem(loss._SQL, "suspect", statement)


def suspects_leased_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL whose lease was lost goes out with others."""
    monkeypatch.setattr(leasing, "takewhile", lambda _keep, rows: rows)
    urls_for = leasing.Leasing._urls_for

    def _urls_for(self: Any, hid: int, most: int) -> Any:
        few = urls_for(self, hid, most)
        rows = self._connection.execute(leasing._SQL["best"], (hid, 5)).fetchall()
        return [leasing.Waiting._make(row) for row in rows] if few and few[0].suspect else few

    monkeypatch.setattr(leasing.Leasing, "_urls_for", _urls_for)


def delay_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a host asked for is forgotten with the visit."""
    one = settle.Settling._release

    def _release(self: Any, settlement: Released, fence: Any) -> Any:
        return one(self, replace(settlement, pace=replace(settlement.pace, next_at=0)), fence)

    monkeypatch.setattr(settle.Settling, "_release", _release)
    monkeypatch.setattr("crawlspace.engine.turn.Turn.hold_until", lambda _self, _start: None)


def tally_outside_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Totals are written when the rows are safe."""

    def _writing(self: Any, work: Any, now: int | None) -> Any:
        with writing(self._connection):
            book = Book(self._connection, self._settings)
            result = work(book, self._at(now))
            totals, book._totals = book._totals, {}
            book.write()
        with writing(self._connection):
            book._totals = totals
            book.write()
        return result

    monkeypatch.setattr(store.SqliteFrontier, "_writing", _writing)


def check_then_wait_then_add(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the question whether a key is known and the mark, another finder comes."""
    found = Claiming._found
    before: set[bytes] = set()

    def _found(self: Any, keys: set[bytes], least: Any) -> Any:
        now = found(self, keys, least)
        stale = dict.fromkeys(keys & before, (None, None))
        before.clear()
        before.update(key for key, (number, _) in now.items() if number is None)
        return now | stale

    monkeypatch.setattr(Claiming, "_found", _found)


def duplicate_in_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that stands twice in one batch is inserted twice."""
    one = Claiming._one

    def _one(self: Any, claim: Claim, number: int | None) -> Any:
        if number is None and (claim.address.key in self._links or claim.address.key in self._fresh):
            key = claim.address.key[:-1] + bytes([claim.address.key[-1] ^ 1])
            claim = replace(claim, address=replace(claim.address, key=key))
        return one(self, claim, number)

    monkeypatch.setattr(Claiming, "_one", _one)


def next_at_not_clamped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that was ahead silences a host for ever."""
    monkeypatch.setattr(store, "clamp", lambda _connection, _now: None)
