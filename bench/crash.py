"""kill -9 on the way, then the same command again: what is lost, and what is fetched twice."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Set
from pathlib import Path

from bench import processes
from bench.contenders import Contender
from bench.results import Resumption
from bench.rounds import Plan
from bench.server import Served

KILL_AT = 0.4
"""Part of the pages fetched when it is killed."""

_LOOK_SECONDS = 0.01
_LOG_SECONDS = 0.1


def kill_and_resume(contender: Contender, served: Served, plan: Plan) -> Resumption:
    """Kill a crawl of the site at `KILL_AT`, run it again to its end, and count over both."""
    expected = plan.expected[served.site.name]
    with tempfile.TemporaryDirectory(dir=plan.work, ignore_cleanup_errors=True) as name:
        folder = Path(name) / "crawl"
        folder.mkdir()
        command = contender.command(served.url)
        served.log.mark()
        _run_until(command, folder, served, expected, plan.limit)
        time.sleep(_LOG_SECONDS)
        before = served.log.requests()
        used = processes.run(command, folder, plan.limit)
        time.sleep(_LOG_SECONDS)
        after = served.log.requests()
    return Resumption(
        contender=contender.name,
        site=served.site.name,
        before=len(before.pages),
        again=after.pages.total() - before.pages.total(),
        exit=used.exit,
        missed=after.missed(expected),
        twice=after.repeats,
        wall=used.wall,
    )


def _run_until(command: list[str], folder: Path, served: Served, expected: Set[str], limit: float) -> None:
    deadline = time.monotonic() + limit
    process = processes.start(command, folder)
    try:
        while process.poll() is None and time.monotonic() < deadline:
            if len(served.log.requests().pages) >= KILL_AT * len(expected):
                break
            time.sleep(_LOOK_SECONDS)
    finally:
        processes.kill_group(process.pid)
        process.wait()
