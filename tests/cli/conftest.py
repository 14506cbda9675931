"""The command line, run in this process: exit code, standard output, standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from crawlspace.cli import main


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
