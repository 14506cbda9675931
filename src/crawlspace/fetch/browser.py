"""Pages through a browser: answers that are there already are rendered, others it asks for itself.

Each page is in a context of its own with a way out of its own (`rendering.gate`), within limits of time, bytes,
requests and size; whatever it does comes back as a value. Pages that are open in a browser that ends are given to
another, once.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from crawlspace.clock import Clock
from crawlspace.exchange import FetchError, FetchRequest, FetchResult, Rendered, Unrendered
from crawlspace.fetch.dial import Dialler, Reach
from crawlspace.fetch.foreign import Begun, Came, asked_head
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.pool import Pool
from crawlspace.fetch.proxy import Proxies
from crawlspace.fetch.rendering.chromium import Gone, Opened, Way, says_gone
from crawlspace.fetch.rendering.gate import Gate, Outside
from crawlspace.fetch.rendering.house import House
from crawlspace.fetch.rendering.settings import BrowserSettings
from crawlspace.fetch.rendering.tab import Answer, Tab, is_page
from crawlspace.fetch.request import Unsendable, destination_of
from crawlspace.fetch.resolve import NetworkSettings, Resolver
from crawlspace.fetch.tunnel import Tunnels

TRIES = 2
"""Browsers that a page is given to which end with it."""
LOADING = 700.0
"""Milliseconds of each second of a page's time that it may load; the rest is for taking its document."""
TAKES = 3
"""Times that a document is looked for while its page loads itself again."""
SLACK_SECONDS = 10.0
"""What opening and closing a page may take beside its own time."""
_BLOCKED = frozenset({401, 403, 429, 503})
"""Answers behind which the page itself may come, when its scripts have done what they were asked."""
_NOT_DONE = "it was not done"
_NETWORK = {
    "ERR_NAME_NOT_RESOLVED": FetchError.DNS,
    "ERR_CONNECTION_RESET": FetchError.RESET,
    "ERR_CONNECTION_CLOSED": FetchError.RESET,
    "ERR_EMPTY_RESPONSE": FetchError.RESET,
    "ERR_SSL": FetchError.TLS,
    "ERR_CERT": FetchError.TLS,
    "ERR_BAD_SSL": FetchError.TLS,
    "ERR_CONNECTION": FetchError.CONNECT,
    "ERR_SOCKS": FetchError.CONNECT,
    "ERR_TIMED_OUT": FetchError.IDLE_TIMEOUT,
}


class _Seen(NamedTuple):
    """What came of a page."""

    tab: Tab
    gate: Gate
    html: bytes | None
    cut: bool = False
    problem: str = ""


