"""A real browser, against pages made for it: what it renders, what it is kept from, and that all of it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from select import select
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

import pytest
from msgspec.structs import replace

from crawlspace.app.check import Checker, told
from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli.options import settings_used
from crawlspace.clock import SystemClock
from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchError, FetchRequest, Rendered, Unrendered
from crawlspace.fetch import FetchSettings, HttpFetcher, NetworkSettings
from crawlspace.fetch.browser import Browser
from crawlspace.fetch.rendering.chromium import memory_of, program
from crawlspace.fetch.rendering.house import House
from crawlspace.fetch.rendering.settings import BrowserSettings
from crawlspace.states import UrlState

from .conftest import HOST, ScriptWeb, answer


def _missing() -> str:
    try:
        program(BrowserSettings())
    except ConfigError as error:
        return f"{error}"
    return ""


pytestmark = pytest.mark.skipif(bool(_missing()), reason=_missing() or "there is a browser")

AGENT = "crawlspace-test/1 (+tests@crawlspace.test)"
APP = """
fetch("/api.json").then(answer => answer.json()).then(items => {
  document.getElementById("root").innerHTML = items.map(each => `<a href="${each}">${each}</a>`).join("");
});
"""
CHALLENGE = (
    '<script>document.cookie = "pass=ok"; setTimeout(() => location.reload(), 50)</script>checking your browser'
)
WALKS = """<p>still here</p><script>
const ways = ["/elsewhere", "file:///etc/passwd", "chrome://version", "data:text/html,gone", "http://b.test/other"];
for (const way of ways) try { location.href = way } catch (error) {}
for (let number = 0; number < 20; number++) window.open("/popup" + number);
for (let number = 0; number < 5; number++) alert(number);
const link = document.createElement("a");
link.href = "/file.bin"; link.download = "x"; document.body.append(link); link.click();
new Notification("x"); navigator.serviceWorker && navigator.serviceWorker.register("/worker.js").catch(() => 0);
navigator.sendBeacon("/beacon", "x");
</script>"""


class Opened:
    """A browser over the small web, and the plain fetcher beside it."""

    def __init__(self, web: ScriptWeb, **settings: Any) -> None:
        network = NetworkSettings(**web.network())
        chosen = BrowserSettings(user_agent=AGENT, wait=20, **settings)
        self.house = House(chosen)
        self.browser = Browser(self.house, chosen, FetchSettings(), network, SystemClock())
        self.plain = HttpFetcher(FetchSettings(), network, SystemClock(), user_agent=AGENT)

    async def render(self, url: str) -> Rendered | Unrendered:
        return await self.browser.render(await self.plain.fetch(FetchRequest(url)), "a test")

    async def html(self, url: str) -> str:
        found = await self.render(url)
        assert isinstance(found, Rendered), found
        return found.html.decode()

    def limit(self, **settings: Any) -> None:
        self.browser._settings = replace(self.browser._settings, **settings)


@asynccontextmanager
async def opened(web: ScriptWeb, **settings: Any) -> AsyncIterator[Opened]:
    both = Opened(web, **settings)
    try:
        yield both
    finally:
        await both.browser.close()
        await both.plain.close()


def put_app(web: ScriptWeb) -> None:
    web.put("/app", "<title>app</title><div id=root></div><img src=/picture.png><script src=/app.js></script>")
    web.put("/app.js", APP, "text/javascript")
    web.put("/api.json", '["/one", "/two"]', "application/json")


def put_challenge(web: ScriptWeb, path: str, body: str) -> None:
    """A page that lets in whoever has run its script."""

    def page(head: bytes) -> bytes:
        passed = b"pass=ok" in head
        return answer(body) if passed else answer(CHALLENGE, status="403 Forbidden", Server="wall")

    web.pages[path] = page


async def check_rendering(web: ScriptWeb, both: Opened) -> None:
    found = await both.render("http://a.test/app")
    assert isinstance(found, Rendered)
    assert b'<div id="root"><a href="/one">/one</a><a href="/two">/two</a></div>' in found.html
    assert web.asked == ["/app", "/app.js", "/api.json"]
    assert all(AGENT.encode() in head for head in web.heads)
    assert (found.why, found.truncated) == ("a test", False)
    assert found.refused >= 1
    assert 300 < found.size < 5000


async def check_asking(both: Opened) -> None:
    passed = await both.browser.fetch(FetchRequest("http://a.test/challenge"))
    assert passed.rendered is not None
    assert (passed.status, passed.error) == (200, None)
    assert passed.payload == b"<p>welcome</p>"
    assert b"welcome" in passed.body
    assert passed.response_head.startswith(b"HTTP/1.1 200 \r\n")
    assert passed.request_head.startswith(b"GET /challenge HTTP/1.1\r\nHost: a.test\r\n")
    moved = await both.browser.fetch(FetchRequest("http://a.test/moved"))
    assert (moved.status, moved.headers.get("location"), moved.rendered) == (302, "http://b.test/app", None)
    plain = await both.browser.fetch(FetchRequest("http://a.test/note.txt"))
    assert (plain.status, plain.body, plain.rendered, plain.detail) == (200, b"a note", None, "")
    refused = await both.browser.fetch(FetchRequest("http://127.0.0.1:8080/"))
    assert (refused.status, refused.error) == (0, FetchError.ADDRESS_REFUSED)
    posted = await both.browser.fetch(FetchRequest("http://a.test/app", method="POST", body=b"x"))
    assert posted.error is FetchError.LOCAL


async def check_hostile(web: ScriptWeb, both: Opened) -> None:
    """Whatever a page's scripts try, the page is read as it stands and nothing else is asked for."""
    before = len(web.asked)
    both.limit(wait=1)
    html = await both.html("http://a.test/walks")
    assert "still here" in html
    assert 'content="0;url=http://b.test/other"' in html
    assert web.asked[before:] == ["/walks"]
    both.limit(timeout=1)
    stuck = await both.render("http://a.test/loop")
    assert stuck == Unrendered("it was not done after 1 s")
    both.limit(timeout=60, wait=20, max_document=1000)
    large = await both.render("http://a.test/large")
    assert isinstance(large, Rendered)
    assert large.truncated
    assert len(large.html) == 1000
    both.limit(max_document=1 << 20, max_requests=3)
    await both.render("http://a.test/chatty")
    assert len([path for path in web.asked if path.startswith("/ask")]) == 3
    gone = await both.render("http://a.test/blob")
    assert isinstance(gone, Unrendered)
    assert "its scripts went on to blob:" in gone.why


