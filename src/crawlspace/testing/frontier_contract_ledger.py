"""The frontier's contract, part four: what it remembers beside URLs, and what it answers when asked."""

from __future__ import annotations

from msgspec.structs import replace

from crawlspace.exchange import RobotsFile, RobotsVerdict
from crawlspace.states import UrlState
from crawlspace.testing.frontier_contract_words import (
    T0,
    FrontierSuite,
    Store,
    address,
    failed_processing,
    link,
    links,
    one_lease,
    released,
    states,
    wish,
)
from crawlspace.types import Claim, Reason, host_id


class LedgerSuite(FrontierSuite):
    """Facts, robots files and questions."""

    def test_an_empty_frontier_has_nothing_to_do(self) -> None:
        async def story(store: Store) -> None:
            assert await states(store) == {}
            assert await store.lease(wish(), T0) == []
            assert await store.due_in(T0) is None
            assert await store.reclaim(T0) == 0
            assert (await store.dead(), await store.hosts(), await store.unprocessed()) == ([], [], [])
            assert await store.find([address("x").key]) == [None]
            assert await store.settle([], [], T0) == []

        self.play(story)

    def test_facts_are_kept_and_replaced(self) -> None:
        async def story(store: Store) -> None:
            before = await store.notes()
            await store.note({"key": "0" * 32, "scope": "[]"})
            await store.note({"scope": '["a.test"]'})
            assert await store.notes() == {**before, "key": "0" * 32, "scope": '["a.test"]'}
            assert "format" in before

        self.play(story)

    def test_robots_files_are_kept_and_replaced(self) -> None:
        async def story(store: Store) -> None:
            rules = RobotsFile(
                "https://a.test", T0, T0 + 1, RobotsVerdict.RULES, "User-agent: *\nDisallow: /x", "200"
            )
            none = RobotsFile("http://b.test:81", T0, T0 + 1, RobotsVerdict.ALLOW_ALL, detail="404")
            await store.keep_robots([rules, none])
            assert await store.robots(["http://b.test:81", "http://c.test", "https://a.test"]) == [none, None, rules]
            newer = replace(rules, verdict=RobotsVerdict.DEFER, text="", expires_at=T0 + 9)
            await store.keep_robots([newer])
            assert await store.robots(["https://a.test"]) == [newer]

        self.play(story)

    def test_hosts_are_told_by_name_page_by_page(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([link("x", f"{name}.test") for name in "cabed"], T0)
            await store.claim([link("x", "refused.test", refusal=Reason.EXCLUDED)], T0)
            first = await store.hosts(limit=3)
            rest = await store.hosts(after=first[-1].name)
            assert [host.name for host in [*first, *rest]] == [f"{name}.test" for name in "abcde"]
            assert {(host.queued, host.leased, host.parked) for host in first} == {(1, 0, None)}

        self.play(story)

    def test_unprocessed_urls_are_told_in_order(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(4), T0)
            lease = await one_lease(store)
            await store.settle([failed_processing(lease, url) for url in lease.urls[1:]], [], T0)
            stories = await store.unprocessed(after=2, limit=1)
            assert [(told.id, told.state, told.reason) for told in stories] == [(3, UrlState.STORED, "parser")]
            assert [told.id for told in await store.unprocessed()] == [2, 3, 4]

        self.play(story)

    def test_refused_urls_of_a_host_are_told_by_reason_page_by_page(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(4, refusal=Reason.ROBOTS), T0)
            await store.claim(
                [link("x", refusal=Reason.DEPTH), link("y"), link("0", "b.test", refusal=Reason.ROBOTS)]
            )
            hid = host_id(address("0").key)
            first = await store.refused(hid, Reason.ROBOTS, limit=3)
            rest = await store.refused(hid, Reason.ROBOTS, after=first[-1].id)
            assert [told.url for told in [*first, *rest]] == [address(str(name)).fetch_url for name in range(4)]
            assert {(told.state, told.reason) for told in first} == {(UrlState.SKIPPED, "robots")}
            assert await store.refused(hid, Reason.EXCLUDED) == []

        self.play(story)

    def test_a_story_says_when_a_queued_url_can_leave(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(2, front_class=3, depth=1, label="shop"), T0)
            lease = await one_lease(store, urls_per_host=1)
            first, second = await store.find([address("0").key, address("1").key])
            assert first is not None
            assert second is not None
            assert (first.state, first.due) == (UrlState.LEASED, None)
            assert (second.state, second.front_class, second.label) == (UrlState.QUEUED, 3, "shop")
            await store.settle([released(lease, T0 + 777)], [], T0)
            [first] = await store.find([address("0").key])
            assert first is not None
            assert (first.state, first.due, first.settled_at, first.evidence) == (
                UrlState.QUEUED,
                T0 + 777,
                None,
                None,
            )

        self.play(story)

    def test_answers_do_not_depend_on_the_size_of_a_hosts_number(self) -> None:
        """Host numbers fill 48 bits: the largest and the smallest are hosts like any other."""

        async def story(store: Store) -> None:
            edges = [bytes(6), b"\xff" * 6, b"\x80" + bytes(5), b"\x7f" + b"\xff" * 5]
            claims = [
                Claim(replace(address("x", f"h{number}.test"), key=edge + bytes(10)))
                for number, edge in enumerate(edges)
            ]
            await store.claim(claims, T0)
            leases = await store.lease(wish(), T0)
            assert sorted(url.key for lease in leases for url in lease.urls) == sorted(c.address.key for c in claims)
            assert await states(store) == {"leased": 4}

        self.play(story)
