"""Chunked bodies as nearly all servers send them, read without llhttp's callbacks (RFC 9112, section 7.1).

What is read here, llhttp reads the same: chunks whose first line is up to seven digits and nothing else, and an end
without trailers. All else is given to it, from the chunk on in which it stands: behind a chunk nothing matters that
came before.
"""

from __future__ import annotations

import re

from crawlspace.fetch.grammar import OddChunks

PLAIN = 64
"""Chunks that are read here; many small ones are llhttp's strength."""


_FIRST = re.compile(rb"([0-9a-fA-F]{1,7})\r\n")
_LATER = re.compile(rb"\r\n([0-9a-fA-F]{1,7})\r\n")
_FIRST_BEGUN = re.compile(rb"[0-9a-fA-F]{1,7}\r?|0{1,7}\r\n\r?")
_LATER_BEGUN = re.compile(rb"\r|\r\n(?:[0-9a-fA-F]{1,7}\r?)?|\r\n0{1,7}\r\n\r?")
"""The beginning of what stands between two chunks, up to the end of the last one."""


def whole(data: bytes) -> bytes | None:
    """The content of a body that has come whole, is plain, and has nothing behind it; else None."""
    if not data.endswith(b"0\r\n\r\n"):
        return None
    pieces: list[bytes] = []
    line, at = _FIRST, 0
    while len(pieces) < PLAIN and (found := line.match(data, at)):
        begin = found.end()
        size = int(found[1], 16)
        if not size:
            return b"".join(pieces) if begin + 2 == len(data) else None
        line = _LATER
        at = begin + size
        pieces.append(data[begin:at])
    return None


class Chunks:
    """A chunked body, read from pieces of any size."""

    def __init__(self, strict: bool) -> None:
        """`strict` is how the head was read; trailers are fields too."""
        self._strict = strict
        self._complete = False
        self._count = 0
        self._left = 0
        """Bytes of the chunk that are still to come."""
        self._held = b""
        """The beginning of what stands in front of the next chunk's content."""
        self._read = 0
        """Bytes that were read here, without those."""
        self._odd: OddChunks | None = None
        """Who reads on."""

    @property
    def complete(self) -> bool:
        return self._complete if self._odd is None else self._odd.complete

    @property
    def count(self) -> int:
        """Chunks so far; one that llhttp has read in several pieces counts several times."""
        return self._count if self._odd is None else self._count + self._odd.count

    def feed(self, data: bytes) -> tuple[list[bytes], str]:
        """The content in `data`, and what is wrong with its framing, or ""."""
        if self._odd is not None:
            return self._odd.feed(data)
        if self._held:
            data, self._held = self._held + data, b""
        content: list[bytes] = []
        at, count, size = self._left, self._count, len(data)
        if at:
            content.append(data[:at])
        line = _LATER if count else _FIRST
        while at < size:
            found = line.match(data, at) if count < PLAIN else None
            if found is None:
                break
            begin = found.end()
            length = int(found[1], 16)
            if not length:
                self._complete = data.startswith(b"\r\n", begin)
                at = begin + 2 if self._complete else at
                break
            count += 1
            line = _LATER
            at = begin + length
            if begin < size:
                content.append(data[begin:at])
        self._count = count
        if at < size and not self._complete:
            self._read += at
            return content, self._stop(data[at:], content)
        self._left = max(at - size, 0)
        self._read += min(at, size)
        return content, ""

    def length(self, wire: bytes) -> int:
        """How many bytes of `wire`, all that was fed, the body takes, once it is complete or a problem was told.

        The byte that is the problem counts.
        """
        return self._read if self._odd is None else self._read + self._odd.length(wire[self._read :])

    def _stop(self, rest: bytes, content: list[bytes]) -> str:
        """Behind a chunk comes no other plain one, or not yet; what is wrong with that, or ""."""
        begun = _LATER_BEGUN if self._count else _FIRST_BEGUN
        if self._count < PLAIN and begun.fullmatch(rest):
            self._held = rest
            self._left = 0
            return ""
        within = bool(self._count)
        if within and rest.startswith(b"\r\n"):
            within = False
            rest = rest[2:]
            self._read += 2
        self._odd = OddChunks(self._strict, within)
        more, problem = self._odd.feed(rest)
        content += more
        return problem
