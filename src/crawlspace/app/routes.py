"""The fetchers of the routes that the settings name, put together."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from crawlspace.app.rendering import browser_of
from crawlspace.clock import Clock
from crawlspace.errors import ConfigError
from crawlspace.fetch.dial import Reach
from crawlspace.fetch.foreign import Gate, Means
from crawlspace.fetch.http import HttpFetcher
from crawlspace.fetch.impersonate import ImpersonateFetcher, ImpersonateRoute
from crawlspace.fetch.proxied import ProxyPool
from crawlspace.fetch.proxy import Proxies
from crawlspace.fetch.rendering.house import House
from crawlspace.fetch.rendering.settings import BrowserRoute
from crawlspace.fetch.resolve import NetworkSettings, Resolver
from crawlspace.fetch.routes import Dressed, HttpRoute
from crawlspace.fetch.service import EVERYWHERE, ServiceFetcher, ServiceRoute, service_limits
from crawlspace.fetch.sessions import Maker, SessionFetcher, SessionSettings, from_file, from_function
from crawlspace.ports import Fetcher
from crawlspace.settings import Settings


def route_fetchers(
    settings: Settings, clock: Clock, beside: Path = Path(), house: House | None = None
) -> dict[str, Fetcher]:
    """A fetcher for each route, by name; raises `ConfigError` for one that cannot be used here.

    Files that a route names are looked for `beside` the crawl's own first. Routes by browser share the `house`.
    """
    house = house or House(settings.browser)
    fetchers: dict[str, Fetcher] = {}
    for name, route in settings.routes.items():
        try:
            if isinstance(route, BrowserRoute):
                fetchers[name] = _browser(route, settings, clock, house)
            else:
                fetchers[name] = _fetcher(route, settings, clock, beside)
        except ConfigError as error:
            raise ConfigError(f"routes.{name}: {error.message}", hint=error.hint) from error.__cause__
    return fetchers


def longest_request(settings: Settings) -> float:
    """Seconds that a request may take, whatever route it goes by: a host is held for longer."""
    usual = settings.fetch.timeout
    return max([usual, *(route.seconds(usual) for route in settings.routes.values())])


def _fetcher(
    route: HttpRoute | ImpersonateRoute | ServiceRoute, settings: Settings, clock: Clock, beside: Path
) -> Fetcher:
    match route:
        case HttpRoute():
            fetcher = _http(route, settings, clock)
            return fetcher if route.session is None else _session(fetcher, route.session, settings, (clock, beside))
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
    cookies = route.cookies and route.session is None  # a session keeps its own
    fetch = replace(settings.fetch, cookies=cookies, timeout=route.timeout or settings.fetch.timeout)
    fetcher = _pool(
        HttpFetcher(
            fetch, network, clock, user_agent=route.user_agent or settings.agent(), public=bool(settings.contact)
        )
        for network in _networks(route, settings)
    )
    return Dressed(fetcher, route.headers) if route.headers else fetcher


def _browser(route: BrowserRoute, settings: Settings, clock: Clock, house: House) -> Fetcher:
    ways = [replace(settings, network=network) for network in _networks(route, settings)]
    return _pool(browser_of(way, clock, house, route) for way in ways)


def _networks(route: HttpRoute | BrowserRoute, settings: Settings) -> list[NetworkSettings]:
    """The network as it is behind each of the route's proxies; without any as it is for all."""
    auth = {**settings.network.proxy_auth, **route.proxy_auth}
    behind = [replace(settings.network, proxy=proxy, proxy_auth=auth) for proxy in route.proxies]
    return behind or [settings.network]


def _pool(made: Iterable[Fetcher]) -> Fetcher:
    fetchers = list(made)
    return fetchers[0] if len(fetchers) == 1 else ProxyPool(fetchers)


def _session(fetcher: Fetcher, session: SessionSettings, settings: Settings, here: tuple[Clock, Path]) -> Fetcher:
    clock, beside = here
    return SessionFetcher(fetcher, session, _maker(session, beside), clock, settings.host.delay)


def _maker(session: SessionSettings, beside: Path) -> Maker:
    if session.login:
        return from_function(_function(session.login, beside))
    path = _found(session.state, beside)
    if path is None:
        raise ConfigError(
            f"session.state: there is no file {session.state}", hint=f"looked for in {beside.absolute()}"
        )
    return from_file(path)


def _function(spec: str, beside: Path) -> Callable[..., Any]:
    """The function that a setting names as `module:name` or `file.py:name`."""
    place, _, name = spec.rpartition(":")
    try:
        module = _file(place, beside) if place.endswith(".py") else importlib.import_module(place)
        function = getattr(module, name)
    except ConfigError:
        raise
    except Exception as error:  # whatever a user's file does when it is loaded
        raise ConfigError(
            f"session.login: {spec!r} cannot be had: {type(error).__name__}: {error}",
            hint="name it as module:name or file.py:name",
        ) from error
    if not callable(function):
        raise ConfigError(f"session.login: {spec!r} is no function")
    found: Callable[..., Any] = function
    return found


def _file(place: str, beside: Path) -> Any:
    path = _found(place, beside)
    if path is None:
        raise ConfigError(f"session.login: there is no file {place}", hint=f"looked for in {beside.absolute()}")
    spec = importlib.util.spec_from_file_location(f"crawlspace_login_{path.stem}", path)
    assert spec is not None, "a name that ends in .py is one of a module"
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _found(place: str, beside: Path) -> Path | None:
    return next((path.resolve() for path in (beside / place, Path(place)) if path.is_file()), None)
