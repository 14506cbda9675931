"""Log-in sessions: made by a user's function or from a file, noticed when they are lost, and made anew within bounds.

A session belongs to one origin, and nothing of it goes anywhere else. Its cookies live here and in no settings, logs
or archives: request heads are given back with their values taken out. When an answer says that the session is lost,
it is made anew once, whoever noticed first, and the request is repeated; where that does not help, or the bound is
reached, the request fails: a log-in page is never taken for the page that was asked for.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from crawlspace.clock import Clock
from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchError, FetchRequest, FetchResult
from crawlspace.fetch.cookies import Jar
from crawlspace.fetch.request import Destination, Unsendable, destination_of, origin_from
from crawlspace.policy.patterns import Patterns
from crawlspace.ports import Fetcher
from crawlspace.urls.parser import resolve, without_credentials

LOGIN_SECONDS = 30.0
"""How long making a session may take."""
HOUR = 3600.0
ASKS = 20
"""Requests that one log-in may make."""
LOOKED_AT = 64 * 1024
_SHORTEST = 4
"""Characters of a secret that is taken out of heads wherever it stands; shorter ones would take out words."""
_TAKEN_OUT = b"[redacted]"


class SessionSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A log-in: how it is made, and how its loss is noticed."""

    origin: str
    """Where it belongs, as `https://members.example.com`: its secrets go nowhere else."""
    state: str = ""
    """A JSON file with `cookies` and `headers`, such as a browser's saved state; read again when it is lost."""
    login: str = ""
    """A function that logs in, as `module:name` or `file.py:name`."""
    lost_statuses: tuple[Annotated[int, Meta(ge=100, le=599)], ...] = (401,)
    """Answers with these say that it is lost."""
    lost_redirect: str = ""
    """As do redirects to such an address: RE2, or a glob behind `glob:`."""
    lost_text: str = ""
    """As do pages with this text in their first 64 KiB."""
    logins: Annotated[int, Meta(ge=1, le=100)] = 3
    """How often in an hour it is made, the first time included."""

    def __post_init__(self) -> None:
        origin_from(self.origin)
        if bool(self.state) == bool(self.login):
            raise ValueError("a session is made by `state` or by `login`, and by one of them")
        if self.lost_redirect:
            try:
                Patterns.of((self.lost_redirect,), "lost_redirect")
            except ConfigError as error:
                raise ValueError(str(error)) from None


class State(NamedTuple):
    """What a session consists of."""

    cookies: tuple[str, ...] = ()
    """As Set-Cookie fields have them."""
    headers: tuple[tuple[str, str], ...] = ()


class Answered(NamedTuple):
    """What a log-in is answered."""

    status: int
    url: str
    headers: Mapping[str, str]
    """Names in lower case; of a field that comes twice the first."""
    body: bytes

    @property
    def text(self) -> str:
        """The body, read as UTF-8."""
        return self.body.decode("utf-8", "replace")


Ask = Callable[..., Awaitable[Answered]]
"""`await ask("POST", "/login", data={...})`: one request to the session's own origin, its cookies kept."""
Maker = Callable[[Ask], Awaitable[State]]
"""Makes a session; may raise anything."""


class _Lost(Exception):
    """There is no session, and the message says why."""


class _Session:
    """One session, alive or lost."""

    def __init__(self) -> None:
        self.jar = Jar()
        self.headers: tuple[tuple[str, str], ...] = ()


class SessionFetcher:
    """A fetcher whose requests to one origin are logged in; `ports.Fetcher`."""

    def __init__(self, fetcher: Fetcher, settings: SessionSettings, maker: Maker, clock: Clock, delay: float) -> None:
        self._fetcher = fetcher
        self._settings = settings
        self._maker = maker
        self._clock = clock
        self.delay = delay
        self.origin = origin_from(settings.origin)
        self._redirect = Patterns.of((settings.lost_redirect,) if settings.lost_redirect else (), "lost_redirect")
        self._text = settings.lost_text.encode()
        self._session: _Session | None = None
        self._made: deque[float] = deque()
        self._making = asyncio.Lock()

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """See `ports.Fetcher`."""
        try:
            to = destination_of(request.url)
        except Unsendable:
            return await self._fetcher.fetch(request)  # which says what is wrong with it
        if to.origin != self.origin:
            return await self._fetcher.fetch(request)
        return await self._logged_in(request, to)

    async def _logged_in(self, request: FetchRequest, to: Destination) -> FetchResult:
        try:
            session = await self._after(None)
            result = await self.send(session, request, to)
            if not self._is_lost(result):
                return result
            session = await self._after(session)
            await asyncio.sleep(self.delay)
            result = await self.send(session, request, to)
            if self._is_lost(result):
                raise _Lost("it is lost again as soon as it is made")
        except _Lost as why:
            detail = f"no session at {self._settings.origin}: {why}"
            return FetchResult(request.url, self._clock.now(), error=FetchError.LOCAL, detail=detail[:500])
        return result

    async def close(self) -> None:
        """See `ports.Fetcher`."""
        await self._fetcher.close()

    async def _after(self, lost: _Session | None) -> _Session:
        """A session that is not this one; raises `_Lost`."""
        async with self._making:
            if self._session is None or self._session is lost:
                self._session = None
                self._session = await self._make()
            return self._session

    async def _make(self) -> _Session:
        now = self._clock.monotonic()
        while self._made and self._made[0] <= now - HOUR:
            self._made.popleft()
        if len(self._made) >= self._settings.logins:
            raise _Lost(f"it was made {len(self._made)} times within an hour")
        self._made.append(now)
        session = _Session()
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                state = await self._maker(_Asking(self, session).ask)
        except TimeoutError:
            raise _Lost(f"logging in took longer than {LOGIN_SECONDS:g} s") from None
        except Exception as error:  # the user's own code; its words may hold secrets, its kind does not
            raise _Lost(f"logging in failed: {type(error).__name__}") from error
        session.jar.keep(state.cookies, Destination(self.origin, "", "/"), self._clock.now())
        session.headers = state.headers
        return session

    async def send(self, session: _Session, request: FetchRequest, to: Destination) -> FetchResult:
        """One request as the session makes it; what it is secretly known by is not in the result."""
        own = {name.lower(): value for name, value in request.headers}
        cookies = session.jar.field(to, self._clock.now())
        jar = "; ".join(filter(None, (own.pop("cookie", ""), cookies)))
        fields = [(name, value) for name, value in request.headers if name.lower() != "cookie"]
        fields += [(name, value) for name, value in session.headers if name.lower() not in own]
        fields += [("Cookie", jar)] if jar else []
        result = await self._fetcher.fetch(msgspec.structs.replace(request, headers=tuple(fields)))
        session.jar.keep(result.headers.all("set-cookie"), to, self._clock.now())
        secrets = [value for _, value in session.headers] + ([cookies] if cookies else [])
        return replace(result, request_head=without(result.request_head, secrets))

    def _is_lost(self, result: FetchResult) -> bool:
        if result.status in self._settings.lost_statuses:
            return True
        location = result.headers.get("location") if 300 <= result.status < 400 else ""
        if location and self._settings.lost_redirect:
            base = resolve(result.url)
            target = resolve(location, base) if base is not None else None
            if target is not None and self._redirect.match(without_credentials(target)):
                return True
        return bool(self._text) and self._text in result.body[:LOOKED_AT]