class Browser:
    """Renders answers (`ports.Renderer`) and fetches pages (`ports.Fetcher`), in a browser that others use too."""

    def __init__(  # noqa: PLR0913 -- the browser, how it is used here, and the settings of what it shares with others
        self,
        house: House,
        settings: BrowserSettings,
        limits: FetchSettings,
        network: NetworkSettings,
        clock: Clock,
        *,
        public: bool = True,
    ) -> None:
        """The settings are those of its pages, with the user agent as it is sent. Raises `ConfigError` for what
        cannot be used, and where no browser is.
        """
        self._house = house
        self._settings = settings
        self._limits = limits
        self._clock = clock
        self._resolver = Resolver(network, clock)
        pool, proxies = Pool(1, 0), Proxies(network.proxy, network.proxy_auth, os.environ)
        dialler = Dialler(limits, Reach.of(network, public), self._resolver, pool)
        self._outside = Outside(dialler, proxies, Tunnels(limits, network, proxies, dialler, pool))
        house.enter()

    async def render(self, result: FetchResult, why: str) -> Rendered | Unrendered:
        """The document that a browser makes of an answer, whose own page is not asked for again."""
        seen = await self._visit(FetchRequest(result.url), result)
        if isinstance(seen, Unrendered):
            return seen
        if seen.html is None:
            return Unrendered(seen.problem)
        return self._rendered(seen, seen.html, why)

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """One page, asked for by the browser; a redirect is not followed. Raises on cancellation only."""
        begun = Begun.now(request, self._clock)
        if request.method != "GET" or request.body:
            return begun.failed(FetchError.LOCAL, "a browser sends plain requests only")
        try:
            host = destination_of(request.url).origin.host
        except Unsendable as unsendable:
            return begun.failed(FetchError.LOCAL, str(unsendable))
        seen = await self._visit(request, None)
        if isinstance(seen, Unrendered):
            return begun.failed(FetchError.RESET, seen.why)
        if not seen.tab.answers:
            return begun.failed(*_failure(host, seen))
        return self._answered(begun, seen)

    async def close(self) -> None:
        """End the browser, unless others have pages in it. Pages that are open end with it."""
        await self._house.leave()
        await self._resolver.close()

    # -- pages ----------------------------------------------------------------------------------------------

    async def _visit(self, request: FetchRequest, given: FetchResult | None) -> _Seen | Unrendered:
        """The page, in another browser when the first one ends with it."""
        why = ""
        async with self._house.room:
            for _ in range(TRIES):
                gate = Gate(self._outside, self._settings.max_bytes)
                try:
                    return await self._page(request, given, gate)
                except Gone as gone:
                    why = str(gone)
                finally:
                    await gate.close()
        return Unrendered(why, passing=True)

    async def _page(self, request: FetchRequest, given: FetchResult | None, gate: Gate) -> _Seen:
        from playwright.async_api import Error

        chromium = await self._house.running()
        cookies, fields = _cookies(request)
        way = Way(await gate.open(), self._settings.user_agent, self._limits.tls_verify, cookies, request.url)
        async with chromium.tab(way) as opened:
            tab = Tab(opened.session, request.url, self._settings, given, self._limits.max_body, fields)
            try:
                async with asyncio.timeout(self._settings.timeout):
                    await tab.begin()
                    return await self._shown(opened, tab, gate)
            except TimeoutError:
                return _Seen(tab, gate, None, problem=f"{_NOT_DONE} after {self._settings.timeout:g} s")
            except Error as error:
                if not chromium.is_alive or says_gone(error):
                    chromium.lost(error)
                    raise Gone(chromium.why) from error
                return _Seen(tab, gate, None, problem=_words(error))
            except ValueError as error:
                return _Seen(tab, gate, None, problem=str(error))
            finally:
                tab.end()

    async def _shown(self, opened: Opened, tab: Tab, gate: Gate) -> _Seen:
        """The page loaded, its scripts given their time, and its document taken."""
        from playwright.async_api import Error
        from playwright.async_api import TimeoutError as TookTooLong

        with suppress(TookTooLong):  # what is there by then is taken
            limit = self._settings.timeout * LOADING
            await tab.loaded(opened.page.goto(tab.url, wait_until="domcontentloaded", timeout=limit))
        await self._settle(opened)
        if tab.answers and tab.answers[-1].status in _BLOCKED and await tab.another(self._settings.wait):
            await self._settle(opened)
        for left in reversed(range(TAKES)):
            try:
                html, cut = await tab.document()
                return _Seen(tab, gate, html, cut)
            except Error:
                if not left:
                    raise
                await self._settle(opened)  # it went on to itself while it was looked at
        raise AssertionError

    async def _settle(self, opened: Opened) -> None:
        """Wait until the page has been quiet for a while, or for as long as it may take."""
        from playwright.async_api import TimeoutError as TookTooLong

        if self._settings.wait > 0:
            with suppress(TookTooLong):
                await opened.page.wait_for_load_state("networkidle", timeout=self._settings.wait * 1000)

    # -- values ---------------------------------------------------------------------------------------------

    def _rendered(self, seen: _Seen, html: bytes, why: str) -> Rendered:
        tab = seen.tab
        if tab.onward:
            html += _onward(tab.onward)
        return Rendered(html, self._clock.now(), why, tab.requests, tab.refused, seen.gate.size, seen.cut)

    def _answered(self, begun: Begun, seen: _Seen) -> FetchResult:
        """The last document as the browser got it, shown as it was in the end."""
        last = seen.tab.answers[-1]
        came = begun.answered(self._limits, Came(last.status, last.headers, last.body, cut=last.cut))
        result = replace(came, request_head=_asked(begun.request, last), address=seen.gate.address)
        if result.error is not None or not is_page(last.headers) or not 200 <= last.status < 300:
            return result
        if seen.html is None:
            return replace(result, detail=f"not rendered: {seen.problem}")
        return result.showing(self._rendered(seen, seen.html, "its route is a browser"))


def _failure(host: str, seen: _Seen) -> tuple[FetchError, str]:
    """No answer came: why, by what our own way out knows of the host, or else by what the browser says."""
    problem = seen.gate.problems.get(host)
    if problem is not None:
        return problem.error, problem.detail
    if seen.gate.is_spent:
        return FetchError.PROTOCOL, "it sent more than browser.max_bytes"
    if seen.problem.startswith(_NOT_DONE):
        return FetchError.TOTAL_TIMEOUT, seen.problem
    known = (error for start, error in _NETWORK.items() if f"net::{start}" in seen.problem)
    return next(known, FetchError.PROTOCOL), seen.problem


def _cookies(request: FetchRequest) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """The cookies to give to the page's context, and the other fields of a request."""
    found: list[tuple[str, str]] = []
    others: list[tuple[str, str]] = []
    for name, value in request.headers:
        if name.lower() != "cookie":
            others.append((name, value))
            continue
        pairs = (pair.strip().partition("=") for pair in value.split(";"))
        found += [(left, right) for left, sign, right in pairs if left and sign]
    return tuple(found), tuple(others)


def _onward(urls: list[str]) -> bytes:
    """Where scripts wanted to go, said as pages say it, so that whoever reads the document finds it."""
    lines = [f'<meta http-equiv="refresh" content="0;url={_escaped(url)}">' for url in dict.fromkeys(urls)]
    return "\n".join(("", "<!-- where the page's scripts wanted to go -->", *lines)).encode("utf-8", "replace")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def _asked(request: FetchRequest, answer: Answer) -> bytes:
    """The request as the browser tells of it, in HTTP/1.1's words."""
    lines = [f"{name}: {' '.join(value.split())}" for name, value in answer.request]
    return asked_head(request)[:-2] + "".join(f"{line}\r\n" for line in lines).encode("latin-1", "replace") + b"\r\n"


def _words(error: Exception) -> str:
    """The library's message in one line, without its log."""
    return " ".join(str(error).split("\n", 1)[0].split())[:300]
