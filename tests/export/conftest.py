"""A crawl with a URL in each state, made by hand, and the command line run in this process."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from crawlspace.app.directory import CrawlDirectory
from crawlspace.archive.warc import ArchiveSettings, WarcArchive
from crawlspace.cli import main
from crawlspace.exchange import Capture
from crawlspace.frontier.sqlite.store import SqliteFrontier
from crawlspace.settings import convert, nested
from crawlspace.testing.clock import ManualClock
from crawlspace.types import (
    Address,
    Claim,
    Died,
    Evidence,
    Finished,
    Lease,
    Pace,
    ProcessingFailed,
    QueuedUrl,
    Reason,
    Refused,
    Released,
    RequestSpec,
    RetryAt,
    Settlement,
    WasRedirect,
    Wish,
)
from crawlspace.urls import Identity, policy_from

T0 = 1_700_000_000_123
SETTINGS = convert(nested({"scope.strategy": "any", "store.refusals_kept": 100_000}), "test")
IDENTITY = Identity(policy_from(SETTINGS.identity))

HOME = "http://a.test/"
PAGE = b"""<html><head><title>Home</title></head><body>
<a href="/done?b=1&amp;a=2">one</a> <a rel="nofollow" href="http://b.test/x,y%22z">two</a>
<a href="mailto:me@a.test">me</a> <a href="http://[x/">odd</a>
</body></html>"""
FORMULA = '=HYPERLINK("http://evil.test/","x")'
CAPTURED = frozenset({"done", "stored", "redirected", "dead"})


@dataclass(frozen=True)
class Made:
    """A URL, and what becomes of it: the word behind the slash of its path."""

    url: str
    payload: bytes = b"hello"
    mime: str = "text/plain"
    status: int = 200
    target: str | None = None
    label: str | None = None
    meta: str | None = None
    request: RequestSpec | None = None

    @property
    def fate(self) -> str:
        word = self.url.partition("//")[2].partition("/")[2].partition("?")[0]
        return word if word in ("dead", "retry", "robots", "stored", "redirect") else "done"


MADE = (
    Made(HOME, PAGE, "text/html", meta='{ "a":\n 1 }', label=FORMULA),
    Made("http://a.test/done?b=1&a=2", mime="@SUM(1)", label="-1", meta='{"f": "=1+1"}'),
    Made("http://a.test/redirect", b"", status=301, target="http://b.test/x,y%22z"),
    Made("http://b.test/x,y%22z", label="a\tb;=1+1\r\n+2"),
    Made("http://b.test/;=1+1?%E2%82%AC=%F0%9F%98%80"),
    Made("http://b.test/" + "long/" * 390),
    Made("http://b.test/robots"),
    Made("http://c.test/dead", b"gone", status=404),
    Made("http://c.test/retry"),
    Made("http://c.test/stored"),
    Made("http://c.test/form", request=RequestSpec("POST", b"q=1&r=x+y", "application/x-www-form-urlencoded")),
    Made("https://d.test:8443/%3Dcmd%7C'%20/C'!A0"),
)
SKIPPED = ("http://elsewhere.test/", "http://elsewhere.test/two")
WAITING = ("http://e.test/queued", "http://e.test/queued/too")
LEASED = "http://f.test/leased"


def claim_of(
    url: str, *, refusal: Reason | None = None, made: Made | None = None, parent: int | None = None
) -> Claim:
    request = made.request if made else None
    address = IDENTITY.identify(url, request=request)
    assert isinstance(address, Address)
    return Claim(
        address,
        depth=1 if parent else 0,
        refusal=refusal,
        parent=parent,
        label=made.label if made else None,
        meta=made.meta if made else None,
        request=request,
    )


def capture_of(made: Made) -> Capture:
    """The exchange behind a page."""
    head = [f"HTTP/1.1 {made.status} Told", f"Content-Type: {made.mime}; charset=utf-8"]
    head += [f"Location: {made.target}"] if made.target else []
    asked = made.request or RequestSpec()
    request = [
        f"{asked.method} / HTTP/1.1",
        "Host: it",
        *([f"Content-Type: {asked.content_type}"] * bool(asked.body)),
    ]
    request += [f"Content-Length: {len(asked.body)}"] if asked.body else []
    return Capture(
        url=made.url,
        at=T0,
        status=made.status,
        request_head="\r\n".join([*request, "", ""]).encode(),
        request_body=asked.body,
        response_head="\r\n".join([*head, "", ""]).encode(),
        payload=made.payload,
        address="192.0.2.1",
        method=asked.method,
    )


@dataclass
class Maker:
    """Makes one crawl directory."""

    place: CrawlDirectory
    clock: ManualClock = field(default_factory=lambda: ManualClock(T0))

    async def make(self, made: Sequence[Made] = MADE, *, unspent: bool = True) -> None:
        self.place.create()
        self.place.write_effective(SETTINGS)
        frontier = await SqliteFrontier.open(self.place.database, SETTINGS.frontier(), self.clock)
        archive = WarcArchive(self.place.archive, ArchiveSettings(), self.clock, crawl="made", software="test")
        try:
            first, rest = made[:1], made[1:]
            await frontier.claim([claim_of(each.url, made=each) for each in first])
            await self.spend(frontier, archive, first)
            await frontier.claim([claim_of(each.url, made=each, parent=1) for each in rest])
            await self.spend(frontier, archive, rest)
            if unspent:
                await self.leave_unspent(frontier)
        finally:
            await archive.close()
            await frontier.close()

    async def leave_unspent(self, frontier: SqliteFrontier) -> None:
        """Some refused, one leased, some queued."""
        await frontier.claim([claim_of(url, refusal=Reason.OUT_OF_SCOPE) for url in SKIPPED])
        await frontier.claim([claim_of(LEASED)])
        assert len(await frontier.lease(Wish(1, 10, 10, 60_000, 10**9))) == 1
        await frontier.claim([claim_of(url) for url in WAITING])

    async def spend(self, frontier: SqliteFrontier, archive: WarcArchive, made: Sequence[Made]) -> None:
        by_url = {each.url: each for each in made}
        for lease in await frontier.lease(Wish(1, 100, 100, 60_000, 10**9)):
            settlements = [await self.settlement(lease, url, archive, by_url[url.url]) for url in lease.urls]
            await archive.flush()
            await frontier.settle([*settlements, Released(lease.token, lease.host.hid, Pace())], [])

    async def settlement(self, lease: Lease, url: QueuedUrl, archive: WarcArchive, made: Made) -> Settlement:
        where = (lease.token, lease.host.hid, url)
        if made.fate == "robots":
            return Refused(*where, Reason.ROBOTS)
        if made.fate == "retry":
            return RetryAt(*where, Evidence(T0, error="connect"), T0 + 10**9)
        pointer = await archive.append(capture_of(made))
        errors = {"dead": "http_404", "stored": "processing"}
        digest = hashlib.sha256(made.payload).digest() if made.payload else None
        evidence = Evidence(
            T0,
            made.status,
            errors.get(made.fate),
            "",
            pointer,
            digest,
            made.mime,
            99,
            20,
            etag="+1",
            last_modified="-1",
        )
        match made.fate:
            case "dead":
                return Died(*where, evidence)
            case "stored":
                return ProcessingFailed(*where, evidence)
            case "redirect":
                assert made.target is not None
                return WasRedirect(*where, evidence, made.target)
            case _:
                return Finished(*where, evidence)


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = CrawlDirectory(tmp_path_factory.mktemp("made") / "crawl")
    asyncio.run(Maker(place).make())
    return place.path


@pytest.fixture
def crawl(original: Path, tmp_path: Path) -> Path:
    """The directory of the crawl, a copy for each test."""
    shutil.copytree(original, tmp_path / "crawl")
    return tmp_path / "crawl"


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """The directory of a crawl that knows no URL."""
    place = CrawlDirectory(tmp_path / "empty")
    asyncio.run(Maker(place).make((), unspent=False))
    return place.path


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str


Command = Callable[..., Ran]


@pytest.fixture
def crawlspace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `crawlspace ARGUMENTS`."""

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["crawlspace", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        code = left.value.code
        assert isinstance(code, int)
        return Ran(code, told.out, told.err)

    return run
