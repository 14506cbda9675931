"""The near-duplicate texts with exact truth (tests/data/near-dup)."""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parents[1] / "data" / "near-dup"


class NearDup:
    """Texts by id, and the similarity of every pair at 0.5 or more, of one set."""

    def __init__(self, name: str) -> None:
        entries = json.loads(lzma.decompress((DATA / f"{name}.json.xz").read_bytes()))
        self.texts: dict[str, str] = {entry["id"]: entry["text"] for entry in entries}
        truth: dict[str, Any] = next(each for each in _read("pairs.json") if each["set"] == name)
        self.near: dict[frozenset[str], float] = {frozenset(pair[:2]): pair[2] for pair in truth["near"]}
        self.sampled: dict[frozenset[str], float] = {
            frozenset(pair[:2]): pair[2] for pair in truth["not_near_sample"]
        }

    def at(self, threshold: float) -> set[frozenset[str]]:
        """The pairs with this similarity or more."""
        return {pair for pair, similarity in self.near.items() if similarity >= threshold}


@cache
def near_dup(name: str) -> NearDup:
    return NearDup(name)


def _read(name: str) -> Any:
    return json.loads((DATA / name).read_text(encoding="utf-8"))


@pytest.fixture(params=["licences", "revisions"])
def texts(request: pytest.FixtureRequest) -> NearDup:
    """Each of the two sets in turn."""
    return near_dup(request.param)


@pytest.fixture
def all_texts() -> dict[str, str]:
    """Both sets."""
    return near_dup("licences").texts | near_dup("revisions").texts


@pytest.fixture
def marked() -> dict[str, list[list[str]]]:
    """Pairs at 0.9 or more that were read by a person: `apart` with the reason, and `together`."""
    found: dict[str, list[list[str]]] = _read("marked.json")
    return found
