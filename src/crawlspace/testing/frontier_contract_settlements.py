"""The frontier's contract, part three: how a leased URL ends, and that it ends once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlspace.errors import IllegalMove
from crawlspace.states import UrlState
from crawlspace.testing.frontier_contract_words import (
    T0,
    TTL,
    FrontierSuite,
    Store,
    address,
    all_answers,
    died,
    failed_processing,
    finished,
    link,
    links,
    names,
    one_lease,
    only_state,
    redirected,
    released,
    retry,
    seen,
    spend,
    states,
    wish,
)
from crawlspace.types import (
    Answer,
    Attempt,
    Lease,
    Moved,
    Pointer,
    QueuedUrl,
    Reason,
    Refused,
    Rerouted,
    Settlement,
)

ENDINGS: dict[str, tuple[Callable[[Lease, QueuedUrl], Settlement], UrlState]] = {
    "finished": (finished, UrlState.DONE),
    "processing failed": (failed_processing, UrlState.STORED),
    "redirect": (lambda lease, url: redirected(lease, url, "http://b.test/"), UrlState.REDIRECTED),
    "moved": (
        lambda lease, url: Moved(lease.token, lease.host.hid, url, seen(301), "http://www.a.test/0"),
        UrlState.QUEUED,
    ),
    "retry": (lambda lease, url: retry(lease, url, T0 + 9), UrlState.QUEUED),
    "rerouted": (
        lambda lease, url: Rerouted(
            lease.token, lease.host.hid, url, seen(403, error="blocked"), ("second",), T0 + 9
        ),
        UrlState.QUEUED,
    ),
    "refused": (
        lambda lease, url: Refused(lease.token, lease.host.hid, url, Reason.ROBOTS, "Disallow: /"),
        UrlState.SKIPPED,
    ),
    "died": (died, UrlState.DEAD),
}

LEASE_ONLY = [name for name in ENDINGS if name not in ("refused", "died")]
"""What can only happen to a leased URL; the others may also happen to a queued one, though not by a lease."""


class SettlementSuite(FrontierSuite):
    """Settlements."""

    @pytest.mark.parametrize("ending", list(ENDINGS))
    def test_each_settlement_leads_to_its_state_and_is_made_once(self, ending: str) -> None:
        """Told again by the same lease, while it lives, after its release, it is known and changes nothing."""
        settlement, state = ENDINGS[ending]

        async def story(store: Store) -> None:
            await store.claim(links(2), T0)
            lease = await one_lease(store)
            told = settlement(lease, lease.urls[0])
            assert await store.settle([told, told], [], T0) == [Answer.SETTLED, Answer.ALREADY]
            assert await only_state(store, "0") is state
            before = await store.counts()
            assert await store.settle([told], [], T0) == [Answer.ALREADY]
            assert await store.counts() == before
            release = released(lease, T0 + 100)
            assert await store.settle([release], [], T0) == [Answer.SETTLED]
            before = await store.counts()
            assert await store.settle([told, release], [], T0) == [Answer.ALREADY] * 2
            assert await store.counts() == before
            assert before.known == 2

        self.play(story)

    @pytest.mark.parametrize("ending", list(ENDINGS))
    def test_a_url_that_is_not_the_leases_stays_as_it_is(self, ending: str) -> None:
        settlement, _ = ENDINGS[ending]

        async def story(store: Store) -> None:
            await store.claim(links(2), T0)
            lease = await one_lease(store, urls_per_host=2)
            await store.settle([released(lease)], [], T0)
            again = await one_lease(store, urls_per_host=1)
            before = await store.counts()
            foreign = settlement(again, lease.urls[1])
            if ending in LEASE_ONLY:
                with pytest.raises(IllegalMove):
                    await store.settle([foreign], [], T0)
            else:
                assert await store.settle([foreign], [], T0) == [Answer.STALE]
            assert await store.counts() == before
            assert await only_state(store, "1") is UrlState.QUEUED

        self.play(story)

    def test_an_illegal_move_undoes_the_whole_call(self) -> None:
        """Links, settlements before it: a settle happens whole or not at all."""

        async def story(store: Store) -> None:
            await store.claim(links(3), T0)
            lease = await one_lease(store, urls_per_host=2)
            await store.settle([finished(lease, lease.urls[0])], [], T0)
            before = await store.counts()
            other = QueuedUrl(id=3, key=address("2").key, url="", front_class=5, depth=0)
            wrong = [finished(lease, lease.urls[1]), finished(lease, other)]
            with pytest.raises(IllegalMove):
                await store.settle(wrong, [link("from the page")], T0)
            assert await store.counts() == before
            assert await store.find([address("from the page").key]) == [None]
            assert await only_state(store, "1") is UrlState.LEASED
            assert await store.settle(wrong[:1], [link("from the page")], T0) == [Answer.SETTLED]
            assert (await store.counts()).known == before.known + 1

        self.play(story)

    def test_links_are_claimed_with_the_page_that_gave_them(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(1), T0)
            lease = await one_lease(store)
            found = [link("0"), link("x", parent=1), link("x", "b.test", parent=1), link("x")]
            assert await store.settle([finished(lease, lease.urls[0])], found, T0) == [Answer.SETTLED]
            assert await states(store) == {"queued": 2, "done": 1}
            [story] = await store.find([address("x").key])
            assert story is not None
            assert story.parent == address("0").fetch_url

        self.play(story)

    def test_links_of_a_stale_settlement_are_known_all_the_same(self) -> None:
        """They were found; only the page itself is fetched again."""

        async def story(store: Store) -> None:
            await store.claim(links(1), T0)
            lease = await one_lease(store)
            await store.reclaim(T0 + TTL)
            assert await store.settle([finished(lease, lease.urls[0])], [link("x")], T0 + TTL) == [Answer.STALE]
            assert await states(store) == {"queued": 2}

        self.play(story)

    def test_a_lease_that_was_reclaimed_still_knows_what_it_settled(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(2), T0)
            lease = await one_lease(store)
            told: list[Settlement] = [retry(lease, lease.urls[0], T0), finished(lease, lease.urls[1])]
            assert all_answers(Answer.SETTLED, await store.settle(told, [], T0))
            await store.reclaim(T0 + TTL)
            assert all_answers(Answer.ALREADY, await store.settle(told, [], T0))
            assert await store.settle([released(lease)], [], T0) == [Answer.STALE]

        self.play(story)

    def test_a_retry_waits_for_its_time_and_remembers_the_attempt(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(1), T0)
            lease = await one_lease(store)
            await store.settle([retry(lease, lease.urls[0], T0 + 7_000), released(lease, T0 + 1_000)], [], T0)
            assert await states(store) == {"queued": 1}
            assert await store.due_in(T0) == 7_000
            [told] = await store.find([address("0").key])
            assert told is not None
            assert (told.due, told.attempts) == (T0 + 7_000, 1)
            assert await store.lease(wish(), T0 + 6_999) == []
            [url] = (await one_lease(store, T0 + 7_000)).urls
            assert (url.attempts, url.history) == (1, (Attempt(T0, "http_503", 503),))
            assert url.id == lease.urls[0].id

        self.play(story)

    def test_only_the_last_attempts_are_remembered(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(1), T0)
            for _ in range(12):
                lease = await one_lease(store)
                await store.settle([retry(lease, lease.urls[0], T0), released(lease)], [], T0)
            [url] = (await one_lease(store)).urls
            assert (url.attempts, len(url.history)) == (12, 10)

        self.play(story)

    def test_a_retry_that_comes_due_during_the_same_visit_is_not_that_visits(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(2), T0)
            lease = await one_lease(store)
            told = retry(lease, lease.urls[0], T0 + 1)
            await store.settle([told], [], T0)
            assert await store.lease(wish(), T0 + 1) == []
            assert await states(store) == {"queued": 1, "leased": 1}
            assert await only_state(store, "0") is UrlState.QUEUED
            assert await store.settle([told], [], T0 + 1) == [Answer.ALREADY]
            await store.reclaim(T0 + TTL)
            assert await states(store) == {"queued": 2}
            lease = await one_lease(store, T0 + 2 * TTL)
            assert [(url.suspect, url.attempts) for url in lease.urls] == [(0, 1)], "the other is a suspect"

        self.play(story)

    def test_a_moved_url_is_queued_under_its_new_address(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(1, hops=1), T0)
            lease = await one_lease(store)
            moved = Moved(lease.token, lease.host.hid, lease.urls[0], seen(301, size=40), "https://a.test/0")
            await store.settle([moved], [], T0)
            assert await states(store) == {"queued": 1}
            await store.settle([released(lease)], [], T0)
            again = await one_lease(store)
            [url] = again.urls
            assert (url.url, url.id, url.key) == ("https://a.test/0", 1, lease.urls[0].key)
            assert (url.hops, url.attempts, again.host.fetched) == (2, 0, 1)

        self.play(story)

    def test_what_a_request_gave_is_kept(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(2), T0)
            lease = await one_lease(store)
            got = seen(200, b"text", size=123)
            await store.settle([finished(lease, lease.urls[0], got)], [], T0 + 50)
            await store.settle([redirected(lease, lease.urls[1], "http://b.test/")], [], T0 + 60)
            done, away = await store.find([address("0").key, address("1").key])
            assert done is not None
            assert away is not None
            assert (done.evidence, done.settled_at, done.attempts) == (got, T0 + 50, 1)
            assert (away.state, away.target) == (UrlState.REDIRECTED, "http://b.test/")
            assert got.pointer == Pointer("0001.warc.gz", 0, 123)

        self.play(story)

    def test_requests_pages_and_bytes_are_counted(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(len(ENDINGS)), T0)
            lease = await one_lease(store)
            ways = [settlement for settlement, _ in ENDINGS.values()]
            told = [way(lease, url) for way, url in zip(ways, lease.urls, strict=True)]
            assert all_answers(Answer.SETTLED, await store.settle([*told, released(lease)], [], T0))
            counts = await store.counts()
            assert (counts.fetches, counts.pages, counts.bytes, counts.hosts) == (7, 1, 700, 1)
            [host] = await store.hosts()
            assert (host.fetched, host.done, host.dead, host.queued, host.leased) == (7, 1, 1, 3, 0)
            assert await states(store) == {
                "queued": 3, "stored": 1, "done": 1, "redirected": 1, "skipped": 1, "dead": 1
            }  # fmt: skip

        self.play(story)

    def test_the_first_url_done_with_some_bytes_owns_them(self) -> None:
        """Empty bodies and errors own nothing, and a page that only was stored does not either."""

        async def story(store: Store) -> None:
            await store.claim(links(8), T0)
            lease = await one_lease(store)
            stored = failed_processing(lease, lease.urls[0])
            bodies = [
                (200, b"same"),
                (200, b"same"),
                (200, b""),
                (200, b""),
                (404, b"gone"),
                (200, b"gone"),
                (200, b"own"),
            ]
            told = [
                finished(lease, url, seen(status, body))
                for url, (status, body) in zip(lease.urls[1:], bodies, strict=True)
            ]
            await store.settle([stored, *told], [], T0)
            stories = await store.find([address(str(number)).key for number in range(8)])
            copies = {story.id: story.copy_of for story in stories if story and story.copy_of}
            assert copies == {3: address("1").fetch_url}
            assert (await store.counts()).duplicates == 1

        self.play(story)

    def test_dead_letters_tell_their_story_and_can_be_revived(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([link("page")], T0)
            lease = await one_lease(store)
            await store.settle([finished(lease, lease.urls[0])], links(3, parent=1, depth=1), T0)
            await store.settle([released(lease)], [], T0)
            lease = await one_lease(store)
            await store.settle([retry(lease, lease.urls[0], T0), died(lease, lease.urls[1])], [], T0)
            await store.settle([died(lease, lease.urls[2], "dns"), released(lease)], [], T0 + 1)
            lease = await one_lease(store, T0 + 1)
            await store.settle([died(lease, lease.urls[0]), released(lease)], [], T0 + 2)
            letters = await store.dead()
            assert [(d.id, d.error, d.attempts, d.died_at) for d in letters] == [
                (2, "http_404", 2, T0 + 2), (3, "http_404", 1, T0), (4, "dns", 1, T0 + 1)
            ]  # fmt: skip
            assert (letters[0].history, letters[0].parent) == (
                (Attempt(T0, "http_503", 503),),
                address("page").fetch_url,
            )
            assert [letter.id for letter in await store.dead(after=2, limit=1)] == [3]
            assert await store.revive([2, 4, 1, 99], T0 + 3) == 2
            assert await states(store) == {"queued": 2, "done": 1, "dead": 1}
            lease = await one_lease(store, T0 + 3)
            assert [(url.id, url.attempts) for url in lease.urls] == [(2, 0), (4, 0)]
            await spend(store, lease)
            assert names(lease.urls) == ["0", "2"]
            [host] = await store.hosts()
            assert (host.dead, host.done) == (1, 3)

        self.play(story)

    def test_what_is_revived_while_the_lease_that_settled_it_lives_is_not_its_any_more(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(2), T0)
            lease = await one_lease(store)
            first, second = lease.urls
            await store.settle([died(lease, first)], [], T0)
            assert await store.revive([first.id], T0) == 1
            assert await states(store) == {"queued": 1, "leased": 1}
            assert await store.settle([finished(lease, first)], [], T0) == [Answer.ALREADY]
            told: list[Settlement] = [finished(lease, second), released(lease)]
            assert all_answers(Answer.SETTLED, await store.settle(told, [], T0))
            again = await one_lease(store, T0 + 1)
            assert [url.id for url in again.urls] == [first.id]

        self.play(story)
