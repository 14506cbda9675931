"""What a key costs: in the plain run at a small size, in the long run at ten million."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from crawlspace.seen import MemorySeenSet

BUDGET = {8: 14, 16: 26}
"""Bytes for a key in memory, at the worst moment."""
WORKING_MEMORY = 6 << 20
"""For one slice of a batch and one chunk of a growing table, whatever the size of the set."""
TEN_MILLION = 10_000_000
BATCH = 1000

ROOT = Path(__file__).resolve().parents[2]


def run(source: str, *arguments: object) -> str:
    return subprocess.run(
        [sys.executable, "-c", source, *map(str, arguments)], check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.parametrize("size", BUDGET)
def test_memory_at_two_hundred_thousand_keys_stays_within_the_budget_at_its_peak(size: int) -> None:
    MemorySeenSet(size).add_many(os.urandom(100 * size))  # numpy is imported by now
    tracemalloc.start()
    try:
        seen = MemorySeenSet(size)
        for _ in range(200):
            seen.add_many(os.urandom(BATCH * size))
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert now <= BUDGET[size] * 200_000
    assert peak <= BUDGET[size] * 200_000 + WORKING_MEMORY


def test_without_numpy_nothing_is_missing_but_speed() -> None:
    answers = run(
        "import sys; sys.modules['numpy'] = None\n"
        "from crawlspace.seen import MemorySeenSet\n"
        "seen = MemorySeenSet(8); keys = [number.to_bytes(8, 'big') for number in range(3000)]\n"
        "print(sum(seen.add_many(keys)), sum(seen.add_many(keys)), seen.add_if_new(keys[0]), len(seen))"
    )
    assert answers.split() == ["3000", "0", "False", "3000"]


def test_numpy_is_imported_with_the_first_batch_and_not_before() -> None:
    answers = run(
        "import sys, crawlspace.seen as s\n"
        "seen = s.MemorySeenSet(8); seen.add_if_new(b'8 bytes.'); print('numpy' in sys.modules)\n"
        "seen.add_many(bytes(8 * 100)); print('numpy' in sys.modules)"
    )
    assert answers.split() == ["False", "True"]


def measured(contender: str) -> dict[str, float]:
    """What the benchmark finds for ten million keys, in a process of its own."""
    command = [sys.executable, "-m", "bench.seen", "--child", contender, "--keys", str(TEN_MILLION)]
    answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found: dict[str, float] = json.loads(answer)
    return found


linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from Linux's /proc")


@linux
@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("size", BUDGET)
def test_ten_million_keys_in_memory_stay_within_the_budget_and_a_microsecond(size: int) -> None:
    """The peak is the whole process's, above what it had before there was a set."""
    found = measured(f"MemorySeenSet, {size} bytes")
    assert found["peak"] <= BUDGET[size]
    assert found["batch_us"] <= 1


@linux
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_ten_million_keys_on_disk_take_25_bytes_and_answer_100_000_offers_a_cpu_second() -> None:
    """Keys as a crawl makes them, the host's bytes first; 80 % of the offers are known, in batches of 1,000."""
    found = measured("DiskSeenSet, 16 bytes, keys of a crawl")
    assert found["disk"] <= 25
    assert found["batch_us"] <= 10
