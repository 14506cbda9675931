"""One page in a browser: which of its requests are let through, which answers are its own, and what is taken of it.

Every request of the page is held by the browser until it is judged here. The page's own document is either given, an
answer that was fetched before and is shown to the browser as it came, or asked for by the browser. Wherever scripts
want to go from there is noted and not followed, but for the page's own address, which may be loaded again.
"""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode, b64encode
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from crawlspace.exchange import FetchResult
from crawlspace.fetch.rendering.settings import BrowserSettings
from crawlspace.urls import origin_of

ONWARD: Final = 20
"""Addresses to which scripts want to go that are noted."""
STOPPED_SECONDS: Final = 1.0
"""What a page gets to be read to its end that wanted to go elsewhere: most have stopped for good."""
_ALWAYS_REFUSED: Final = frozenset({"ping", "cspviolationreport", "prefetch", "signedexchange"})
"""Kinds of requests that say something to others and bring nothing to the page."""
_OF_THE_WIRE: Final = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "alt-svc"})
_PIECE: Final = 1 << 18
_NO_CONTENT: Final = 204
_REDIRECTS: Final = range(300, 400)

Fields = Sequence[tuple[str, str]]


class Session(Protocol):
    """Commands to a page and news of it, in Chromium's own protocol."""

    async def send(self, method: str, params: Any = None) -> Any:
        """Carry out a command."""

    def on(self, event: str, f: Any) -> None:
        """Tell of events."""


class Answer(NamedTuple):
    """A document that the browser asked for itself."""

    status: int
    request: Fields
    headers: Fields
    body: bytes
    cut: bool


