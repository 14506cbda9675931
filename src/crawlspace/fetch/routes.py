"""The kinds of routes, and many fetchers behind one port: each request goes by the route that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from crawlspace.clock import Clock
from crawlspace.events import Warned
from crawlspace.exchange import FetchError, FetchRequest, FetchResult
from crawlspace.fetch.impersonate import ImpersonateRoute
from crawlspace.fetch.proxy import check_proxies
from crawlspace.fetch.rendering.settings import BrowserRoute
from crawlspace.fetch.secrets import check_variables
from crawlspace.fetch.service import ServiceRoute
from crawlspace.fetch.sessions import LOGIN_SECONDS, SessionSettings
from crawlspace.fetch.tunnel import PROXY
from crawlspace.policy.routes import LONGEST, RouteBase
from crawlspace.ports import Fetcher

_Field = Annotated[str, Meta(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$")]
_Value = Annotated[str, Meta(pattern=r"^[\t -~]*$", max_length=4000)]
_NOT_TO_SET = frozenset(
    (
        *("host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer", "expect"),
        *("keep-alive", "authorization", "proxy-authorization", "cookie", "user-agent"),
    )
)


class HttpRoute(RouteBase, frozen=True, kw_only=True, tag="http"):
    """Our own client once more: with connections of its own, and what differs from plain HTTP."""

    proxies: Annotated[tuple[str, ...], Meta(max_length=1000)] = ()
    """Proxies, or `direct`: a host stays with one until that fails or is refused. None: as `network.proxy` says."""
    proxy_auth: dict[str, str] = msgspec.field(default_factory=dict)
    """From a proxy to the environment variable that holds its user:password."""
    cookies: bool = False
    """Keep cookies, each for where it came from, as long as the crawl runs."""
    user_agent: _Value = ""
    """Another User-Agent header; empty: the crawl's own. Robots rules go by the crawl's own all the same."""
    headers: dict[_Field, _Value] = msgspec.field(default_factory=dict)
    """Further fields of each request. They go to every host on the route: secrets belong into a session."""

    session: SessionSettings | None = None
    """A log-in, kept as long as it holds."""

    def seconds(self, usual: float) -> float:
        """How long a request on it may take: with a log-in in the middle, and made once more behind that."""
        alone = usual if self.timeout is None else self.timeout
        return alone if self.session is None else min(2 * alone + LOGIN_SECONDS, LONGEST)

    def __post_init__(self) -> None:
        for proxy in self.proxies:
            check_proxies(proxy, {})
        check_proxies("", self.proxy_auth)
        check_variables(self.proxy_auth, "proxy_auth")
        for name in self.headers:
            if name.lower() in _NOT_TO_SET:
                raise ValueError(f"headers: {name} is the fetcher's own, or a secret's, which belongs into a session")


Route = BrowserRoute | HttpRoute | ImpersonateRoute | ServiceRoute
"""One of the kinds of routes."""


class Dressed:
    """A fetcher whose requests carry further fields; those of the request itself win."""

    def __init__(self, fetcher: Fetcher, fields: Mapping[str, str]) -> None:
        self._fetcher = fetcher
        self._fields = fields

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """See `ports.Fetcher`."""
        own = {name.lower() for name, _ in request.headers}
        more = tuple((name, value) for name, value in self._fields.items() if name.lower() not in own)
        return await self._fetcher.fetch(msgspec.structs.replace(request, headers=(*request.headers, *more)))

    async def close(self) -> None:
        """See `ports.Fetcher`."""
        await self._fetcher.close()


def _nobody(_: Warned) -> None:
    """Who listens where nobody does."""


class RoutedFetcher:
    """A fetcher for each route beside the plain one; `ports.Fetcher`.

    The first failure of each proxy of a route is told: its URLs find other ways or an end, and nobody would notice.
    """

    def __init__(
        self, plain: Fetcher, routes: Mapping[str, Fetcher], clock: Clock, watch: Callable[[Warned], None] = _nobody
    ) -> None:
        self._plain = plain
        self._routes = routes
        self._clock = clock
        self._watch = watch
        self._told: set[tuple[str, str]] = set()

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """See `ports.Fetcher`."""
        if not request.route:
            return await self._plain.fetch(request)
        fetcher = self._routes.get(request.route)
        if fetcher is None:
            why = f"there is no route {request.route}"
            result = FetchResult(request.url, self._clock.now(), error=FetchError.LOCAL, detail=why)
        else:
            result = await fetcher.fetch(request)
            if result.error is FetchError.LOCAL and result.detail.startswith(PROXY):
                self._tell(request.route, result.detail)
        return msgspec.structs.replace(result, route=request.route)

    def _tell(self, route: str, detail: str) -> None:
        """Tell of a proxy that fails, once; there are as many of them as settings name."""
        known = route, detail.split(": ", 1)[0]
        if known not in self._told:
            self._told.add(known)
            self._watch(Warned(f"route {route}: {detail}; its further failures are told by `explain` alone"))

    async def close(self) -> None:
        """See `ports.Fetcher`; what one raises does not keep the others open."""
        errors: list[Exception] = []
        for fetcher in (*self._routes.values(), self._plain):
            try:
                await fetcher.close()
            except Exception as error:  # each of them has connections or processes to end
                errors.append(error)
        if errors:
            raise errors[0]
