"""Sorting more lines than fit into memory."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from crawlspace.archive.runs import Runs


@pytest.mark.parametrize("lines", [0, 1, 50, 3000])
@pytest.mark.parametrize(("room", "fan"), [(1, 2), (2000, 3), (20_000, 32), (1 << 20, 32)])
def test_lines_come_out_sorted_by_their_bytes_whatever_the_room(
    tmp_path: Path, lines: int, room: int, fan: int
) -> None:
    chance = random.Random(lines)
    given = [b"%d %s\n" % (chance.randrange(500), chance.randbytes(3).hex().encode()) for _ in range(lines)]
    with Runs(tmp_path, room=room, fan=fan) as runs:
        for line in given:
            runs.add(line)
        assert list(runs.sorted()) == sorted(given)


def test_few_files_are_open_and_none_has_a_name(tmp_path: Path) -> None:
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("open files cannot be counted here")
    before = len(list(descriptors.iterdir()))
    with Runs(tmp_path, room=1, fan=4) as runs:
        for number in range(1000):
            runs.add(b"%d\n" % number)
        # 1000 runs in a base of 4: five levels of at most three.
        assert len(list(descriptors.iterdir())) - before <= 15
        assert list(tmp_path.iterdir()) == []
    assert len(list(descriptors.iterdir())) == before
