"""The frontier's contract, part one: what is new, what is known, and what a repeated claim can change."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.states import UrlState
from crawlspace.testing.frontier_contract_words import (
    T0,
    FrontierSuite,
    Store,
    address,
    end_all,
    finished,
    link,
    links,
    names,
    one_lease,
    only_state,
    released,
    retry,
    spend,
    states,
    wish,
)
from crawlspace.types import PATH_DEPENDENT, Claimed, Reason, Refused, Relation, RequestSpec, host_id


class ClaimSuite(FrontierSuite):
    """Claims."""

    def test_one_url_claimed_by_a_hundred_tasks_is_queued_once(self) -> None:
        async def story(store: Store) -> None:
            answers = await asyncio.gather(*(store.claim([link("x")], T0) for _ in range(100)))
            assert Counter(answer for [answer] in answers) == {Claimed.NEW: 1, Claimed.KNOWN: 99}
            assert await states(store) == {"queued": 1}
            assert names((await one_lease(store)).urls) == ["x"]

        self.play(story)

    def test_a_key_twice_in_one_batch_is_new_once(self) -> None:
        async def story(store: Store) -> None:
            claims = [link("x"), link("y"), link("x"), link("x")]
            assert await store.claim(claims, T0) == [Claimed.NEW, Claimed.NEW, Claimed.KNOWN, Claimed.KNOWN]
            assert await store.claim(claims, T0) == [Claimed.KNOWN] * 4
            assert await store.claim([], T0) == []
            assert await states(store) == {"queued": 2}

        self.play(story)

    def test_more_claims_than_fit_one_statement_are_all_answered(self) -> None:
        async def story(store: Store) -> None:
            claims = [link(str(number), f"h{number % 7}.test") for number in range(1_500)]
            assert await store.claim(claims[:900], T0) == [Claimed.NEW] * 900
            assert await store.claim(claims, T0) == [Claimed.KNOWN] * 900 + [Claimed.NEW] * 600
            assert (await store.counts()).hosts == 7

        self.play(story)

    def test_a_url_keeps_what_its_claim_said(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([link("parent")], T0)
            await end_all(store)
            said = link(
                "x",
                depth=3,
                hops=2,
                front_class=4,
                parent=1,
                relation=Relation.REDIRECT,
                label="shop",
                meta='{"a":1}',
                request=RequestSpec("POST", b"\x00\xff", "text/plain"),
            )
            await store.claim([said], T0 + 5)
            [url] = (await one_lease(store, T0 + 5)).urls
            assert (url.id, url.key, url.url) == (2, said.address.key, said.address.fetch_url)
            assert (url.depth, url.hops, url.front_class, url.parent) == (3, 2, 4, 1)
            assert (url.relation, url.label, url.meta) == (Relation.REDIRECT, "shop", '{"a":1}')
            assert (url.request, url.found_at, url.attempts, url.history) == (said.request, T0 + 5, 0, ())
            [story] = await store.find([said.address.key])
            assert story is not None
            assert story.parent == address("parent").fetch_url

        self.play(story)

    @pytest.mark.parametrize("together", [True, False])
    @pytest.mark.parametrize("later", [False, True])
    def test_a_queued_url_takes_the_better_class_and_the_better_depth(self, together: bool, later: bool) -> None:
        """Also in the same batch, and also while it waits for a time of its own."""

        async def story(store: Store) -> None:
            first = link("x", front_class=5, depth=5, hops=1, relation=Relation.REDIRECT)
            better = [link("x", front_class=3, depth=9), link("x", front_class=8, depth=2)]
            if together:
                assert await store.claim([first, *better], T0) == [Claimed.NEW, Claimed.KNOWN, Claimed.KNOWN]
            else:
                await store.claim([first], T0)
                if later:
                    lease = await one_lease(store)
                    await store.settle([retry(lease, lease.urls[0], T0 + 1), released(lease)], [], T0)
                for claim in better:
                    await store.claim([claim], T0)
            [url] = (await one_lease(store, T0 + 1)).urls
            assert (url.front_class, url.depth, url.hops, url.relation) == (3, 2, 0, Relation.HYPERLINK)

        self.play(story)

    def test_a_better_class_moves_the_host_to_the_front(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([link("x", "a.test", front_class=5), link("x", "b.test", front_class=5)], T0)
            await store.claim([link("x", "b.test", front_class=1)], T0)
            [lease] = await store.lease(wish(hosts=1), T0)
            assert lease.host.name == "b.test"

        self.play(story)

    def test_worse_claims_and_claims_to_leased_urls_change_nothing(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([link("x", front_class=5, depth=5)], T0)
            await store.claim([link("x", front_class=6, depth=6), link("x", refusal=Reason.DEPTH, depth=0)], T0)
            lease = await one_lease(store)
            assert (lease.urls[0].front_class, lease.urls[0].depth) == (5, 5)
            await store.claim([link("x", front_class=0, depth=0)], T0)
            await store.settle([released(lease)], [], T0)
            assert (await one_lease(store)).urls == lease.urls

        self.play(story)

    def test_a_claim_that_lifts_a_refusal_queues_the_url_as_it_was(self) -> None:
        """And no URL that was refused for another reason, or whose refusal it brings itself."""

        async def story(store: Store) -> None:
            spec = RequestSpec("POST", b"a=1")
            old = link("x", depth=7, front_class=3, label="shop", request=spec, refusal=Reason.ROBOTS)
            await store.claim([old, link("y", refusal=Reason.EXCLUDED), link("z", refusal=Reason.ROBOTS)], T0)
            lifting = [link(name, depth=2, lifts=Reason.ROBOTS) for name in "xy"]
            lifting.append(link("z", refusal=Reason.EXCLUDED, lifts=Reason.ROBOTS))
            assert await store.claim(lifting, T0) == [Claimed.KNOWN] * 3
            assert await states(store) == {"queued": 1, "skipped": 2}
            [url] = (await one_lease(store)).urls
            assert (url.url, url.depth, url.front_class) == (address("x").fetch_url, 7, 3)
            assert (url.label, url.request, url.attempts) == ("shop", spec, 0)
            assert [told.url for told in await store.refused(host_id(url.key), Reason.ROBOTS)] == [
                address("z").fetch_url
            ]

        self.play(story)

    def test_refused_urls_are_kept_with_their_reason_up_to_a_cap(self) -> None:
        """Beyond the cap they are counted, not known; another reason or host has a cap of its own."""

        async def story(store: Store) -> None:
            refused = links(5, refusal=Reason.EXCLUDED)
            assert await store.claim(refused, T0) == [Claimed.NEW] * 3 + [Claimed.OVER_BUDGET] * 2
            assert await store.claim(refused, T0) == [Claimed.KNOWN] * 3 + [Claimed.OVER_BUDGET] * 2
            others = [link("p", refusal=Reason.PATH_DEPTH), link("q", "b.test", refusal=Reason.EXCLUDED)]
            assert await store.claim(others, T0) == [Claimed.NEW] * 2
            assert await states(store) == {"skipped": 5}
            counts = await store.counts()
            assert (counts.refused_beyond_cap, counts.hosts) == (4, 0)
            [kept, gone] = await store.find([address("0").key, address("4").key])
            assert kept is not None
            assert (kept.state, kept.reason, kept.host) == (UrlState.SKIPPED, "excluded", "a.test")
            assert gone is None
            assert await store.hosts() == []
            assert await store.lease(wish(), T0) == []
            assert await store.due_in(T0) is None
            assert await store.claim([link("4")], T0) == [Claimed.NEW]

        self.play(story, FrontierSettings(refusals_kept=3))

    @pytest.mark.parametrize("reason", list(Reason))
    @pytest.mark.parametrize("together", [True, False])
    def test_only_refusals_of_the_path_are_undone_by_a_better_path(self, reason: Reason, together: bool) -> None:
        async def story(store: Store) -> None:
            refused, again = link("x", depth=9, refusal=reason), link("x", depth=2, label="better")
            if together:
                assert await store.claim([refused, again], T0) == [Claimed.NEW, Claimed.KNOWN]
            else:
                await store.claim([refused], T0)
                await store.claim([link("x", depth=9, refusal=reason)], T0)
                assert await store.claim([again], T0) == [Claimed.KNOWN]
            undone = reason in PATH_DEPENDENT
            assert await states(store) == ({"queued": 1} if undone else {"skipped": 1})
            assert [names(lease.urls) for lease in await store.lease(wish(), T0)] == ([["x"]] if undone else [])

        self.play(story)

    def test_a_readmitted_url_makes_room_under_the_cap(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([link("x", refusal=Reason.DEPTH)], T0)
            await store.claim([link("x")], T0)
            assert await store.claim([link("y", refusal=Reason.DEPTH)], T0) == [Claimed.NEW]
            assert await store.claim([link("z", refusal=Reason.DEPTH)], T0) == [Claimed.OVER_BUDGET]

        self.play(story, FrontierSettings(refusals_kept=1))

    def test_a_full_queue_refuses_until_there_is_room(self) -> None:
        async def story(store: Store) -> None:
            answers = await store.claim(links(5), T0)
            assert answers == [Claimed.NEW] * 3 + [Claimed.OVER_BUDGET] * 2
            assert await states(store) == {"queued": 2, "skipped": 1}
            assert (await store.find([address("2").key]))[0].reason == "host_budget"  # type: ignore[union-attr]
            assert await store.claim([link("2")], T0) == [Claimed.KNOWN]
            assert await states(store) == {"queued": 2, "skipped": 1}
            await end_all(store)
            await store.claim([link("2")], T0)
            assert await states(store) == {"queued": 1, "done": 2}

        self.play(story, FrontierSettings(queue_per_host=2, refusals_kept=1))

    def test_a_seeds_host_has_no_full_queue(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(9, seed_host=True), T0)
            assert await states(store) == {"queued": 9}

        self.play(story, FrontierSettings(queue_per_host=2))

    def test_what_has_ended_is_not_queued_again(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(1), T0)
            lease = await one_lease(store)
            await spend(store, lease)
            assert await store.claim([link("0", front_class=0, depth=0)], T0) == [Claimed.KNOWN]
            assert await only_state(store, "0") is UrlState.DONE
            assert await store.lease(wish(), T0) == []

        self.play(story)

    def test_numbers_follow_arrival_and_stay(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([link("a"), link("skipped", refusal=Reason.ROBOTS), link("b")], T0)
            stories = await store.find([address(name).key for name in ("a", "skipped", "b")])
            assert [story.id for story in stories if story] == [1, 2, 3]
            lease = await one_lease(store)
            await store.settle([finished(lease, lease.urls[0]), retry(lease, lease.urls[1], T0)], [], T0)
            stories = await store.find([address(name).key for name in ("a", "skipped", "b")])
            assert [story.id for story in stories if story] == [1, 2, 3]

        self.play(story)

    def test_a_link_to_what_was_refused_at_the_door_for_its_way_queues_it_again(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(2), T0)
            lease = await one_lease(store)
            for url, reason in zip(lease.urls, (Reason.REDIRECT_CHAIN, Reason.ROBOTS), strict=True):
                await store.settle([Refused(lease.token, lease.host.hid, url, reason)], [], T0)
            await store.settle([released(lease)], [], T0)
            assert await states(store) == {"skipped": 2}
            assert await store.claim(links(2), T0) == [Claimed.KNOWN] * 2
            assert await states(store) == {"queued": 1, "skipped": 1}
            assert await only_state(store, "0") is UrlState.QUEUED

        self.play(story)
