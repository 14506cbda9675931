"""What the operating system says of a run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bench.processes import Used, run

BUSY = "import time\nwhile time.process_time() < 0.3: pass\n"
CHILD = "import subprocess, sys; subprocess.run([sys.executable, '-c', {!r}])"


def run_python(source: str, folder: Path, limit: float = 60) -> Used:
    (folder / "run").mkdir()
    return run([sys.executable, "-c", source], folder / "run", limit)


@pytest.mark.parametrize("source", [BUSY, CHILD.format(BUSY)], ids=["itself", "its child"])
def test_the_cpu_time_of_the_process_and_of_its_children_is_counted(source: str, tmp_path: Path) -> None:
    assert 0.3 <= run_python(source, tmp_path).cpu < 30


def test_the_exit_status_and_the_last_line_are_kept_and_nothing_is_left_in_the_folder(tmp_path: Path) -> None:
    used = run_python("import sys; print('first', flush=True); sys.exit('last words')", tmp_path)
    assert (used.exit, used.said) == (1, "last words")
    assert list((tmp_path / "run").iterdir()) == []


def test_a_run_that_takes_too_long_is_killed_and_the_memory_of_its_children_was_counted(tmp_path: Path) -> None:
    used = run_python(CHILD.format("import time; data = b'x' * 200_000_000; time.sleep(600)"), tmp_path, limit=3)
    assert used.exit == -9
    assert used.wall < 30
    assert used.rss_mb > 200
