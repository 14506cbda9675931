"""A fixed piece of work, done between the runs: how much the machine itself changes speed.

Where cores are shared with others, the same work takes up to half as much CPU time again from one minute to the
next. Results that differ by less than this spread do not differ.
"""

from __future__ import annotations

import hashlib
import time
import zlib
from html.parser import HTMLParser

_REPEATS = 40
_PAGE = "<p class='line'>A paragraph with <a href='page.html?a=1#part'>a link</a> and <b>more</b>.</p>\n" * 150


def seconds() -> float:
    """CPU seconds that parsing, hashing and inflating a fixed page took just now."""
    data = _PAGE.encode()
    packed = zlib.compress(data)
    begin = time.process_time()
    for _ in range(_REPEATS):
        parser = HTMLParser()
        parser.feed(_PAGE)
        for _ in range(_REPEATS):
            hashlib.sha256(zlib.decompress(packed)).digest()
    return time.process_time() - begin
