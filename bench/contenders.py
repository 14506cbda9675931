"""The programs that are compared: how each is started, and what it keeps.

Two classes are never mixed: those that keep nothing but memory, and those that are meant to survive a crash.
Every one may have 64 requests under way, waits for nobody and retries nothing; robots rules are not asked for, except
by crawlspace, which runs with everything on.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from pathlib import Path

CONCURRENCY = 64

LEAN = {
    "content.near": "false",
    "content.fingerprints": "false",
    "learning.mode": "off",
    "routing.detect": "false",
    "archive.metadata": "false",
}
"""What a crawl of ours can do without and still keep all that the durable floor keeps, and be as polite."""
_WGET = frozenset({0, 8})
"""wget says 8 when any page was not found."""
_PEERS = Path(__file__).parent / "peers"
_SLOW = 2
"""Rounds of those that take minutes for what others do in seconds."""


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
    needs: Path | None = None
    """A file or folder that must be there too."""
    good_exits: frozenset[int] = frozenset({0})
    """Exit statuses of a whole crawl."""
    most_rounds: int | None = None
    """Rounds of whole crawls that it takes part in; None: all."""

    @property
    def is_there(self) -> bool:
        """Whether it can run on this machine."""
        if shutil.which(self.program) is None or not (self.needs is None or self.needs.exists()):
            return False
        command = [self.program, "-c", f"import {self.probe}"]
        return not self.probe or subprocess.run(command, capture_output=True, check=False).returncode == 0


def add_peers(parser: argparse.ArgumentParser) -> None:
    """The options that say where peers are, and which of all contenders are wanted."""
    parser.add_argument("--peers-python", default=sys.executable, metavar="PATH", help="a Python that has the peers")
    parser.add_argument("--peers-node", type=Path, metavar="FOLDER", help="folder of the peers that Node runs")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="one contender; may be repeated")


def chosen(options: argparse.Namespace) -> list[Contender]:
    """Those that the options of `add_peers` name; raises `UnknownContender`."""
    everyone = {each.name: each for each in contenders(options.peers_python, options.peers_node)}
    if unknown := [name for name in options.only if name not in everyone]:
        raise UnknownContender(f"no contender is called {unknown[0]!r}; there are: {', '.join(everyone)}")
    return [each for each in everyone.values() if not options.only or each.name in options.only]


def present(wanted: Sequence[Contender]) -> list[Contender]:
    """Those that can run here; the others are named, so that no row is missing silently."""
    found = [each for each in wanted if each.is_there]
    for each in wanted:
        if each not in found:
            missing = each.needs or each.probe or "itself"
            print(f"left out: {each.name}; {each.program}, or for it {missing}, is not there", file=sys.stderr)
    return found


class UnknownContender(Exception):
    """A name that none has; the text says which there are."""


def contenders(peers_python: str, peers_node: Path | None = None) -> list[Contender]:
    """All of them; `peers_python` is a Python that has the pinned peers, `peers_node` the folder of Node's."""
    node = (peers_node or _PEERS).resolve()
    return [
        Contender("crawlspace", Keeps.ALL, "WARC", crawl_command({"content.near": "false"}), probe="crawlspace"),
        Contender("crawlspace-lean", Keeps.ALL, "WARC", crawl_command(LEAN), probe="crawlspace"),
        Contender("floor-durable", Keeps.ALL, "WARC", _floor("durable")),
        Contender("scrapy-jobdir", Keeps.ALL, "no", _scrapy(peers_python, "job"), peers_python, "scrapy"),
        Contender("crawlee-sql", Keeps.ALL, "no", _crawlee(peers_python, "sql"), peers_python, "crawlee"),
        Contender("floor", Keeps.NOTHING, "no", _floor("nothing")),
        Contender("aiohttp", Keeps.NOTHING, "no", _aiohttp(peers_python), peers_python, "aiohttp"),
        Contender("scrapy", Keeps.NOTHING, "no", _scrapy(peers_python), peers_python, "scrapy"),
        Contender("crawlee", Keeps.NOTHING, "no", _crawlee(peers_python, "memory"), peers_python, "crawlee"),
        Contender("wget", Keeps.NOTHING, "files", _wget, "wget", good_exits=_WGET),
        _node(
            node / "crawlee_crawler.mjs", "crawlee-js-disk", Keeps.ALL, "disk", str(CONCURRENCY), most_rounds=_SLOW
        ),
        _node(
            node / "crawlee_crawler.mjs", "crawlee-js", Keeps.NOTHING, "memory", str(CONCURRENCY), most_rounds=_SLOW
        ),
        _node(node / "node_crawler.mjs", "node-crawler", Keeps.NOTHING, str(CONCURRENCY)),
        _node(node / "spider.mjs", "spider", Keeps.NOTHING),
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


def _node(script: Path, name: str, keeps: Keeps, *rest: str, most_rounds: int | None = None) -> Contender:
    """A peer for Node; its libraries lie in the folder of its script, once `make` has put them there."""
    return Contender(
        name,
        keeps,
        "no",
        lambda url: ["node", str(script), url, *rest],
        "node",
        needs=script.parent / "node_modules",
        most_rounds=most_rounds,
    )


def _aiohttp(python: str) -> Callable[[str], list[str]]:
    return lambda url: [python, str(_PEERS / "aiohttp_selectolax.py"), url, str(CONCURRENCY)]


def _wget(url: str) -> list[str]:
    return ["wget", "-q", "-r", "-l", "inf", "-t", "1", "-e", "robots=off", "-nH", "--follow-tags=a,area", url]
