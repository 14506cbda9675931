"""The same random sequences as for the embedded store give the same answers as the model, over PostgreSQL."""

from __future__ import annotations

import importlib.util
import itertools
import os
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import invariant, rule

from crawlspace.frontier.postgres import Place, PostgresFrontier

_MODEL = Path(__file__).parents[1] / "frontier" / "test_model.py"
_spec = importlib.util.spec_from_file_location("frontier_model", _MODEL)
assert _spec is not None
assert _spec.loader is not None
embedded = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(embedded)

_numbers = itertools.count()


class SharedFrontier(embedded.Frontier):  # type: ignore[misc, name-defined] # loaded from a file
    """One store, one model, many workers; a crash takes the process, never the server."""

    server: ClassVar[str]

    def __init__(self) -> None:
        self.place = Place.parse(f"{self.server}&schema=model_{os.getpid()}_{next(_numbers)}")
        super().__init__()

    def opened(self) -> Any:
        return self.run(PostgresFrontier.open(self.place, embedded.SETTINGS, self.clock))

    def teardown(self) -> None:
        self.run(self.store.close())
        self.loop.close()
        self.directory.rmdir()

    @invariant()
    def every_number_is_what_its_rows_say(self) -> None:
        assert self.run(self.store.audit()) == []

    @rule()
    def crash(self) -> None:
        """What its sessions had begun is undone, its leases live on, and a new process opens the store."""
        self.run(self.store.close())
        self.store = self.opened()


def test_the_store_answers_as_the_model(server: str) -> None:
    SharedFrontier.server = server
    case = SharedFrontier.TestCase
    case.settings = settings(
        max_examples=max(4, settings.default.max_examples // 50),
        stateful_step_count=25,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    case("runTest").runTest()


pytestmark = pytest.mark.timeout(300)