async def check_crash(web: ScriptWeb, both: Opened) -> None:
    """A browser that is killed in the middle of a page is replaced, and the page is rendered."""
    chromium = both.house.browser
    assert chromium is not None
    assert chromium._pid is not None
    assert memory_of(chromium._pid) > 10 << 20

    def strike(_head: bytes) -> bytes:
        web.pages["/api.json"] = answer('["/after"]', "application/json")
        os.kill(chromium._pid or 0, signal.SIGKILL)
        return answer("[]", "application/json")

    web.pages["/api.json"] = strike
    assert "/after" in await both.html("http://a.test/app")
    assert both.house.browser is not chromium


def put_hostile(web: ScriptWeb) -> None:
    web.put("/walks", WALKS)
    web.put("/loop", "<p>x</p><script>while (true) {}</script>")
    web.put("/large", "<script>document.write('<p>' + 'x'.repeat(100000))</script>")
    web.put("/chatty", "<script>for (let n = 0; n < 30; n++) fetch('/ask' + n).catch(() => 0)</script>")
    script = "location.href = URL.createObjectURL(new Blob(['<p>x</p>'], {type: 'text/html'}))"
    web.put("/blob", f"<script>{script}</script>")


async def check_addresses(web: ScriptWeb, both: Opened) -> None:
    """Pictures, frames, scripts, sockets, beacons and WebRTC reach no private address; by number, by name, behind a
    redirect."""
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as six,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        udp.bind(("127.0.0.1", 0))
        for listener in (tcp, six, udp):
            listener.setblocking(False)
        port = tcp.getsockname()[1]
        hosts = [
            f"{form}:{port}" for form in ("127.0.0.1", "localhost", "2130706433", "0x7f.1", "0", "[::ffff:7f00:1]")
        ]
        hosts.append(f"[::1]:{six.getsockname()[1]}")
        web.put("/page", _everything(hosts, udp.getsockname()[1]))
        web.pages["/away"] = answer("", status="302 Found", Location=f"http://127.0.0.1:{port}/x")
        both.limit(block=(), max_requests=500)
        assert "the end" in await both.html("http://a.test/page")
        assert "/away" in web.asked
        for listener in (tcp, six):
            with pytest.raises(BlockingIOError):
                listener.accept()
        with pytest.raises(BlockingIOError):
            udp.recv(1)


