"""A Chromium that runs, driven by Playwright; the only module that knows that library.

It is started for us alone: a directory of its own that goes with it, none of our environment, nothing that talks to
its makers, and a proxy for everything that leads nowhere but for pages that are given a way out. Its processes are
watched, and ended when they take too much memory; a browser that has ended fails what was open in it and is replaced
by whoever asks next.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from crawlspace.errors import ConfigError
from crawlspace.fetch.rendering.settings import BrowserSettings

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page, Playwright

NAMES: Final = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
START_SECONDS: Final = 60.0
CLOSE_SECONDS: Final = 5.0
WATCH_SECONDS: Final = 0.5
CLEARINGS: Final = 20

_NOWHERE: Final = "socks5://127.0.0.1:9"
"""The port for what is thrown away: nobody listens there."""
_KEPT: Final = ("PATH", "LANG", "LC_ALL", "TZ", "FONTCONFIG_PATH", "FONTCONFIG_FILE", "LD_LIBRARY_PATH")
_SWITCHES: Final = (
    "--disable-quic",
    "--dns-prefetch-disable",
    "--no-pings",
    "--disable-domain-reliability",
    "--disable-speech-api",
    "--disable-notifications",
    "--disable-remote-fonts",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)
_NOT_WANTED: Final = ("--disable-popup-blocking", "--disable-ipc-flooding-protection")
"""Switches of the library that take protections away which a crawl wants."""
_HOME: Final = "crawlspace-browser-"
_PROFILE: Final = "playwright_chromiumdev_profile-"
"""How the library calls the directories that it makes for browsers."""
_MIB: Final = 1 << 20
_PARENT: Final = 1
_SAID: Final = re.compile(r"^\[pid=\d+\]\[err\] (.+)$", re.MULTILINE)
"""What a browser wrote, as the library hands it on."""
_CRASHED: Final = "crashed"
_GONE: Final = ("has been closed", _CRASHED, "Connection closed")


class Gone(Exception):
    """The browser has ended while it was used; the message says why."""


def says_gone(error: Exception) -> bool:
    """Whether the library says that a page, which nobody closes but us, or its process is no more."""
    return any(words in str(error) for words in _GONE)


def not_started(path: str, told: str) -> str:
    """Why a program does not start as a browser, by what the library tells of that."""
    said = _SAID.findall(told)
    if "Timeout" in told.partition("\n")[0]:
        why = f"it was not ready after {START_SECONDS:g} s"
    elif said:
        why = f"it ended with the words {said[-1].strip()[:200]!r}"
    else:
        why = "it ended at once and without a word"
    return f"{path} does not start as a browser: {why}; browser.executable can name another Chromium"


class Opened(NamedTuple):
    """A page that is open, with the session that commands it."""

    page: Page
    session: CDPSession
    context: BrowserContext


class Way(NamedTuple):
    """How a page is opened."""

    port: int
    """Where its way out listens."""
    user_agent: str
    verify: bool = True
    """Whether certificates are checked."""
    cookies: tuple[tuple[str, str], ...] = ()
    url: str = ""
    """Whose cookies these are."""


def program(settings: BrowserSettings) -> str:
    """The browser's program; raises `ConfigError` where there is none, or nothing to drive it."""
    if find_spec("playwright") is None:
        raise ConfigError("a browser needs the package playwright", hint="pip install 'crawlspace[browser]'")
    if settings.executable:
        if shutil.which(settings.executable) is None:
            raise ConfigError(f"browser.executable: {settings.executable!r} is no program")
        return settings.executable
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise ConfigError(
            "no browser was found", hint="install Chromium (Debian: apt install chromium) or set browser.executable"
        )
    return found