@dataclass(slots=True)
class Tab:
    """What happens in one page."""

    session: Session
    url: str
    settings: BrowserSettings
    given: FetchResult | None = None
    """The page's own answer; None: the browser asks for it."""
    max_body: int = 0
    """Bytes of a document that the browser asks for; the rest is cut."""
    fields: Fields = ()
    """Fields to send with the page's own request."""
    answers: list[Answer] = field(default_factory=list)
    onward: list[str] = field(default_factory=list)
    """Where scripts wanted to go, in order."""
    requests: int = 0
    refused: int = 0
    _frame: str = ""
    _loads: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _answered: asyncio.Event = field(default_factory=asyncio.Event)
    _kept: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the page wanted to go elsewhere and was not let go."""

    async def begin(self) -> None:
        """Hold all requests of the page from now on."""
        tree = await self.session.send("Page.getFrameTree")
        self._frame = tree["frameTree"]["frame"]["id"]
        self.session.on("Fetch.requestPaused", lambda event: self._paused(event))
        patterns = [{"urlPattern": "*", "requestStage": "Request"}]
        if self.given is None:
            patterns.append({"urlPattern": "*", "resourceType": "Document", "requestStage": "Response"})
        await self.session.send("Fetch.enable", {"patterns": patterns})

    async def another(self, seconds: float) -> bool:
        """Wait for the page to load itself again; whether it did."""
        self._answered.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._answered.wait()
        except TimeoutError:
            return False
        return True

    async def loaded(self, loading: Coroutine[Any, Any, object]) -> None:
        """Wait for the page to be read, or for what is left of it when it has stopped reading to go elsewhere."""
        reading = asyncio.ensure_future(loading)
        kept = asyncio.ensure_future(self._kept.wait())
        try:
            await asyncio.wait([reading, kept], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([reading], timeout=None if reading.done() else STOPPED_SECONDS)
            if reading.done():
                await reading
        finally:
            kept.cancel()
            reading.cancel()

    async def document(self) -> tuple[bytes, bool]:
        """The document as it stands, and whether it was cut. Read where the page's scripts have no say."""
        limit = self.settings.max_document
        tree = await self.session.send("Page.getFrameTree")
        where = tree["frameTree"]["frame"]["url"]
        if origin_of(where) != origin_of(self.url):
            raise ValueError(f"its scripts went on to {where[:100]}")
        world = await self.session.send(
            "Page.createIsolatedWorld", {"frameId": self._frame, "worldName": "crawlspace"}
        )
        found = await self.session.send(
            "Runtime.evaluate",
            {
                "contextId": world["executionContextId"],
                "expression": _DOCUMENT.replace("LIMIT", str(limit + 1)),
                "returnByValue": True,
            },
        )
        text = found.get("result", {}).get("value")
        if not isinstance(text, str):
            raise ValueError("its document cannot be taken: it is too large")
        html = text.encode("utf-8", "replace")
        return html[:limit], len(html) > limit

    def end(self) -> None:
        """Judge no more."""
        for task in self._tasks:
            task.cancel()

    # -- requests -------------------------------------------------------------------------------------------

    def _paused(self, event: Mapping[str, Any]) -> None:
        task = asyncio.ensure_future(self._judged(event))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # the page is gone: nobody waits for the verdict

    def _judged(self, event: Mapping[str, Any]) -> Coroutine[Any, Any, None]:
        kind = str(event.get("resourceType", "")).lower()
        own = kind == "document" and event.get("frameId") == self._frame
        if "responseStatusCode" in event or "responseErrorReason" in event:
            return self._answer(event) if own else self._go(event)
        return self._own(event) if own else self._other(event, kind)

    async def _other(self, event: Mapping[str, Any], kind: str) -> None:
        """A request of the page for something beside itself."""
        url = event["request"]["url"]
        self.requests += 1
        refused = kind in self.settings.block or kind in _ALWAYS_REFUSED or url.endswith("/favicon.ico")
        if refused or self.requests > self.settings.max_requests or not url.startswith(("http://", "https://")):
            self.refused += 1
            await self._stop(event, "BlockedByClient")
        else:
            await self._go(event)

    async def _own(self, event: Mapping[str, Any]) -> None:
        """The page's own document is wanted, or a script wants to go elsewhere."""
        url = event["request"]["url"]
        if url.partition("#")[0] != self.url or event["request"]["method"] != "GET":
            if len(self.onward) < ONWARD and url.startswith(("http://", "https://")):
                self.onward.append(url)
            await self._stay(event)
            return
        self._loads += 1
        if self._loads > self.settings.navigations:
            await self._stay(event)
        elif self.given is not None:
            headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self.given.headers.raw]
            await self._show(event, self.given.status, headers, self.given.body)
        elif self.fields:
            sent = {**event["request"]["headers"], **dict(self.fields)}
            await self._go(event, {"headers": [{"name": name, "value": value} for name, value in sent.items()]})
        else:
            await self._go(event)

    async def _answer(self, event: Mapping[str, Any]) -> None:
        """The document that the browser asked for is there, its body not read yet."""
        status = event.get("responseStatusCode")
        if status is None:
            await self._go(event)
            return
        headers = [(each["name"], each["value"]) for each in event.get("responseHeaders", ())]
        sent = list(event["request"]["headers"].items())
        goes_on = status in _REDIRECTS
        body, cut = (b"", False) if goes_on else await self._body(event)
        answer = Answer(status, sent, headers, body, cut)
        self.answers.append(answer)
        self._answered.set()
        if goes_on or not is_page(headers):
            await self._stop(event, "Aborted")
        else:
            await self._show(event, status, headers, body)

    async def _body(self, event: Mapping[str, Any]) -> tuple[bytes, bool]:
        """The body, decoded, as far as it is wanted."""
        opened = await self.session.send("Fetch.takeResponseBodyAsStream", {"requestId": event["requestId"]})
        handle = opened["stream"]
        body = b""
        ended = False
        while not ended and len(body) <= self.max_body:
            piece = await self.session.send("IO.read", {"handle": handle, "size": _PIECE})
            data = piece.get("data", "")
            body += _decoded(data) if piece.get("base64Encoded") else data.encode("utf-8", "surrogateescape")
            ended = bool(piece.get("eof"))
        await self.session.send("IO.close", {"handle": handle})
        return body[: self.max_body], len(body) > self.max_body

    async def _show(self, event: Mapping[str, Any], status: int, headers: Fields, body: bytes) -> None:
        kept = [{"name": name, "value": value} for name, value in headers if name.lower() not in _OF_THE_WIRE]
        await self.session.send(
            "Fetch.fulfillRequest",
            {
                "requestId": event["requestId"],
                "responseCode": status,
                "responseHeaders": kept,
                "body": b64encode(body).decode(),
            },
        )

    async def _stay(self, event: Mapping[str, Any]) -> None:
        """Let the page be as it is: to an answer without content a browser goes nowhere (RFC 9110, 15.3.5)."""
        self._kept.set()
        await self.session.send(
            "Fetch.fulfillRequest", {"requestId": event["requestId"], "responseCode": _NO_CONTENT, "body": ""}
        )

    async def _go(self, event: Mapping[str, Any], how: Mapping[str, Any] | None = None) -> None:
        await self.session.send("Fetch.continueRequest", {"requestId": event["requestId"], **(how or {})})

    async def _stop(self, event: Mapping[str, Any], reason: str) -> None:
        await self.session.send("Fetch.failRequest", {"requestId": event["requestId"], "errorReason": reason})


_DOCUMENT: Final = """(() => {
  const kind = document.doctype, root = document.documentElement;
  return ((kind ? "<!DOCTYPE " + kind.name + ">\\n" : "") + (root ? root.outerHTML : "")).slice(0, LIMIT);
})()"""


def is_page(headers: Fields) -> bool:
    """Whether a browser shows this as a page with scripts."""
    kind = next((value for name, value in headers if name.lower() == "content-type"), "text/html")
    return kind.partition(";")[0].strip().lower() in ("", "text/html", "application/xhtml+xml")


def _decoded(data: str) -> bytes:
    try:
        return b64decode(data)
    except binascii.Error:
        return b""
