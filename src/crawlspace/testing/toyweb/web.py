"""The toy web as a thing that runs: its own thread and event loop, on ephemeral ports of 127.0.0.1."""

from __future__ import annotations

import asyncio
import json
import socket
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from crawlspace.clock import SystemClock
from crawlspace.testing.toyweb import audit, certificates
from crawlspace.testing.toyweb.hosts import draw
from crawlspace.testing.toyweb.log import Request, RequestLog
from crawlspace.testing.toyweb.recipe import EVERYTHING, Feature, Recipe, Size
from crawlspace.testing.toyweb.server import ToyServer
from crawlspace.testing.toyweb.truth import Truth, survey

CONTACT = "toyweb@example.org"
STOP_SECONDS = 10.0


class ToyWeb:
    """A seeded web of named hosts that replaces the network.

    `with ToyWeb(seed=1) as web:` serves it, `async with` too. A crawler reaches it through three settings:
    `network.resolve = web.resolve`, `network.allow = ["127.0.0.1"]` and, with TLS, `fetch.ca_file = web.ca_file`;
    it starts from `web.seeds`. What it should find under the default scope and URL rules is `web.truth`, with
    `identity.hosts = web.truth.own_folds` for the host whose spellings only a rule of its own folds.

    What is out of the ordinary can be chosen by `features`: `CALM` holds nothing endless and nothing that a right
    crawler must wait for, so that a crawl ends in about (pages of the largest host) times (delay).
    """

    def __init__(
        self,
        seed: int = 1,
        *,
        size: Size = Size.SMALL,
        tls: bool = True,
        features: Iterable[Feature] = EVERYTHING,
        latency: float = 0.0,
    ) -> None:
        """`latency` is added before every answer, seconds. Raises `UsageError` for TLS without trustme."""
        if tls:
            certificates.require()
        self.recipe = Recipe(seed, size, tls, frozenset(features))
        self._atlas = draw(self.recipe)
        self.truth: Truth = survey(self._atlas)
        self._log = RequestLog()
        self._server = ToyServer(self._atlas, self._log, SystemClock(), latency)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._ready = threading.Event()
        self._failure: Exception | None = None
        self._ports: dict[str, int] = {}
        self._closed_port: socket.socket | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    # -- what a crawler is told ---------------------------------------------------------------------------------

    @property
    def seeds(self) -> list[str]:
        """Where a crawl starts, as a person would type it."""
        return [seed.text for seed in self._atlas.seeds]

    @property
    def resolve(self) -> dict[str, str]:
        """The setting `network.resolve`: every host's "name:80" and "name:443" to an address and port.

        Dead hosts, and https without TLS, lead to a port that refuses connections; so nothing ever asks real DNS.
        """
        table = {}
        for host in self._atlas.hosts:
            dead = self._atlas.lost.get(host) == "connect"
            for port, scheme in ((80, "http"), (443, "https")):
                table[f"{host}:{port}"] = f"127.0.0.1:{self._port('refused' if dead else scheme)}"
        return table

    def _port(self, scheme: str) -> int:
        if not self._ports:
            raise RuntimeError("the toy web is not running")
        return self._ports.get(scheme, self._ports["refused"])

    @property
    def ca_file(self) -> Path:
        """PEM file of the authority that signed the hosts' certificates; there while the web runs with TLS."""
        if self._folder is None or not self.recipe.tls:
            raise RuntimeError("the toy web is not running, or runs without TLS")
        return Path(self._folder.name) / "ca.pem"

    @property
    def form(self) -> str:
        """URL of the endpoint that answers POST by the body; links never lead there."""
        return "http://odd.shop.test/form"

    def toml(self) -> str:
        """The settings that reach this web, as lines for `crawl.toml`."""
        lines = [f'contact = "{CONTACT}"', ""]
        if self.recipe.tls:
            lines += ["[fetch]", f'ca_file = "{self.ca_file}"', ""]
        lines += ["[network]", 'allow = ["127.0.0.1"]', "", "[network.resolve]"]
        lines += [f'"{name}" = "{address}"' for name, address in self.resolve.items()]
        for rule in self.truth.own_folds:
            lines += ["", "[[identity.hosts]]", *(f"{key} = {json.dumps(value)}" for key, value in rule.items())]
        return "\n".join(lines) + "\n"

    # -- what was asked -----------------------------------------------------------------------------------------

    @property
    def requests(self) -> list[Request]:
        """Every request so far, in order of arrival, those still running too."""
        return self._log.all()

    def log_to(self, path: Path) -> None:
        """Write each request that ends from now on to a file, a JSON line each, flushed; see `read_log`."""
        self._log.write_to(path)

    def forget(self) -> None:
        """Drop the log, and let hosts that remember (flaky, throttled, dying) begin again."""
        self._log.forget()
        self._server.forget()

    def audit(self, delay_ms: int, *, tolerance_ms: int = audit.TOLERANCE_MS, is_busy: bool = False) -> list[str]:
        """Violations of politeness: overlaps, too close start to start, Retry-After or Crawl-delay ignored."""
        return audit.politeness(self.requests, self.truth, delay_ms, tolerance_ms=tolerance_ms, is_busy=is_busy)

    def fetched_twice(self, truth: Truth | None = None) -> dict[str, int]:
        """Pages answered with 200 more than once under any spelling, and how often."""
        return audit.fetched_twice(self.requests, truth or self.truth)

    def asked_robots_first(self) -> list[str]:
        """Origins of which something was asked before their robots.txt; empty when the crawler asked."""
        return audit.robots_not_first(self.requests)

    def trespasses(self) -> list[str]:
        """Requests for what robots.txt forbids or what is out of scope."""
        return audit.trespasses(self.requests, self.truth)

    # -- running ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Serve; returns when the ports are open. A web is started once."""
        if self._thread is not None:
            raise RuntimeError("a toy web is started once; make another")
        self._folder = tempfile.TemporaryDirectory(prefix="toyweb-")
        # Bound and never listened on: it refuses connections, and nobody else gets the port.
        self._closed_port = socket.socket()
        self._closed_port.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run, name="toyweb", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            self.stop()
            raise self._failure

    def stop(self) -> None:
        """Cut every connection and end; the log and the truth stay."""
        if self._loop is not None and self._stopping is not None and self._thread is not None:
            if self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(STOP_SECONDS)
        if self._closed_port is not None:
            self._closed_port.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
        self._log.close()
        self._ports = {}

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except Exception as failure:
            self._failure = failure
        finally:
            self._ready.set()

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        try:
            self._ports = await self._listen()
            self._ready.set()
            await self._stopping.wait()
        finally:
            await self._server.close()

    async def _listen(self) -> dict[str, int]:
        ports = {"refused": self._closed_port.getsockname()[1]} if self._closed_port else {}
        ports["http"] = await self._server.listen()
        if self.recipe.tls:
            context = certificates.server_context(self._atlas.hosts, self.ca_file)
            ports["https"] = await self._server.listen(context)
        return ports

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)
