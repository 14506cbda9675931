"""How often Python looks for circles of objects: seldom, where the process is ours. Never used as a library."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS = 20_000
"""Objects made and not given up after which it looks; 700 by itself.

What is imported and what a page is made of has next to no circles: a crawl of 1,169 pages found 1,074 objects by
looking 182 times, which took 63 ms, and 785 by looking 24 times, which took 21; its memory was the same.
"""


@contextmanager
def seldom_looked_for() -> Iterator[None]:
    """Look seldom within this, and afterwards as often as before."""
    usual = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
