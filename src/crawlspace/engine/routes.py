"""The lane of blocked pages: which way a URL goes, whether an answer keeps us out, and where it goes on then."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from crawlspace.exchange import FetchResult
from crawlspace.policy.blocked import Detector
from crawlspace.policy.outcome import BLOCKED, Kind, Outcome, Told
from crawlspace.policy.routes import Routing, RoutingSettings
from crawlspace.policy.signatures import Sort
from crawlspace.ports import RouteBook
from crawlspace.types import QueuedUrl

REFUSING = frozenset({401, 403, 407, 429})
"""Statuses that, of a URL that was blocked before, say that it still is."""


class Way(NamedTuple):
    """How a URL is asked for now."""

    route: str = ""
    """Empty for plain HTTP."""
    gone: tuple[str, ...] = ()
    """All routes that it was sent on, this one last."""
    none_left: str = ""
    """Why it cannot be asked for at all, in words."""


@dataclass(slots=True)
class Ways:
    """What visits ask about routes. One for a run."""

    routing: Routing = field(default_factory=lambda: Routing(RoutingSettings()))
    book: RouteBook | None = None
    """Keeps the budgets; without it there are none."""
    detector: Detector = field(default_factory=Detector)

    async def way(self, url: QueuedUrl) -> Way:
        """The way of a URL; a request on it is counted against the route's budget, if it has one."""
        route = url.route or self.routing.first(url.url)
        if not route:
            return Way()
        gone = url.routes or (route,)
        spent: list[str] = []
        for name in (route, *self.routing.onward(url.url, gone)):
            if await self._may(name):
                return Way(name, gone if name == route else (*gone, name))
            spent.append(name)
        return Way("", gone, f"no route has anything left to give: {', '.join(spent)}")

    async def unused(self, way: Way) -> None:
        """The request was not made after all."""
        if self.book is not None and self._budget(way.route) is not None:
            await self.book.give_route_back(way.route)

    def judge(self, url: QueuedUrl, outcome: Outcome, result: FetchResult) -> Outcome:
        """The outcome, or another when the answer only keeps us out."""
        if result.status == 0:
            # A route that fails says nothing of the host: it is somebody else who did not answer.
            return replace(outcome, told=Told.NOTHING) if result.route else outcome
        if not self.routing.settings.detect:
            return outcome
        found = self.detector.recognise(result)
        if found is not None and found.sort is Sort.RATE_LIMIT:
            return replace(outcome, kind=Kind.TRANSIENT, error="rate_limited", slow_down=True, signature=found.id)
        if found is None and not (url.routes and result.status in REFUSING):
            return outcome
        signature = f"http_{result.status}" if found is None else found.id
        return replace(outcome, kind=Kind.BLOCKED, error=BLOCKED, signature=signature)

    def onward(self, url: QueuedUrl, gone: tuple[str, ...], outcome: Outcome) -> str:
        """The next route of a URL that is blocked; empty when none is left."""
        return next(self.routing.onward(url.url, gone, outcome.signature), "")

    def tries(self, route: str) -> int | None:
        """Requests that a route grants one URL; None for plain HTTP."""
        found = self.routing.routes.get(route)
        return None if found is None else found.attempts

    async def _may(self, name: str) -> bool:
        if name not in self.routing.routes:
            return False
        budget = self._budget(name)
        return budget is None or self.book is None or await self.book.take_route(name, budget)

    def _budget(self, name: str) -> int | None:
        found = self.routing.routes.get(name)
        return None if found is None else found.requests
