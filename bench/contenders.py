"""The programs that are compared: how each is started, and what it keeps.

Two classes are never mixed: those that keep nothing but memory, and those that are meant to survive a crash.
Every one may have 64 requests under way, waits for nobody and retries nothing; robots rules are not asked for, except
by crawlspace, which runs with everything on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from pathlib import Path

CONCURRENCY = 64

_WGET = frozenset({0, 8})
"""wget says 8 when any page was not found."""
_PEERS = Path(__file__).parent / "peers"


@unique
class Keeps(StrEnum):
    """What is left of the frontier when the program is killed."""

    NOTHING = "nothing kept"
    ALL = "crash-safe"


@dataclass(frozen=True, slots=True)
class Contender:
    """One program."""

    name: str
    keeps: Keeps
    bodies: str
    """Where the pages' bytes go."""
    command: Callable[[str], list[str]]
    """The command for a start URL; it runs in an empty folder, and again in the same one to resume."""
    program: str = sys.executable
    """What must be there for it to run."""
    probe: str = ""
    """A module that `program`, a Python, must have."""
    good_exits: frozenset[int] = frozenset({0})
    """Exit statuses of a whole crawl."""


def contenders(peers_python: str) -> list[Contender]:
    """All of them; `peers_python` is a Python that has the pinned peers."""
    return [
        Contender("crawlspace", Keeps.ALL, "WARC", crawl_command({"content.near": "false"}), probe="crawlspace"),
        Contender("floor-durable", Keeps.ALL, "WARC", _floor("durable")),
        Contender("scrapy-jobdir", Keeps.ALL, "no", _scrapy(peers_python, "job"), peers_python, "scrapy"),
        Contender("crawlee-sql", Keeps.ALL, "no", _crawlee(peers_python, "sql"), peers_python, "crawlee"),
        Contender("floor", Keeps.NOTHING, "no", _floor("nothing")),
        Contender("aiohttp", Keeps.NOTHING, "no", _aiohttp(peers_python), peers_python, "aiohttp"),
        Contender("scrapy", Keeps.NOTHING, "no", _scrapy(peers_python), peers_python, "scrapy"),
        Contender("crawlee", Keeps.NOTHING, "no", _crawlee(peers_python, "memory"), peers_python, "crawlee"),
        Contender("wget", Keeps.NOTHING, "files", _wget, "wget", good_exits=_WGET),
    ]


def crawl_command(settings: Mapping[str, str]) -> Callable[[str], list[str]]:
    """A crawl of ours without politeness, with these settings too."""
    chosen = {
        "host.delay": "0",
        "host.concurrency": str(CONCURRENCY),
        "concurrency.global": str(CONCURRENCY),
        "fetch.connections_per_address": str(CONCURRENCY),
        "robots.obey": "true",
        "network.allow": '["127.0.0.0/8"]',
        **settings,
    }
    options = [part for key, value in chosen.items() for part in ("-s", f"{key}={value}")]
    return lambda url: [sys.executable, "-m", "crawlspace", "crawl", url, "--dir", "crawl", "-q", *options]


def _floor(keep: str) -> Callable[[str], list[str]]:
    return lambda url: [sys.executable, str(_PEERS / "floor.py"), url, keep, str(CONCURRENCY)]


def _scrapy(python: str, *job: str) -> Callable[[str], list[str]]:
    return lambda url: [python, str(_PEERS / "scrapy_spider.py"), url, str(CONCURRENCY), *job]


def _crawlee(python: str, mode: str) -> Callable[[str], list[str]]:
    return lambda url: [python, str(_PEERS / "crawlee_crawler.py"), url, mode, str(CONCURRENCY)]


def _aiohttp(python: str) -> Callable[[str], list[str]]:
    return lambda url: [python, str(_PEERS / "aiohttp_selectolax.py"), url, str(CONCURRENCY)]


def _wget(url: str) -> list[str]:
    return ["wget", "-q", "-r", "-l", "inf", "-t", "1", "-e", "robots=off", "-nH", "--follow-tags=a,area", url]
