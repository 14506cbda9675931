"""Four processes at six hosts without any delay: nothing is given out twice, and every sum is right."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crawlspace.clock import SystemClock
from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.states import UrlState

CONTENDER = Path(__file__).with_name("contender.py")
PROCESSES = 4


def contend(place: Place, seconds: float) -> list[dict[str, Any]]:
    """What each process was answered."""
    address = f"{place.address}&schema={place.schema}&shards={place.shards}"
    running = [
        subprocess.Popen(
            [sys.executable, str(CONTENDER), address, str(seconds), str(seed)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(PROCESSES)
    ]
    told = [(process, *process.communicate(timeout=seconds + 60)) for process in running]
    for process, _, wrong in told:
        assert process.returncode == 0, wrong
    return [json.loads(out) for _, out, _ in told]


def hold_together(place: Place, seconds: float) -> Counter[str]:
    """Contend, and check all that must hold; the answers to all settlements."""
    told = contend(place, seconds)
    answers = sum((Counter(each["answers"]) for each in told), Counter[str]())
    tokens = [each["tokens"] for each in told]

    async def look() -> tuple[list[str], dict[UrlState, int]]:
        store = await PostgresFrontier.open(place, FrontierSettings(), SystemClock())
        found = await store.audit(), dict((await store.counts()).states)
        await store.close()
        return found

    contradictions, states = asyncio.run(look())
    assert contradictions == []
    # A URL that was given out although it was done could not be settled: that would have raised.
    assert set(answers) == {"SETTLED"}
    everyones = [token for each in tokens for token in each]
    assert len(everyones) == len(set(everyones))
    assert all(each == sorted(each) for each in tokens)
    assert min(map(len, tokens)) > 0, "somebody never got a host"
    assert states[UrlState.LEASED] == 0
    assert states[UrlState.DONE] > 100
    return answers


def test_nothing_is_given_out_after_it_was_done(places: Callable[..., Place]) -> None:
    hold_together(places(), seconds=4)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("shards", [1, 16, 1024])
def test_nothing_is_given_out_after_it_was_done_for_long(places: Callable[..., Place], shards: int) -> None:
    assert sum(hold_together(places(shards), seconds=30).values()) > 3_000
