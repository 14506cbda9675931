"""Every bug of the design's list, made on purpose, is found: by the simulation in 50 seeds, or by a named test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crawlspace.testing.sim import simulate

sys.path.insert(0, str(Path(__file__).parent))
from mutants import MUTANTS, Mutant

SEEDS = 50
FIRST = {"token check against worker id": 80}
"""Where the seeds of a bug begin that needs a worker to lose a host and lease it again: few simulations have that."""
ROOT = Path(__file__).parent.parent.parent
SIMULATED = [mutant for mutant in MUTANTS if not mutant.tests]
NAMED = [mutant for mutant in MUTANTS if mutant.tests]
START = "import sys; sys.path.insert(0, {folder!r}); import mutants; mutants.begin({name!r})\n"


DESIGNED = (
    "done before store",
    "commit before offers",
    "offers acknowledged by one shard only",
    "no token check",
    "token check against worker id",
    "lease expiry by worker clock",
    "one-statement PG lease",
    "host in two ready sets",
    "empty lease not released",
    "expire that uses up an attempt",
    "suspect leased together with others",
    "retry without cap",
    "tally outside the transaction",
    "Bloom as authority",
    "check-await-add race",
    "resolver called twice",
    "redirect followed inline without robots",
    "fsync error ignored",
    "next_at not clamped after a clock jump",
    "duplicate inside one offer batch inserted twice",
    "normaliser not idempotent",
)
"""The bugs that the design lists; those that were found later stand beside them in `MUTANTS`."""


def test_every_bug_of_the_designs_list_is_there_once() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert set(DESIGNED) <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("mutant", SIMULATED, ids=lambda mutant: mutant.name)
def test_the_simulation_finds_it(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.patch(monkeypatch)
    first = FIRST.get(mutant.name, 0)
    found = any(simulate(seed).violations for seed in range(first, first + SEEDS))
    assert found, f"{mutant.name}: survives {SEEDS} seeds"


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mutant", NAMED, ids=lambda mutant: mutant.name)
def test_a_named_test_finds_it(mutant: Mutant, tmp_path: Path) -> None:
    """Processes that the test starts have the bug too: it is put in when an interpreter starts."""
    start = tmp_path / "sitecustomize.py"
    start.write_text(START.format(folder=str(Path(__file__).parent), name=mutant.name), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *mutant.tests]
    for path, fails in (("", False), (str(tmp_path), True)):
        paths = os.pathsep.join(filter(None, (path, os.environ.get("PYTHONPATH"))))
        ended = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": paths}, capture_output=True)
        assert ended.returncode == int(fails), ended.stdout.decode()
