"""A copy of a store of one moment, made while its owner writes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite.connection import connect_reading, translated
from crawlspace.frontier.sqlite.ledger import Ledger
from crawlspace.frontier.sqlite.schema import require, steps


def copy_store(path: Path, target: Path, settings: FrontierSettings) -> dict[str, int]:
    """Copy the store into a new file; how far its captures reach into each file of the archive.

    All pages are copied in one step: a copy in many would begin anew each time that the owner writes. Raises as
    every store does, `DiskFull` when the copy does not fit.
    """
    with translated(str(path)), closing(connect_reading(str(path), settings)) as source:
        require(source, str(path), len(steps()))
        with translated(str(target)), closing(sqlite3.connect(target)) as copy:
            source.backup(copy, pages=-1)
            return Ledger(copy, settings).segments()
