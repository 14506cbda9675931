"""How the command ends."""

from __future__ import annotations

import subprocess
import sys

LATE = """
import builtins, os, signal, sys

class Late:
    def __del__(self, kill=os.kill, pid=os.getpid(), number=signal.SIGINT):
        kill(pid, number)

builtins.late = Late()
from crawlspace.cli import main
main()
"""
"""A signal that comes while the interpreter puts its modules away, when no handler of its own holds any more."""


def test_ctrl_c_behind_the_last_word_does_not_change_the_exit_code() -> None:
    command = [sys.executable, "-c", LATE, "normalize", "gopher://a.test/"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = subprocess.run([*command[:1], "-m", "crawlspace", *command[3:]], check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (told.returncode, "")
