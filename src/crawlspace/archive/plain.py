"""Records that are not compressed: found by their own Content-Length. Foreign archives have such; ours never."""

from __future__ import annotations

import re
from collections.abc import Iterator

from crawlspace.archive.record import HEAD_LIMIT
from crawlspace.archive.tape import BrokenMember, Member, Tape

START = b"WARC/"
OLD_START = b"filedesc:"
"""How the older format ARC begins."""

_LENGTH = re.compile(rb"(?im)^content-length[ \t]*:[ \t]*([0-9]{1,18})[ \t]*\r?$")
_END_OF_HEAD = b"\r\n\r\n"
_TAIL = 4


def members(tape: Tape, end: int, cap: int) -> Iterator[Member]:
    """The records from the tape's place to `end`, as `archive.members` describes."""
    while (offset := tape.position) < end:
        head = tape.peek(HEAD_LIMIT)
        if not head.startswith(START):
            raise BrokenMember("no record begins here")
        length = _length(head)
        if length > cap:
            raise BrokenMember(f"it has more than {cap} bytes")
        yield Member(offset, length, tape.exactly(length))


def _length(head: bytes) -> int:
    """Bytes of the whole record."""
    end = head.find(_END_OF_HEAD)
    stated = _LENGTH.search(head, 0, max(end, 0) + 2)
    if stated is None:
        raise BrokenMember("its fields do not end, or name no length")
    return end + len(_END_OF_HEAD) + int(stated[1]) + _TAIL