class Chromium:
    """One browser. Made by `start`."""

    def __init__(self, playwright: Playwright, browser: Browser, home: Path, settings: BrowserSettings) -> None:
        self.open = 0
        """Pages that are open."""
        self.served = 0
        """Pages that were opened so far."""
        self._playwright = playwright
        self._browser = browser
        self._home = home
        self._settings = settings
        self._why = ""
        self._pid: int | None = None
        self._profile: Path | None = None
        self._watching: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, settings: BrowserSettings) -> Chromium:
        """Start a browser; raises `Gone` when it does not come up, `ConfigError` when there is none."""
        path = program(settings)
        from playwright.async_api import Error, async_playwright

        _clear_after_the_dead()
        home = Path(tempfile.mkdtemp(prefix=f"{_HOME}{os.getpid()}-"))
        mark = f"--crawlspace-mark={secrets.token_hex(8)}"
        playwright = await async_playwright().start()
        try:
            browser = await playwright.chromium.launch(
                executable_path=path,
                headless=True,
                chromium_sandbox=settings.sandbox and os.geteuid() != 0,
                args=[*_SWITCHES, f"--js-flags=--max-old-space-size={max(128, settings.memory // 2)}", mark],
                ignore_default_args=list(_NOT_WANTED),
                env=_environment(home),
                proxy={"server": _NOWHERE},
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                timeout=START_SECONDS * 1000,
            )
        except BaseException as error:
            await playwright.stop()
            shutil.rmtree(home, ignore_errors=True)
            if isinstance(error, Error):
                raise Gone(not_started(path, error.message)) from error
            raise
        started = cls(playwright, browser, home, settings)
        started._pid, started._profile = _process_with(mark)
        started._watching = asyncio.create_task(started._watch())
        return started

    @property
    def is_alive(self) -> bool:
        """Whether pages can be opened."""
        return not self._why and self._browser.is_connected()

    @property
    def why(self) -> str:
        """Why it has ended."""
        return self._why or "the browser has ended by itself"

    @asynccontextmanager
    async def tab(self, way: Way) -> AsyncIterator[Opened]:
        """An empty page in a context of its own, which nothing of other pages gets into; raises `Gone`.

        A page that cannot be closed in time takes the browser with it.
        """
        from playwright.async_api import Error

        self.open += 1
        self.served += 1
        context: BrowserContext | None = None
        try:
            try:
                context = await self._context(way)
                page = await context.new_page()
                context.on("page", _shut)
                session = await context.new_cdp_session(page)
            except Error as error:
                raise Gone(self.why if not self.is_alive else f"no page opens: {error.message[:300]}") from error
            yield Opened(page, session, context)
        finally:
            self.open -= 1
            await self._close(context)

    async def _context(self, way: Way) -> BrowserContext:
        context = await self._browser.new_context(
            proxy={"server": f"socks5://127.0.0.1:{way.port}"},
            user_agent=way.user_agent,
            ignore_https_errors=not way.verify,
            accept_downloads=False,
            service_workers="block",
            permissions=[],
        )
        if way.cookies:
            await context.add_cookies([{"name": name, "value": value, "url": way.url} for name, value in way.cookies])
        return context

    async def _close(self, context: BrowserContext | None) -> None:
        if context is None:
            return
        closing = asyncio.ensure_future(context.close())
        done, _ = await asyncio.wait([closing], timeout=CLOSE_SECONDS)
        if not done:
            self.kill("a page of it could not be closed")
            closing.cancel()
        with suppress(Exception, asyncio.CancelledError):
            await closing

    def kill(self, why: str) -> None:
        """End it at once, whatever is open."""
        self._why = self._why or why
        if self._pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self._pid, signal.SIGKILL)

    def lost(self, error: Exception) -> None:
        """A page was lost: with the browser, unless it was the page's own process that crashed."""
        if _CRASHED not in str(error):
            self.kill(self.why)

    async def stop(self) -> None:
        """End it, and leave nothing of it behind."""
        self._why = self._why or "the browser was closed"
        if self._watching is not None:
            self._watching.cancel()
        closing = asyncio.ensure_future(self._browser.close())
        done, _ = await asyncio.wait([closing], timeout=CLOSE_SECONDS)
        if not done:
            self.kill("")
            closing.cancel()
        with suppress(Exception, asyncio.CancelledError):
            await closing
        with suppress(Exception):
            await self._playwright.stop()
        await self._clear()

    async def _clear(self) -> None:
        """Remove what it wrote; processes that end may write for a moment still."""
        places = [self._home, *([self._profile] if self._profile else [])]
        for _ in range(CLEARINGS):
            for place in places:
                shutil.rmtree(place, ignore_errors=True)
            if not any(place.exists() for place in places):
                return
            await asyncio.sleep(WATCH_SECONDS / 5)

    async def _watch(self) -> None:
        """End the browser when it takes too much memory; where the system does not tell, nobody does."""
        while self._pid is not None and self.is_alive:
            await asyncio.sleep(WATCH_SECONDS)
            taken = memory_of(self._pid)
            if taken > self._settings.memory * _MIB:
                self.kill(f"the browser took {taken // _MIB} MiB, browser.memory allows {self._settings.memory}")


def _shut(page: Page) -> None:
    """A window that a page opens is closed again."""
    closing = asyncio.ensure_future(page.close())
    closing.add_done_callback(lambda done: done.cancelled() or done.exception())


def _environment(home: Path) -> dict[str, str | float | bool]:
    """What the browser is told of ours: nothing that could be a secret."""
    kept: dict[str, str | float | bool] = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "HOME": str(home), "TMPDIR": str(home), "XDG_CONFIG_HOME": str(home), "XDG_CACHE_HOME": str(home)}


# -- processes, as Linux tells of them ----------------------------------------------------------------------


def _process_with(mark: str) -> tuple[int | None, Path | None]:
    """The browser's own process, whose command line has this mark, and the directory that was made for it."""
    for place in _processes():
        try:
            words = (place / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        if mark in words and not any(word.startswith("--type=") for word in words):
            named = (word.partition("=")[2] for word in words if word.startswith("--user-data-dir="))
            profile = Path(next(named, ""))
            return int(place.name), profile if profile.name.startswith(_PROFILE) else None
    return None, None


def _clear_after_the_dead() -> None:
    """Remove what browsers of processes that were killed have left."""
    for place in Path(tempfile.gettempdir()).glob(f"{_HOME}*-*"):
        owner = place.name.removeprefix(_HOME).partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists() and Path("/proc/self").exists():
            shutil.rmtree(place, ignore_errors=True)


def memory_of(pid: int) -> int:
    """Bytes that a process and all that came of it have for themselves; 0 when it is gone."""
    parents = {int(place.name): _parent(place) for place in _processes()}
    taken, family = 0, [pid]
    while family:
        member = family.pop()
        taken += _own(member)
        family += [child for child, parent in parents.items() if parent == member]
    return taken


def _processes() -> list[Path]:
    root = Path("/proc")
    return [place for place in root.iterdir() if place.name.isdigit()] if root.is_dir() else []


def _parent(place: Path) -> int | None:
    try:
        return int((place / "stat").read_text("latin-1").rpartition(")")[2].split()[_PARENT])
    except (OSError, ValueError, IndexError):
        return None


def _own(pid: int) -> int:
    try:
        _, resident, shared = Path(f"/proc/{pid}/statm").read_text("ascii").split()[:3]
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
