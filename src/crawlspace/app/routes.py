"""The fetchers of the routes that the settings name, put together."""

from __future__ import annotations

from msgspec.structs import replace

from crawlspace.clock import Clock
from crawlspace.fetch.http import HttpFetcher
from crawlspace.fetch.proxied import ProxyPool
from crawlspace.fetch.routes import Dressed, HttpRoute, Route
from crawlspace.ports import Fetcher
from crawlspace.settings import Settings


def route_fetchers(settings: Settings, clock: Clock) -> dict[str, Fetcher]:
    """A fetcher for each route, by name; raises `ConfigError` for one that cannot be used here."""
    return {name: _fetcher(route, settings, clock) for name, route in settings.routes.items()}


def _fetcher(route: Route, settings: Settings, clock: Clock) -> Fetcher:
    match route:
        case HttpRoute():
            return _http(route, settings, clock)


def _http(route: HttpRoute, settings: Settings, clock: Clock) -> Fetcher:
    fetch = replace(settings.fetch, cookies=route.cookies)
    networks = [
        replace(settings.network, proxy=proxy, proxy_auth={**settings.network.proxy_auth, **route.proxy_auth})
        for proxy in route.proxies
    ]
    fetchers = [
        HttpFetcher(
            fetch,
            network,
            clock,
            user_agent=route.user_agent or settings.agent(),
            public=bool(settings.contact),
        )
        for network in networks or [settings.network]
    ]
    fetcher = fetchers[0] if len(fetchers) == 1 else ProxyPool(fetchers)
    return Dressed(fetcher, route.headers) if route.headers else fetcher