def _everything(hosts: list[str], port: int) -> str:
    marks = "".join(
        f'<img src="http://{host}/i"><iframe src="http://{host}/f"></iframe><script src="http://{host}/s"></script>'
        f'<link rel=stylesheet href="http://{host}/c"><link rel=preconnect href="http://{host}">'
        for host in hosts
    )
    return f"""{marks}<iframe src="/away"></iframe><script>
    for (const host of {hosts!r}) {{
      fetch("http://" + host + "/x").catch(() => 0);
      try {{ new WebSocket("ws://" + host + "/w") }} catch (error) {{}}
      navigator.sendBeacon("http://" + host + "/b", "x");
    }}
    fetch("/away").catch(() => 0);
    try {{
      const peer = new RTCPeerConnection({{iceServers: [{{urls: "stun:127.0.0.1:{port}"}}]}});
      peer.createDataChannel("x"); peer.createOffer().then(offer => peer.setLocalDescription(offer));
    }} catch (error) {{}}
    </script><p>the end</p>"""


def test_pages_are_rendered_asked_for_and_bounded(web: ScriptWeb, tmp_path: Path) -> None:
    put_app(web)
    put_challenge(web, "/challenge", "<p>welcome</p>")
    put_hostile(web)
    web.pages["/moved"] = answer("", status="302 Found", Location="http://b.test/app")
    web.put("/note.txt", "a note", "text/plain")

    async def test() -> None:
        async with opened(web, timeout=60) as both:
            await check_rendering(web, both)
            await check_asking(both)
            await check_hostile(web, both)
            await check_addresses(web, both)
            await check_crash(web, both)
            homes = [both.house.browser._home] if both.house.browser else []
        assert [home.exists() for home in homes] == [False]

    asyncio.run(test())


@contextmanager
def relaying(target: int) -> Iterator[tuple[str, list[bytes]]]:
    """A proxy whose tunnels all lead to one place, and what it was asked."""
    led: list[bytes] = []

    class Relay(BaseRequestHandler):
        def handle(self) -> None:
            led.append(self.request.recv(9999).partition(b"\r\n")[0])
            with socket.create_connection((HOST, target)) as on:
                self.request.sendall(b"HTTP/1.1 200 Open\r\n\r\n")
                ends = {self.request: on, on: self.request}
                while all((pieces := {end: end.recv(1 << 16) for end in select(list(ends), [], [])[0]}).values()):
                    for end, piece in pieces.items():
                        ends[end].sendall(piece)

    with ThreadingTCPServer((HOST, 0), Relay) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://{HOST}:{server.server_address[1]}", led
        server.shutdown()


def run_check(web: ScriptWeb) -> str:
    """What `check --deep` says: each capture is read as it was read then."""
    place = CrawlDirectory(web.directory)
    report = Checker(place, settings_used(place), SystemClock(), deep=True).run()
    return " ".join(told(report))


def test_a_crawl_renders_shells_and_sends_what_is_blocked_by_the_browser(web: ScriptWeb) -> None:
    put_app(web)
    put_challenge(web, "/two", '<p>let in</p><a href="/three">x</a>')
    web.put("/one", "<p>one</p>")
    web.put("/three", "<p>three</p>")
    walls = {"routing.signatures": [{"id": "wall", "statuses": [403], "header": "server: wall"}]}
    with relaying(web.port) as (proxy, led):
        routes = {"routes": {"browser": {"kind": "browser", "proxies": [proxy]}}, "routing.order": ["browser"]}
        web.crawl("http://a.test/app", rendering__evidence=True, **routes, **walls)
    assert set(led) == {b"CONNECT a.test:80 HTTP/1.1"}
    assert run_check(web) == "nothing is wrong; 4 captures looked at"
    for path in ("/app", "/one", "/two", "/three"):
        assert web.story(f"http://a.test{path}").state is UrlState.DONE, path
    detail = web.story("http://a.test/app").evidence
    assert detail is not None
    assert detail.detail.startswith("rendered: an empty shell: div#root waits")
