"""Seen-sets for everyone: which keys were here before, exactly, in a few bytes each. Usable without a crawl.

>>> from crawlspace.seen import MemorySeenSet
>>> seen = MemorySeenSet(key_bytes=8)
>>> seen.add_if_new(b"8 bytes.")
True
>>> seen.add_many([b"8 bytes.", b"another!", b"another!"])
[False, True, False]

`MemorySeenSet` lives as long as its process and is quickest with numpy (`pip install crawlspace[seen]`);
`DiskSeenSet` is a file that outlives a crash. What each costs stands in docs/seen-sets.md.
"""

from __future__ import annotations

from crawlspace.seen.disk import DiskSeenSet, DiskSettings
from crawlspace.seen.keys import Keys
from crawlspace.seen.memory import MemorySeenSet
from crawlspace.seen.sets import SeenSet

__all__ = ["DiskSeenSet", "DiskSettings", "Keys", "MemorySeenSet", "SeenSet"]
