"""A route by a client whose handshakes and headers are those of a browser (libcurl, by `curl_cffi`).

Names are looked up here and judged by the guard; the library connects to the address that passed, whatever it makes
of the URL (CURLOPT_CONNECT_TO). It follows no redirect, keeps no cookie, reads no environment, and gives the body as
it came, which our own reader decodes within the limits. The host sees a browser's User-Agent: that is what this route
is for, and nobody takes it who did not configure it. Robots rules go by the crawl's own name all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchError, FetchRequest, FetchResult, Truncated
from crawlspace.fetch.foreign import Begun, Came, Fields, Means, NotAsked, Target
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.proxy import Proxies, Proxy
from crawlspace.fetch.resolve import Endpoint
from crawlspace.fetch.tls import UNVERIFIED
from crawlspace.policy.routes import RouteBase

TRIES = 2
"""Addresses of one name that are tried."""
_STOP = 0xFFFFFFFF
"""What libcurl is told to end a transfer (CURL_WRITEFUNC_ERROR)."""
_STATUS_START = b"HTTP/"

_ERRORS = {
    5: FetchError.LOCAL,
    6: FetchError.DNS,
    7: FetchError.CONNECT,
    16: FetchError.PROTOCOL,
    23: FetchError.PROTOCOL,
    28: FetchError.TOTAL_TIMEOUT,
    35: FetchError.TLS,
    52: FetchError.RESET,
    56: FetchError.RESET,
    60: FetchError.TLS,
    97: FetchError.LOCAL,
}
"""Errors of libcurl by its numbers, as ours; others are `protocol`."""
_CUT_OFF = frozenset({18, 28, 56, 92})
"""Those behind which what came of a body is kept: it broke off."""


class ImpersonateRoute(RouteBase, frozen=True, kw_only=True, tag="impersonate"):
    """A client whose handshakes and headers are those of a browser (extra `impersonate`)."""

    browser: Annotated[str, Meta(pattern=r"^[a-z]+[0-9a-z_]*$", max_length=40)] = "chrome"
    """Which one: `chrome`, `firefox`, `safari`, `edge`, or one version of them as the library names it."""
    headers: dict[str, Annotated[str, Meta(pattern=r"^[\t -~]*$")]] = msgspec.field(default_factory=dict)
    """Fields beside or instead of the browser's own, such as Accept-Language."""


class ImpersonateFetcher:
    """Fetches as a browser would; `ports.Fetcher`. Raises `ConfigError` without the library, or for no browser."""

    def __init__(self, route: ImpersonateRoute, proxies: Proxies, means: Means) -> None:
        self._route = route
        self._proxies = proxies
        self._means = means
        self._library = _library()
        self._multi: Any = None
        curl: Any = self._library.Curl()
        newest = self._library.requests.impersonate.resolve_latest_browser_type
        self._browser = str(newest(route.browser))
        refused = curl.impersonate(self._browser)
        curl.close()
        if refused:
            raise ConfigError(
                f"the library knows no browser {route.browser!r}", hint="such as chrome, firefox, safari or edge"
            )

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """See `ports.Fetcher`."""
        begun = Begun.now(request, self._means.clock)
        try:
            target = await self._means.gate.pass_through(request.url)
            return await self._first_of(begun, target)
        except NotAsked as why:
            return begun.failed(why.error, why.detail)

    async def close(self) -> None:
        """See `ports.Fetcher`."""
        await self._means.gate.resolver.close()
        if self._multi is not None:
            multi, self._multi = self._multi, None
            await multi.close()

    async def _first_of(self, begun: Begun, target: Target) -> FetchResult:
        """The answer of the first address that can be connected to; raises `NotAsked`."""
        last = min(TRIES, len(target.endpoints)) - 1
        for number in range(last):
            try:
                return await self._ask(begun, target, number)
            except NotAsked as why:
                if why.error is not FetchError.CONNECT:
                    raise
        return await self._ask(begun, target, last)

    async def _ask(self, begun: Begun, target: Target, number: int) -> FetchResult:
        taken, curl = _Taken(self._means.limits), self._library.Curl()
        if self._multi is None:
            self._multi = self._library.AsyncCurl(loop=asyncio.get_running_loop())
        multi, code, said, peer = self._multi, 0, "", b""
        try:
            self._prepare(curl, begun.request, target, (target.endpoints[number], taken))
            await multi.add_handle(curl)
        except self._library.CurlError as error:
            code, said = int(error.code), str(error).partition(" See ")[0]
        except asyncio.CancelledError:
            multi.remove_handle(curl)
            raise
        finally:
            peer = curl.getinfo(self._library.CurlInfo.PRIMARY_IP)
            curl.close()
            taken.let_go()
        return self._result(begun, target, taken, _End(code, said, peer.decode("ascii", "replace"), number))

    def _result(self, begun: Begun, target: Target, taken: _Taken, end: _End) -> FetchResult:
        endpoint = target.endpoints[end.number]
        if end.peer and not self._proxies.of(target.to.origin) and end.peer != str(endpoint.address):
            # The library was told the address, and is not believed blindly.
            raise NotAsked(FetchError.ADDRESS_REFUSED, f"{end.peer} was connected to instead of {endpoint.address}")
        if taken.too_long:
            raise NotAsked(FetchError.HEAD_TOO_LARGE, taken.too_long)
        status, fields = taken.head()
        broken = end.code != 0 and not taken.cut
        if status == 0 or (broken and end.code not in _CUT_OFF):
            raise NotAsked(_ERRORS.get(end.code, FetchError.PROTOCOL), end.said or "no answer")
        payload = b"".join(taken.body)
        result = begun.answered(self._means.limits, Came(status, fields, payload, coded=True, cut=taken.cut))
        changes: dict[str, Any] = {"address": str(endpoint)}
        if broken:
            late = end.code == 28
            changes["error"] = _ERRORS.get(end.code, FetchError.RESET)
            changes["truncated"] = Truncated.TIME if late else Truncated.DISCONNECT
            changes["detail"] = end.said[:500]
        elif target.to.origin.scheme == "https" and not self._means.limits.tls_verify:
            changes["detail"] = result.detail or UNVERIFIED
        return msgspec.structs.replace(result, **changes)

    def _prepare(self, curl: Any, request: FetchRequest, target: Target, to: tuple[Endpoint, _Taken]) -> None:
        opt, limits, (endpoint, taken) = self._library.CurlOpt, self._means.limits, to
        curl.impersonate(self._browser)
        fields = {**self._route.headers, **dict(request.headers)}
        proxy = self._proxies.of(target.to.origin)
        options = {
            opt.URL: request.url.encode(),
            opt.CONNECT_TO: taken.hold(self._library, f"::{endpoint}"),
            opt.FOLLOWLOCATION: 0,
            opt.PROTOCOLS_STR: b"http,https",
            opt.NETRC: 0,
            opt.PROXY: b"" if proxy is None else _curl_proxy(proxy),
            opt.HTTP_CONTENT_DECODING: 0,
            opt.TIMEOUT_MS: round(self._route.seconds(limits.timeout) * 1000),
            opt.CONNECTTIMEOUT_MS: round(limits.connect_timeout * 1000),
            opt.LOW_SPEED_LIMIT: max(1, limits.min_rate),
            opt.LOW_SPEED_TIME: max(1, round(limits.min_rate_after)),
            opt.SUPPRESS_CONNECT_HEADERS: 1,
            opt.SSL_VERIFYPEER: int(limits.tls_verify),
            opt.SSL_VERIFYHOST: 2 * int(limits.tls_verify),
            opt.HEADERFUNCTION: taken.take_head,
            opt.WRITEFUNCTION: taken.take_body,
        }
        if limits.ca_file:
            options[opt.CAINFO] = limits.ca_file.encode()
        if proxy is not None:
            options[opt.HTTPPROXYTUNNEL] = int(not proxy.is_socks)
            login = self._proxies.login(proxy)
            if login is not None:
                options[opt.PROXYUSERNAME] = login.user.encode()
                options[opt.PROXYPASSWORD] = login.password.encode()
        if request.method == "HEAD":
            options[opt.NOBODY] = 1
        elif request.method != "GET" or request.body:
            options[opt.CUSTOMREQUEST] = request.method.encode()
            options[opt.POSTFIELDSIZE] = len(request.body)
            options[opt.POSTFIELDS] = request.body
        if fields:
            options[opt.HTTPHEADER] = [
                f"{name}: {value}".encode("latin-1", "replace") for name, value in fields.items()
            ]
        for option, value in options.items():
            curl.setopt(option, value)


