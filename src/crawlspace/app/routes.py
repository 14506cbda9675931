"""The fetchers of the routes that the settings name, put together."""

from __future__ import annotations

import os

from msgspec.structs import replace

from crawlspace.clock import Clock
from crawlspace.fetch.dial import Reach
from crawlspace.fetch.foreign import Gate, Means
from crawlspace.fetch.http import HttpFetcher
from crawlspace.fetch.impersonate import ImpersonateFetcher, ImpersonateRoute
from crawlspace.fetch.proxied import ProxyPool
from crawlspace.fetch.proxy import Proxies
from crawlspace.fetch.resolve import Resolver
from crawlspace.fetch.routes import Dressed, HttpRoute, Route
from crawlspace.fetch.service import EVERYWHERE, ServiceFetcher, ServiceRoute, service_limits
from crawlspace.ports import Fetcher
from crawlspace.settings import Settings


def route_fetchers(settings: Settings, clock: Clock) -> dict[str, Fetcher]:
    """A fetcher for each route, by name; raises `ConfigError` for one that cannot be used here."""
    return {name: _fetcher(route, settings, clock) for name, route in settings.routes.items()}


def longest_request(settings: Settings) -> float:
    """Seconds that a request may take, whatever route it goes by: a host is held for longer."""
    usual = settings.fetch.timeout
    return max([usual, *(route.seconds(usual) for route in settings.routes.values())])


def _fetcher(route: Route, settings: Settings, clock: Clock) -> Fetcher:
    match route:
        case HttpRoute():
            return _http(route, settings, clock)
        case ImpersonateRoute():
            proxies = Proxies(settings.network.proxy, settings.network.proxy_auth, os.environ)
            return ImpersonateFetcher(route, proxies, _means(settings, clock))
        case ServiceRoute():
            anywhere = replace(settings.network, allow=EVERYWHERE, proxy="", proxy_auth={})
            limits = service_limits(route, settings.fetch)
            client = HttpFetcher(limits, anywhere, clock, user_agent=settings.agent())
            return ServiceFetcher(route, client, _means(settings, clock))


def _means(settings: Settings, clock: Clock) -> Means:
    reach = Reach.of(settings.network, bool(settings.contact))
    gate = Gate(Resolver(settings.network, clock), reach, settings.fetch)
    return Means(gate, settings.fetch, clock, os.environ)


def _http(route: HttpRoute, settings: Settings, clock: Clock) -> Fetcher:
    fetch = replace(settings.fetch, cookies=route.cookies, timeout=route.seconds(settings.fetch.timeout))
    networks = [
        replace(settings.network, proxy=proxy, proxy_auth={**settings.network.proxy_auth, **route.proxy_auth})
        for proxy in route.proxies
    ]
    fetchers = [
        HttpFetcher(
            fetch, network, clock, user_agent=route.user_agent or settings.agent(), public=bool(settings.contact)
        )
        for network in networks or [settings.network]
    ]
    fetcher = fetchers[0] if len(fetchers) == 1 else ProxyPool(fetchers)
    return Dressed(fetcher, route.headers) if route.headers else fetcher
