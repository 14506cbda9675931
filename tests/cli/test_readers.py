"""Who reads our output may leave: the exit code still tells how a command ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TELLS = [sys.executable, "-m", "crawlspace"]


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    assert unread("config", "show") == (0, "")
    # An end by its budget of seconds keeps its code, though nobody reads the closing lines.
    crawl = ("crawl", "http://127.0.0.1:9/", "--dir", str(tmp_path / "crawl"), "-s", "budget.seconds=0.01")
    assert unread(*crawl, "-s", "network.allow=['127.0.0.1']")[0] == 4


def unread(*arguments: str) -> tuple[int, str]:
    """Exit code and standard error of a command whose standard output nobody reads."""
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run([*TELLS, *arguments], stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    return ran.returncode, ran.stderr