class _End(msgspec.Struct, frozen=True):
    """How a transfer ended."""

    code: int
    said: str
    peer: str
    """The address that was connected to; empty for none."""
    number: int
    """Of the endpoint that was meant."""


class _Taken:
    """What libcurl hands over while an answer comes in, within the limits."""

    def __init__(self, limits: FetchSettings) -> None:
        self._limits = limits
        self._lines: list[bytes] = []
        self._head_size = 0
        self._size = 0
        self.body: list[bytes] = []
        self.cut = False
        self.too_long = ""
        self._let_go: Callable[[], None] | None = None

    def hold(self, library: Any, text: str) -> Any:
        """A list of one text as libcurl wants it, kept as long as the transfer needs it."""
        held = library.lib.curl_slist_append(library.ffi.NULL, text.encode())
        self._let_go = partial(library.lib.curl_slist_free_all, held)
        return held

    def let_go(self) -> None:
        """The transfer is over."""
        if self._let_go is not None:
            self._let_go()
            self._let_go = None

    def take_head(self, line: bytes) -> int:
        """One line of a head; a later status line begins anew, as behind 1xx."""
        if line.startswith(_STATUS_START):
            self._lines, self._head_size = [], 0
        self._lines.append(line)
        self._head_size += len(line)
        if self._head_size > self._limits.max_head or len(self._lines) > self._limits.max_headers + 2:
            self.too_long = (
                f"the head is longer than {self._limits.max_head} bytes or {self._limits.max_headers} fields"
            )
            return _STOP
        return len(line)

    def take_body(self, data: bytes) -> int:
        """A piece of the body as it came."""
        room = self._limits.max_wire - self._size
        self.body.append(data[:room])
        self._size += min(room, len(data))
        if len(data) > room:
            self.cut = True
            return _STOP
        return len(data)

    def head(self) -> tuple[int, Fields]:
        """Status and fields; status 0 when no head came."""
        words = self._lines[0].split(maxsplit=2) if self._lines else []
        if len(words) < 2 or not words[1].isdigit():
            return 0, ()
        pairs = (line.decode("latin-1").partition(":") for line in self._lines[1:])
        return int(words[1]), [(name.strip(), value.strip()) for name, colon, value in pairs if colon]


def _curl_proxy(proxy: Proxy) -> bytes:
    # Names are looked up here on every road, also where the proxy would: the guard has to see the address.
    return str(proxy).replace("socks5h://", "socks5://").encode()


def _library() -> Any:
    try:
        import curl_cffi
    except ImportError:
        raise ConfigError(
            "routes of kind impersonate need curl_cffi", hint="pip install 'crawlspace[impersonate]'"
        ) from None
    return curl_cffi
