"""What every frontier must do about routes: inherit the suite beside the frontier's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, cast

from msgspec.structs import replace

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.ports import RouteBook
from crawlspace.states import UrlState
from crawlspace.testing.frontier_contract_words import (
    T0,
    FrontierSuite,
    Store,
    address,
    finished,
    links,
    one_lease,
    released,
    seen,
    states,
)
from crawlspace.types import Again, Answer, Died, Evidence, Lease, QueuedUrl, Rerouted, RouteFigures, Settlement

WEEK = 7 * 86_400_000


class RoutesStore(Store, RouteBook, Protocol):
    """What this contract is about."""


def rerouted(lease: Lease, url: QueuedUrl, *routes: str, due: int = T0) -> Rerouted:
    """Blocked where it was asked for, and sent on."""
    evidence = replace(seen(403, error="blocked"), detail="a-wall", route=url.route)
    return Rerouted(lease.token, lease.host.hid, url, evidence, routes, due)


class RoutesContract(FrontierSuite):
    """Blocked URLs on their way, what routes cost, and their budgets."""

    def way(self, story: Callable[[RoutesStore], Awaitable[None]]) -> None:
        """Run one test's coroutine on a fresh store."""
        self.play(lambda store: story(cast(RoutesStore, store)))

    def test_a_blocked_url_goes_on_by_its_route_with_all_tries(self) -> None:
        async def story(store: RoutesStore) -> None:
            await store.claim(links(1), T0)
            lease = await one_lease(store)
            (url,) = lease.urls
            assert (url.route, url.routes) == ("", ())
            away = rerouted(lease, url, "second", due=T0 + 5)
            assert await store.settle([away, released(lease)], [], T0) == [Answer.SETTLED] * 2
            assert await store.settle([away], [], T0) == [Answer.ALREADY]
            assert await states(store) == {"queued": 1}
            (told,) = await store.find([address("0").key])
            assert told is not None
            assert told.routes == ("second",)
            lease = await one_lease(store, T0 + 5)
            (url,) = lease.urls
            assert (url.route, url.routes, url.attempts) == ("second", ("second",), 0)
            assert [(each.error, each.status) for each in url.history] == [("blocked (a-wall)", 403)]
            done = finished(lease, url, replace(seen(200), route="second"))
            await store.settle([rerouted(lease, url, "second", "third"), released(lease)], [], T0 + 5)
            lease = await one_lease(store, T0 + 6)
            assert lease.urls[0].route == "third"
            done = replace(done, token=lease.token, url=lease.urls[0])
            await store.settle([done, released(lease)], [], T0 + 6)
            (told,) = await store.find([address("0").key])
            assert told is not None
            assert (told.state, told.routes, told.attempts) == (UrlState.DONE, ("second", "third"), 1)
            assert (await store.counts()).fetches == 3

        self.way(story)

    def test_a_dead_url_that_is_revived_begins_anew(self) -> None:
        async def story(store: RoutesStore) -> None:
            await store.claim(links(1), T0)
            lease = await one_lease(store)
            await store.settle([rerouted(lease, lease.urls[0], "second"), released(lease)], [], T0)
            lease = await one_lease(store, T0)
            (url,) = lease.urls
            nothing = Evidence(T0, error="blocked", detail="nothing left", route="second", asked=False)
            dead = Died(lease.token, lease.host.hid, url, nothing)
            assert await store.settle([dead, released(lease)], [], T0) == [Answer.SETTLED] * 2
            assert (await store.counts()).fetches == 1
            (letter,) = await store.dead()
            assert (letter.error, letter.detail, letter.attempts) == ("blocked", "nothing left", 0)
            assert await store.revive([letter.id], T0) == 1
            lease = await one_lease(store, T0)
            assert lease.urls[0].routes == ()

        self.way(story)

    def test_a_page_is_visited_again_by_the_route_that_brought_it(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(1), T0)
            lease = await one_lease(store)
            await store.settle([rerouted(lease, lease.urls[0], "second"), released(lease)], [], T0)
            lease = await one_lease(store, T0)
            done = replace(finished(lease, lease.urls[0]), again=Again(WEEK))
            await store.settle([done, released(lease)], [], T0)
            lease = await one_lease(store, T0 + WEEK)
            (url,) = lease.urls
            assert (url.generation, url.attempts, url.routes) == (1, 0, ("second",))

        self.play(story, FrontierSettings(revisits=True, waits_for_visits=True))

    def test_routes_are_counted_and_plain_http_by_what_was_blocked(self) -> None:
        async def story(store: RoutesStore) -> None:
            await store.claim(links(3), T0)
            assert await store.route_figures() == []
            lease = await one_lease(store)
            first, second, third = lease.urls
            ends: list[Settlement] = [
                rerouted(lease, first, "way"),
                rerouted(lease, second, "way"),
                finished(lease, third),
            ]
            await store.settle([*ends, released(lease)], [], T0)
            lease = await one_lease(store, T0)
            first, second = lease.urls
            lost = Died(lease.token, lease.host.hid, second, replace(seen(403, error="blocked"), route="way"))
            got = finished(lease, first, replace(seen(200), route="way"))
            await store.settle([got, lost, released(lease)], [], T0)
            plain, way = await store.route_figures()
            assert plain == RouteFigures("", 0, 2, 0, 2, 200)
            assert way == RouteFigures("way", 0, 2, 1, 1, 200)

        self.way(story)

    def test_a_budget_holds_and_takes_back_what_was_not_used(self) -> None:
        async def story(store: RoutesStore) -> None:
            assert [await store.take_route("dear", 2) for _ in range(3)] == [True, True, False]
            await store.give_route_back("dear")
            assert [await store.take_route("dear", 2) for _ in range(2)] == [True, False]
            assert await store.take_route("dear", 3)
            assert not await store.take_route("none", 0)
            await store.give_route_back("none")
            figures = {each.name: each.taken for each in await store.route_figures()}
            assert figures.pop("none", 0) == 0
            assert figures == {"dear": 3}

        self.way(story)
