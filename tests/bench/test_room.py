"""What a URL takes on disk stays what it is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from bench.room import fill, room


def test_a_url_takes_little_room_while_it_waits_and_when_it_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "frontier.db"
    asyncio.run(fill(path, urls=12_000, pages=3_000))
    found = room(path)
    if found.queued is None or found.finished is None:
        pytest.skip("this SQLite was built without dbstat")
    assert 110 < found.queued < 140
    assert 45 < found.finished < 65
