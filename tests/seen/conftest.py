"""The seen-sets that are held to one contract: each kind of them, for each length of keys."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from unittest.mock import patch

import pytest

from crawlspace.seen import DiskSeenSet, MemorySeenSet, SeenSet

Opener = Callable[[], AbstractContextManager[SeenSet]]
"""Makes a new, empty seen-set."""


def memory(size: int) -> Opener:
    return lambda: nullcontext(MemorySeenSet(size))


def plain(size: int) -> Opener:
    """In memory, where numpy is not installed."""

    def make() -> AbstractContextManager[SeenSet]:
        with patch.dict(sys.modules, {"numpy": None}):
            return nullcontext(MemorySeenSet(size))

    return make


def disk(size: int, factory: pytest.TempPathFactory) -> Opener:
    return lambda: DiskSeenSet(factory.mktemp("seen") / "seen.db", size)


@pytest.fixture(scope="session", params=[8, 16], ids=["8", "16"])
def size(request: pytest.FixtureRequest) -> int:
    """Length of the keys."""
    return int(request.param)


@pytest.fixture(scope="session", params=["numpy", "plain", "disk"])
def opener(request: pytest.FixtureRequest, size: int, tmp_path_factory: pytest.TempPathFactory) -> Opener:
    """Makes a new seen-set of the kind and length that the test runs for."""
    if request.param == "disk":
        return disk(size, tmp_path_factory)
    return plain(size) if request.param == "plain" else memory(size)
