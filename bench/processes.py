"""One program run to its end, and what the operating system says it used.

CPU time is user and system time of the process and of all children that it waited for. Memory is the resident size
of the whole tree of processes, sampled: the system's own maximum is that of the largest single process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SAMPLE_SECONDS = 0.05
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Used:
    """What a run took."""

    exit: int
    """Exit status; the number of the signal, negative, when one ended it."""
    cpu: float
    """Seconds."""
    wall: float
    """Seconds."""
    rss_mb: float
    """Highest sample of the whole tree, megabytes."""
    said: str
    """The last line that it printed."""


def start(command: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start `command` in `folder`, which becomes its home too, at the head of a process group of its own."""
    environment = {**os.environ, "HOME": str(folder)}
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONUNBUFFERED"):
        environment.pop(name, None)
    with _output_of(folder).open("wb") as output:
        return subprocess.Popen(
            list(command),
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def run(command: Sequence[str], folder: Path, limit: float) -> Used:
    """Run `command` in `folder` until it ends, or for `limit` seconds at most; then it is killed."""
    begin = time.monotonic()
    process = start(command, folder)
    watch = _Watch(process.pid, begin + limit)
    watch.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        watch.stop()
        kill_group(process.pid)
    return Used(process.returncode, usage.ru_utime + usage.ru_stime, wall, watch.peak / 1e6, last_line(folder))


def kill_group(pid: int) -> None:
    """kill -9 for the process that was started and all that it started; nothing happens when they have ended."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def last_line(folder: Path) -> str:
    """The last line printed by what ran in `folder`."""
    lines = _output_of(folder).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else ""


def _output_of(folder: Path) -> Path:
    """Beside the folder, not in it: what is printed is not what is left on disk."""
    return folder.with_name(folder.name + ".output")


class _Watch(threading.Thread):
    """Samples a tree of processes, and ends it when its time is up."""

    def __init__(self, pid: int, deadline: float) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._deadline = deadline
        self._ended = threading.Event()
        self.peak = 0

    def run(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            self.peak = max(self.peak, sum(_resident(pid) for pid in _tree(self._pid)))
            if time.monotonic() > self._deadline:
                kill_group(self._pid)
                return

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _tree(pid: int) -> list[int]:
    found = [pid]
    for each in found:
        found += _children(each)
    return found


def _children(pid: int) -> list[int]:
    """None when it has ended meanwhile; a thread that has ended has none either."""
    found: list[int] = []
    with suppress(OSError):
        for task in os.scandir(f"/proc/{pid}/task"):
            with suppress(OSError):
                found += map(int, Path(task.path, "children").read_text().split())
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0
