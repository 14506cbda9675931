"""Stages through which items go on their way out: each may change an item, or drop it with a reason.

A stage is a function, or an object with a `__call__`, that takes an item and returns one (the same or another) or a
`Drop`. Items are dicts by column name, of plain values as JSON has them. A stage that is a context manager is entered
before the first item and left after the last, also when the export fails. A class is a stage too: it is made first.

    from crawlspace import Drop

    def only_german(item):
        return item if item["language"] == "de" else Drop("other language")

Nothing is dropped in silence: reasons are counted and told. A stage that fails on an item loses that item, which is
told like a capture that cannot be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from crawlspace.errors import UsageError

Item = dict[str, Any]
"""What goes through: values by their names."""


class Drop(NamedTuple):
    """A stage's word that an item goes no further."""

    reason: str


class Stage(Protocol):
    """One step of a pipeline. An attribute `columns`, a sequence of names, tells what it adds to each item."""

    def __call__(self, item: Item, /) -> Item | Drop:
        """The item as it goes on, or why it does not."""
        ...


class StageFailed(Exception):
    """A stage raised something, or returned what is neither an item nor a `Drop`."""


REASON_LIMIT = 100
REASONS_KEPT = 1000
"""Different reasons that are counted; items dropped for more are counted together."""
OTHER = "other reasons"


@dataclass(slots=True)
class Pipeline:
    """Stages in their order. Use it as a context."""

    stages: Sequence[Stage] = ()
    dropped: Counter[str] = field(default_factory=Counter)
    """How many items were dropped for each reason."""
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Pipeline:
        self.stages = [self._ready(stage) for stage in self.stages]
        return self

    def __exit__(self, *failure: Any) -> None:
        self._open.__exit__(*failure)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names that the stages add to items."""
        return tuple(dict.fromkeys(name for stage in self.stages for name in getattr(stage, "columns", ())))

    def run(self, item: Item) -> Item | None:
        """The item as the last stage leaves it; None when one dropped it. Raises `StageFailed`."""
        for stage in self.stages:
            try:
                given = stage(item)
            except Exception as error:  # whatever a user's code does is told, and stops nothing
                raise StageFailed(f"{_name(stage)}: {type(error).__name__}: {error}") from error
            if isinstance(given, Drop):
                self._drop(given.reason)
                return None
            if not isinstance(given, dict):
                raise StageFailed(f"{_name(stage)} returned {type(given).__name__}, neither an item nor a Drop")
            item = given
        return item

    def _ready(self, stage: Stage) -> Stage:
        ready: Any = stage() if isinstance(stage, type) else stage  # type: ignore[call-arg]  # a class is made
        if isinstance(ready, AbstractContextManager):
            self._open.enter_context(ready)
        if not callable(ready):
            raise UsageError(f"{_name(stage)} is no stage: it cannot be called")
        made: Stage = ready
        return made

    def _drop(self, reason: str) -> None:
        text = str(reason)[:REASON_LIMIT] or "no reason"
        known = text in self.dropped or len(self.dropped) < REASONS_KEPT
        self.dropped[text if known else OTHER] += 1


def _name(stage: object) -> str:
    name = getattr(stage, "__qualname__", None) or type(stage).__qualname__
    return f"the stage {name}"