class _Asking:
    """What a log-in may ask: its own origin, at the host's pace, so many times."""

    def __init__(self, owner: SessionFetcher, session: _Session) -> None:
        self._owner = owner
        self._session = session
        self._asked = 0

    async def ask(
        self,
        method: str,
        url: str,
        *,
        data: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """One request; redirects are not followed. Raises ValueError for another origin, or one request too many."""
        owner = self._owner
        to, address = self._own(url)
        if self._asked >= ASKS:
            raise ValueError(f"a log-in makes {ASKS} requests at most")
        if self._asked:
            await asyncio.sleep(owner.delay)
        self._asked += 1
        fields = tuple((headers or {}).items())
        body = b"" if data is None else urlencode(data).encode()
        if data is not None:
            fields = (("Content-Type", "application/x-www-form-urlencoded"), *fields)
        result = await owner.send(self._session, FetchRequest(address, method, body, fields), to)
        first = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in reversed(result.headers.raw)
        }
        return Answered(result.status, address, first, result.body)

    def _own(self, url: str) -> tuple[Destination, str]:
        """An address of the origin; raises ValueError for others."""
        origin = self._owner.origin
        target = resolve(url, resolve(f"{origin.scheme}://{origin.host}:{origin.port}/"))
        address = "" if target is None else without_credentials(target).partition("#")[0]
        try:
            to = destination_of(address)
        except Unsendable as error:
            raise ValueError(str(error)) from None
        if to.origin != origin:
            raise ValueError("a log-in asks nobody but its own origin")
        return to, address


def without(head: bytes, secrets: Sequence[str]) -> bytes:
    """A head without these values, wherever they stand in it."""
    for secret in secrets:
        value = secret.encode("latin-1", "replace")
        if len(value) >= _SHORTEST:
            head = head.replace(value, _TAKEN_OUT)
    return head


def from_function(function: Callable[[Ask], Any]) -> Maker:
    """Sessions by a user's function: it returns nothing, or a table with `cookies` and `headers`."""

    async def make(ask: Ask) -> State:
        said = function(ask)
        if inspect.isawaitable(said):
            said = await said
        return State() if said is None else read_state(said)

    return make


def from_file(path: Path) -> Maker:
    """Sessions by a file; one that has not changed since the last time makes none again."""
    last: list[bytes] = []

    async def make(_ask: Ask) -> State:
        text = await asyncio.to_thread(path.read_bytes)
        if last and last[0] == text:
            raise ValueError("the file is the one whose session was lost")
        last[:] = [text]
        return read_state(msgspec.json.decode(text))

    return make


def read_state(said: Any) -> State:
    """Cookies and headers from a table: cookies by name, or a list of tables as browsers save them.

    Raises ValueError, which repeats no value.
    """
    if not isinstance(said, Mapping):
        raise ValueError("a session is a table with cookies and headers")
    cookies, headers = said.get("cookies") or {}, said.get("headers") or {}
    if isinstance(cookies, Mapping):
        cookies = [{"name": name, "value": value} for name, value in cookies.items()]
    if not isinstance(cookies, list | tuple) or not isinstance(headers, Mapping):
        raise ValueError("cookies are a table or a list, headers are a table")
    pairs = tuple(
        (name, value) for name, value in headers.items() if isinstance(name, str) and isinstance(value, str)
    )
    return State(tuple(_line(each) for each in cookies), pairs)


def _line(cookie: Any) -> str:
    """One cookie as a Set-Cookie field."""
    name, value = (cookie.get("name"), cookie.get("value")) if isinstance(cookie, Mapping) else (None, None)
    if not isinstance(name, str) or not isinstance(value, str):
        raise ValueError("a cookie is a table with name and value")
    line = f"{name}={value}; Path={cookie.get('path') or '/'}"
    # With its domain, so that cookies of other sites in the same file are refused and not taken for the origin's.
    domain = cookie.get("domain")
    return f"{line}; Domain={domain}" if isinstance(domain, str) and domain else line
