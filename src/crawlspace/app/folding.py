"""`python -m crawlspace.app.folding DIR`: fold a crawl's complete journals of records, in a process of its own.

A crawl starts it, so that the heavy writing is none of its own. It may be killed at any time.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.parsing import records_at, rules_of
from crawlspace.records import fold
from crawlspace.settings import load

NICE = 10


def main(directory: str) -> None:
    """Fold once."""
    os.nice(NICE)
    place = CrawlDirectory(Path(directory))
    fold(records_at(place), rules_of(load(place.effective, {}).identity))


if __name__ == "__main__":
    main(sys.argv[1])
