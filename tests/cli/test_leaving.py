"""How the command ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

LATE = """
import builtins, os, signal, sys

class Late:
    def __del__(self, kill=os.kill, pid=os.getpid(), number=int(sys.argv.pop())):
        kill(pid, number)

builtins.late = Late()
from crawlspace.cli import main
main()
"""
"""A signal that comes while the interpreter puts its modules away, when no handler of its own holds any more."""


EARLY = """
import os, signal, sys
import crawlspace.cli.normalize as normalize

def identify(*_, **__):
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()

normalize.Identity.identify = identify
from crawlspace.cli import main
main()
"""
"""A signal that comes while a verb works."""


BETWEEN = """
import os, signal, sys
sys.modules["uvloop"] = None
import crawlspace.cli.crawl as crawl

close = crawl._close

def slow(*told):
    os.kill(os.getpid(), signal.SIGTERM)
    close(*told)

crawl._close = slow
from crawlspace.cli import main
main()
"""
"""A signal that comes when the loop has ended and the summary is still to be told.
A loop of uvloop leaves handlers of its own behind."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_behind_the_last_word_does_not_change_the_exit_code(number: signal.Signals) -> None:
    command = [sys.executable, "-c", LATE, "normalize", "gopher://a.test/", str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = subprocess.run([*command[:1], "-m", "crawlspace", *command[3:-1]], check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (told.returncode, "")


def test_a_verb_that_is_ended_is_interrupted() -> None:
    command = [sys.executable, "-c", EARLY, "normalize", "http://a.test/"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (3, "", "")


def test_a_signal_between_the_end_of_a_crawl_and_its_last_words_changes_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BETWEEN, "crawl", "http://127.0.0.1:9/", "--dir", str(tmp_path / "c")]
    fast = ("retry.max=1", "contact=tests@crawlspace.test")
    options = [part for each in fast for part in ("-s", each)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert (done.returncode, "Finished" in done.stdout) == (6, True), done.stderr
