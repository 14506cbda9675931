"""The contract of what a person changes in a crawl: commands, held hosts, and rulings on known URLs.

class TestMyFrontier(ControlContract):
    async def open(self, settings):
        return await MyFrontier.open(...)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import pytest
from msgspec.structs import replace

from crawlspace.errors import UsageError
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.policy.commands import Asked, Hold
from crawlspace.policy.review import Cursor, Known, Ruling, Shelf
from crawlspace.ports import Control
from crawlspace.states import UrlState
from crawlspace.testing.frontier_contract_words import (
    T0,
    Store,
    address,
    died,
    end_all,
    finished,
    link,
    links,
    names,
    one_lease,
    only_state,
    released,
    retry,
    seen,
    states,
    wish,
)
from crawlspace.types import Claimed, Reason, Settlement, host_id

A = (host_id(address("x").key), "a.test")


class ControlledStore(Store, Control, Protocol):
    """A store that takes commands too."""


ControlStory = Callable[[ControlledStore], Awaitable[None]]


async def on(store: Control, shelf: Shelf, limit: int = 100) -> list[Known]:
    """All of a shelf, read in parts of `limit`."""
    found: list[Known] = []
    after: Cursor | None = ()
    while after is not None:
        browsed = await store.browse(shelf, after, limit)
        assert len(browsed.known) <= limit
        found += browsed.known
        after = browsed.after
    return found


async def page(store: Control, shelf: Shelf, name: str) -> Known:
    """One page of a shelf."""
    [known] = [known for known in await on(store, shelf) if known.url.endswith(f"/{name}")]
    return known


def to(known: Known, refusal: Reason | None = None, front_class: int | None = None) -> Ruling:
    return Ruling(known, refusal, known.front_class if front_class is None else front_class)


class ControlContract:
    """A backend's tests inherit it and say how a fresh store is opened."""

    async def open(self, settings: FrontierSettings) -> ControlledStore:
        """A fresh, empty store."""
        raise NotImplementedError

    def play(self, story: ControlStory, settings: FrontierSettings | None = None) -> None:
        """Run one test's coroutine on a fresh store."""

        async def run() -> None:
            store = await self.open(settings or FrontierSettings())
            try:
                await story(store)
            finally:
                await store.close()

        asyncio.run(run())

    # -- commands -------------------------------------------------------------------------------------------

    def test_commands_are_open_in_order_until_they_are_done(self) -> None:
        async def story(store: ControlledStore) -> None:
            first, second = await store.ask(["{a}", "{b}"], T0)
            [third] = await store.ask(["{c}"], T0)
            assert first < second < third
            assert [each.command for each in await store.asked()] == ["{a}", "{b}", "{c}"]
            assert [each.command for each in await store.asked(2)] == ["{a}", "{b}"]
            await store.rule([], Asked(second, "{b}", "half"), T0)
            await store.rule([], Asked(first, "{a}", "all", True), T0)
            assert await store.asked() == [Asked(second, "{b}", "half"), Asked(third, "{c}")]
            answers = await store.answers([first, second, third, third + 1])
            assert answers == [Asked(first, "{a}", "all", True), *await store.asked(), None]

        self.play(story)

    def test_old_answers_are_forgotten_and_no_number_is_given_twice(self) -> None:
        async def story(store: ControlledStore) -> None:
            numbers = await store.ask(["{a}", "{b}"], T0)
            for number in numbers:
                await store.rule([], Asked(number, "", "", True), T0)
            [later] = await store.ask(["{c}"], T0 + 24 * 3_600_000)
            assert later > max(numbers)
            assert (await store.answers(numbers))[0] is None

        self.play(story)

    # -- news ---------------------------------------------------------------------------------------------------

    def test_each_change_that_all_must_hear_of_makes_news_once(self) -> None:
        async def story(store: ControlledStore) -> None:
            first = await store.news(-1)
            assert first is not None
            assert await store.news(first.edition) is None
            await store.note({"scope": "here"})
            second = await store.news(first.edition)
            assert second is not None
            assert (second.facts["scope"], second.held) == ("here", frozenset())
            await store.claim([link("x"), link("x", "b.test")], T0)
            [lease] = await store.lease(wish(hosts=1), T0)
            await store.hold([(host_id(address("x", name).key), name) for name in ("a.test", "b.test")], Hold.PAUSED)
            third = await store.news(second.edition)
            assert third is not None
            assert third.held == {lease.host.name}, "visits are under way at leased hosts alone"
            await store.hold([(lease.host.hid, lease.host.name)], None)
            fourth = await store.news(third.edition)
            assert fourth is not None
            assert fourth.held == frozenset()
            assert await store.news(fourth.edition) is None

        self.play(story)

    def test_a_fact_is_revised_only_by_who_knows_it(self) -> None:
        async def story(store: ControlledStore) -> None:
            assert await store.revise("scope", None, "one")
            assert not await store.revise("scope", None, "other")
            assert not await store.revise("scope", "other", "two")
            edition = (await store.news(-1)).edition  # type: ignore[union-attr]
            assert await store.revise("scope", "one", "two")
            news = await store.news(edition)
            assert news is not None
            assert news.facts["scope"] == "two"
            with pytest.raises(UsageError):
                await store.revise("format", "1", "2")

        self.play(story)

    # -- held hosts -----------------------------------------------------------------------------------------

    @pytest.mark.parametrize("leased", [False, True])
    def test_a_paused_host_is_leased_to_nobody_and_keeps_its_urls(self, leased: bool) -> None:
        async def story(store: ControlledStore) -> None:
            await store.claim([*links(2), link("x", "b.test")], T0)
            leases = await store.lease(wish(), T0) if leased else []
            await store.hold([A], Hold.PAUSED)
            await store.settle([released(lease) for lease in leases], [], T0)
            assert [lease.host.name for lease in await store.lease(wish(), T0)] == ["b.test"]
            assert await store.claim([link("new")], T0) == [Claimed.NEW]
            [host, _] = await store.hosts()
            assert (host.name, host.parked, host.queued) == ("a.test", "paused", 3)
            await store.hold([A], None)
            assert len((await one_lease(store)).urls) == 3
            assert (await store.hosts())[0].parked is None

        self.play(story)

    def test_a_crawl_of_paused_hosts_has_nothing_due(self) -> None:
        async def story(store: ControlledStore) -> None:
            await store.claim([link("x")], T0)
            await store.hold([A], Hold.PAUSED)
            assert await store.due_in(T0) is None
            await store.hold([A], None)
            assert await store.due_in(T0) is not None

        self.play(story)

    def test_what_waits_at_a_blocked_host_is_skipped_and_so_is_what_comes(self) -> None:
        async def story(store: ControlledStore) -> None:
            await store.claim(links(3), T0)
            lease = await one_lease(store, urls_per_host=2)
            later, held = lease.urls
            await store.hold([A], Hold.BLOCKED)
            assert await store.lease(wish(), T0) == []
            assert await states(store) == {"queued": 1, "leased": 2}, "nothing is taken from a worker's hands"
            await store.settle([retry(lease, later, T0 + 9), finished(lease, held), released(lease)], [], T0)
            assert await store.due_in(T0) == 0
            assert await store.lease(wish(), T0) == []
            assert await states(store) == {"done": 1, "skipped": 2}
            assert await store.due_in(T0) is None
            await store.claim([link("new")], T0)
            [told] = await store.find([address("new").key])
            assert told is not None
            assert told.reason == Reason.BLOCKED_HOST

        self.play(story)

    def test_a_host_can_be_blocked_before_anybody_knows_it(self) -> None:
        async def story(store: ControlledStore) -> None:
            await store.hold([A], Hold.BLOCKED)
            assert (await store.counts()).hosts == 0
            await store.claim([link("x")], T0)
            assert await states(store) == {"skipped": 1}
            await store.hold([A], None)
            await store.claim([link("y")], T0)
            assert await states(store) == {"queued": 1, "skipped": 1}

        self.play(story)

    def test_a_refusal_of_the_path_is_not_undone_at_a_blocked_host(self) -> None:
        async def story(store: ControlledStore) -> None:
            await store.claim([link("x", refusal=Reason.DEPTH)], T0)
            await store.hold([A], Hold.BLOCKED)
            await store.claim([link("x")], T0)
            assert await states(store) == {"skipped": 1}

        self.play(story)

    @pytest.mark.parametrize("how", list(Hold))
    def test_a_host_given_up_while_it_is_held_is_emptied_and_stays_held(self, how: Hold) -> None:
        async def story(store: ControlledStore) -> None:
            await store.claim(links(2), T0)
            lease = await one_lease(store)
            await store.hold([A], how)
            await store.settle([released(lease, condemned="host_unreachable")], [], T0)
            assert await states(store) == {"dead": 2}
            [host] = await store.hosts()
            assert host.parked == how.value

        self.play(story)

    def test_a_budget_that_is_used_up_holds_when_the_pause_ends(self) -> None:
        async def story(store: ControlledStore) -> None:
            await store.claim(links(2), T0)
            lease = await one_lease(store, urls_per_host=1)
            await store.settle([finished(lease, lease.urls[0]), released(lease)], [], T0)
            await store.hold([A], Hold.PAUSED)
            await store.hold([A], None)
            assert await store.lease(wish(), T0) == []
            [host] = await store.hosts()
            assert host.parked == "host_budget"

        self.play(story, FrontierSettings(pages_per_host=1))

    # -- shelves --------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("limit", [1, 2, 100])
    def test_each_shelf_holds_what_is_there_and_is_read_in_parts(self, limit: int) -> None:
        async def story(store: ControlledStore) -> None:
            await store.claim([*links(5), *links(2, "b.test", front_class=2)], T0)
            refused = [link("r1", refusal=Reason.DEPTH, depth=30), link("r2", refusal=Reason.EXCLUDED)]
            await store.claim([*refused, link("r3", "b.test", refusal=Reason.DEPTH)], T0)
            lease = next(lease for lease in await store.lease(wish(), T0) if lease.host.name == "a.test")
            ended: list[Settlement] = [
                retry(lease, lease.urls[0], T0 + 5),
                died(lease, lease.urls[1]),
                finished(lease, lease.urls[2]),
            ]
            await store.settle([*ended, released(lease)], [], T0 + 3)
            found = {shelf: await on(store, shelf, limit) for shelf in Shelf}
            paths = {shelf: sorted(known.url for known in shelf_of) for shelf, shelf_of in found.items()}
            assert paths[Shelf.QUEUED] == [address(*place).fetch_url for place in [("3",), ("4",)]] + [
                address("0", "b.test").fetch_url,
                address("1", "b.test").fetch_url,
            ]
            assert paths[Shelf.DELAYED] == [address("0").fetch_url]
            assert len(paths[Shelf.REFUSED]) == 3
            [letter] = found[Shelf.DEAD]
            assert (letter.url, letter.key) == (address("1").fetch_url, address("1").key)
            assert (letter.host, letter.reason, letter.status, letter.at) == ("a.test", "http_404", 404, T0 + 3)
            deep = next(known for known in found[Shelf.REFUSED] if known.url.endswith("r1"))
            assert (deep.depth, deep.reason, deep.shelf) == (30, "depth", Shelf.REFUSED)

        self.play(story)

    # -- rulings --------------------------------------------------------------------------------------------

    def test_waiting_urls_are_refused_and_leased_ones_left_alone(self) -> None:
        async def story(store: ControlledStore) -> None:
            await store.claim(links(3), T0)
            lease = await one_lease(store, urls_per_host=1)
            await store.settle([retry(lease, lease.urls[0], T0 + 5), released(lease)], [], T0)
            lease = await one_lease(store, urls_per_host=1)
            assert names(lease.urls) == ["1"]
            known = [*await on(store, Shelf.DELAYED), *await on(store, Shelf.QUEUED)]
            rulings = [to(each, Reason.EXCLUDED) for each in known]
            assert await store.rule(rulings, None, T0) == [True, False, True]
            assert await states(store) == {"leased": 1, "skipped": 2}
            assert await store.rule(rulings, None, T0) == [False] * 3
            [told] = await store.find([address("2").key])
            assert told is not None
            assert (told.reason, told.settled_at) == ("excluded", T0)

        self.play(story)

    def test_waiting_urls_change_their_class(self) -> None:
        async def story(store: ControlledStore) -> None:
            await store.claim([*links(3, front_class=4), link("x", "b.test", front_class=3)], T0)
            known = await page(store, Shelf.QUEUED, "2")
            assert await store.rule([to(known, front_class=1)], None, T0) == [True]
            assert await store.rule([to(known, front_class=1)], None, T0) == [False]
            [lease] = await store.lease(wish(hosts=1), T0)
            assert names(lease.urls) == ["2", "0", "1"], "the host goes by its best class"
            await store.settle([released(lease)], [], T0)
            moved = await page(store, Shelf.QUEUED, "2")
            assert await store.rule([to(moved, front_class=9)], None, T0) == [True]
            leases = await store.lease(wish(), T0)
            assert [names(lease.urls) for lease in leases] == [["x"], ["0", "1", "2"]]

        self.play(story)

    def test_a_delayed_url_changes_its_class_and_not_its_time(self) -> None:
        async def story(store: ControlledStore) -> None:
            await store.claim(links(1), T0)
            lease = await one_lease(store)
            await store.settle([retry(lease, lease.urls[0], T0 + 50), released(lease)], [], T0)
            assert await store.rule([to(await page(store, Shelf.DELAYED, "0"), front_class=0)], None, T0) == [True]
            assert await store.lease(wish(), T0 + 49) == []
            assert (await one_lease(store, T0 + 50)).urls[0].front_class == 0

        self.play(story)

    def test_refused_urls_are_queued_while_there_is_room(self) -> None:
        async def story(store: ControlledStore) -> None:
            refused = [link(name, refusal=Reason.OUT_OF_SCOPE, depth=2) for name in "xy"]
            await store.claim([*refused, link("0", "b.test")], T0)
            rulings = [to(await page(store, Shelf.REFUSED, name)) for name in "xy"]
            assert await store.rule(rulings, None, T0) == [True, False]
            assert await states(store) == {"queued": 2, "skipped": 1}
            counts = await store.counts()
            assert counts.hosts == 2
            lease = next(lease for lease in await store.lease(wish(), T0) if lease.host.name == "a.test")
            assert (names(lease.urls), lease.urls[0].depth, lease.urls[0].attempts) == (["x"], 2, 0)

        self.play(story, FrontierSettings(queue_per_host=1))

    def test_refused_urls_are_queued_while_their_domain_has_room_for_their_hosts(self) -> None:
        async def story(store: ControlledStore) -> None:
            refused = [link("x", f"{name}.one.test", refusal=Reason.DEPTH) for name in "abc"]
            await store.claim([*refused, link("y", "known.one.test")], T0)
            rulings = [to(known) for known in await on(store, Shelf.REFUSED)]
            assert sorted(await store.rule(rulings, None, T0)) == [False, False, True]
            assert await states(store) == {"queued": 2, "skipped": 2}
            assert (await store.counts()).hosts == 2
            [again, _] = [to(known) for known in await on(store, Shelf.REFUSED)]
            assert await store.rule([again], None, T0) == [False], "also in another call"

        self.play(story, FrontierSettings(hosts_per_domain=2))

    def test_dead_urls_are_queued_again_with_all_their_tries(self) -> None:
        async def story(store: ControlledStore) -> None:
            await store.claim(links(2), T0)
            lease = await one_lease(store)
            await store.settle([*(died(lease, url) for url in lease.urls), released(lease)], [], T0)
            known = await page(store, Shelf.DEAD, "1")
            assert await store.rule([to(known), to(known)], None, T0) == [True, False]
            assert await states(store) == {"queued": 1, "dead": 1}
            assert (await store.hosts())[0].dead == 1
            [url] = (await one_lease(store)).urls
            assert (url.attempts, url.id) == (0, known.id)

        self.play(story)

    def test_nothing_is_queued_at_a_blocked_host(self) -> None:
        async def story(store: ControlledStore) -> None:
            await store.claim([link("x"), link("y", refusal=Reason.DEPTH)], T0)
            lease = await one_lease(store)
            await store.settle([died(lease, lease.urls[0]), released(lease)], [], T0)
            await store.hold([A], Hold.BLOCKED)
            rulings = [to(await page(store, Shelf.DEAD, "x")), to(await page(store, Shelf.REFUSED, "y"))]
            assert await store.rule(rulings, None, T0) == [False, False]
            assert await states(store) == {"dead": 1, "skipped": 1}

        self.play(story)

    def test_a_dropped_letter_is_skipped_for_good_and_stays_known(self) -> None:
        async def story(store: ControlledStore) -> None:
            await store.claim([link("x")], T0)
            lease = await one_lease(store)
            await store.settle([died(lease, lease.urls[0]), released(lease)], [], T0)
            letter = await page(store, Shelf.DEAD, "x")
            assert await store.rule([to(letter, Reason.DROPPED)] * 2, None, T0) == [True, False]
            assert await store.dead() == []
            assert await store.claim([link("x", depth=0)], T0) == [Claimed.KNOWN]
            assert await only_state(store, "x") is UrlState.SKIPPED
            assert (await store.hosts())[0].dead == 0
            [told] = await store.find([address("x").key])
            assert told is not None
            assert (told.reason, told.evidence is not None and told.evidence.status) == ("dropped", 404)

        self.play(story)

    def test_rulings_and_the_progress_of_their_command_are_one_transaction(self) -> None:
        """A ruling that breaks the store's own rules takes the progress back with it."""

        async def story(store: ControlledStore) -> None:
            await store.claim(links(2), T0)
            [number] = await store.ask(["{}"], T0)
            first, second = await on(store, Shelf.QUEUED)
            with pytest.raises(Exception, match="rule"):
                await store.rule([to(first, Reason.DEPTH), to(second, front_class=77)], Asked(number, "{}", "9"), T0)
            assert await store.asked() == [Asked(number, "{}")]
            assert await states(store) == {"queued": 2}
            await store.rule([to(first, Reason.DEPTH)], Asked(number, "{}", "9"), T0)
            assert await store.asked() == [Asked(number, "{}", "9")]

        self.play(story)

    def test_a_ruling_on_a_url_that_moved_meanwhile_changes_nothing(self) -> None:
        async def story(store: ControlledStore) -> None:
            await store.claim([link("x"), link("y", refusal=Reason.EXCLUDED)], T0)
            queued = await page(store, Shelf.QUEUED, "x")
            refused = await page(store, Shelf.REFUSED, "y")
            await end_all(store)
            gone = replace(queued, shelf=Shelf.DEAD)
            assert await store.rule([to(queued, Reason.DEPTH), to(gone), to(refused, Reason.DEPTH)]) == [False] * 3
            assert await states(store) == {"done": 1, "skipped": 1}

        self.play(story)

    # -- what hosts tell ------------------------------------------------------------------------------------

    def test_hosts_tell_what_was_found_what_was_a_copy_and_which_trap_they_look_like(self) -> None:
        async def story(store: ControlledStore) -> None:
            await store.claim([*links(3), link("no", refusal=Reason.DEPTH)], T0)
            lease = await one_lease(store)
            same = [finished(lease, url, seen(body=b"same")) for url in lease.urls[:2]]
            await store.settle([*same, released(lease, latency_ms=250)], [], T0)
            await store.alarm([(A[0], "calendar")])
            [host] = await store.hosts()
            assert (host.discovered, host.duplicates, host.alarm) == (3, 1, "calendar")
            assert host.pace.latency_ms == 250
            [again] = await store.lease(wish(), T0)
            assert again.host.pace.latency_ms == 250

        self.play(story)
