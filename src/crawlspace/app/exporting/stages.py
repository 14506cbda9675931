"""Stages of a pipeline by their names: `module:name`, or `file.py:name`, as they are given on a command line."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from crawlspace.errors import UsageError
from crawlspace.exports.pipeline import Stage


def load_stages(names: Sequence[str]) -> list[Stage]:
    """The stages of these names, in order; raises `UsageError` that says what is not there or cannot be imported.

    Modules are looked for in the current directory too, as `python -m` does.
    """
    with _here():
        return [_stage(name) for name in names]


def _stage(text: str) -> Stage:
    place, _, name = text.rpartition(":")
    if not place or not name:
        raise UsageError(f"{text!r} names no stage", hint="write module:name or file.py:name")
    found: object = _module(place)
    for part in name.split("."):
        if not hasattr(found, part):
            raise UsageError(f"there is no {name!r} in {place}")
        found = getattr(found, part)
    if not callable(found):
        raise UsageError(f"{text} is no stage: it cannot be called")
    return found


def _module(place: str) -> ModuleType:
    try:
        return _from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except Exception as error:  # whatever a user's module does when it is imported
        raise UsageError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def _here() -> Iterator[None]:
    here = str(Path.cwd())
    if here in sys.path:
        yield
        return
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
