"""A body's content codings undone while it arrives, within caps.

Every stage of a stack is held to the same cap, since a stage that gives nothing may still be fed by a bomb. A cap
that is reached is no failure: what fits is kept, and no more is decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crawlspace.fetch.codings import CODINGS, STEP, inflated, stage
from crawlspace.fetch.limits import MIB, FetchSettings

MAX_CODINGS = 2
"""Codings on top of each other that are undone; more are no honest page."""
RATIO_AFTER = MIB
"""Decoded bytes from which on the ratio is watched: small pages of blanks are honest."""

_SAME = {"x-gzip": "gzip"}
"""RFC 9110, section 8.4.1.3."""


def codings(words: Sequence[str]) -> tuple[str, ...]:
    """The codings that a response names, in the order in which they were applied; `identity` is none."""
    return tuple(_SAME.get(word, word) for word in words if word != "identity")


def at_once(words: Sequence[str], data: bytes, limits: FetchSettings) -> bytes | None:
    """The content of a whole body that is short and in plain gzip, as most are; None where `Decoder` has to look."""
    return inflated(data, min(STEP, limits.max_body)) if words == ("gzip",) else None


class Decoder:
    """The stack of codings of one body."""

    def __init__(self, applied: tuple[str, ...], limits: FetchSettings) -> None:
        self._max_body = limits.max_body
        self._max_ratio = limits.max_ratio
        self._refused = ""
        if len(applied) > MAX_CODINGS:
            self._refused = f"{len(applied)} content codings on top of each other"
        elif unknown := [name for name in applied if name not in CODINGS]:
            self._refused = f"unknown content coding {unknown[0][:40]!r}"
        known = () if self._refused else reversed(applied)
        self._stages = [stage(name, limits.max_body + 1) for name in known]
        self._made = [0] * len(self._stages)
        self._fed = 0
        self._pieces: list[bytes] = []
        self._size = 0
        self.capped = False
        """More would come out than the caps allow."""

    def feed(self, data: bytes) -> bool:
        """Take more of the coded body; False when no more is wanted."""
        self._fed += len(data)
        self._keep(self._steps(data) if len(self._stages) == 1 else self._through(0, data))
        return not self.capped

    def end(self) -> None:
        """The coded body is complete: take what the stages had held back."""
        for index, one in enumerate(self._stages):
            self._keep(self._through(index + 1, one.end()))

    @property
    def body(self) -> bytes:
        """All that was decoded, up to the cap."""
        return b"".join(self._pieces)[: self._max_body]

    @property
    def problem(self) -> str:
        """Why the body is not what was sent, in words; asked after `end`."""
        if self._refused:
            return self._refused
        for one in self._stages:
            if one.broken:
                return one.note
        return "the coded body ends early" if self._unfinished else ""

    @property
    def broken_off(self) -> bool:
        """The body is not whole, though no cap cut it."""
        return self._unfinished or any(one.broken for one in self._stages)

    @property
    def _unfinished(self) -> bool:
        return self._fed > 0 and not self.capped and not all(one.whole() for one in self._stages)

    @property
    def note(self) -> str:
        """What was odd but did no harm."""
        return "; ".join(one.note for one in self._stages if one.note and not one.broken)

    def _steps(self, data: bytes) -> Iterator[bytes]:
        """What the only stage makes of `data`."""
        made = self._made
        for piece in self._stages[0].steps(data):
            made[0] += len(piece)
            yield piece
            if self._too_much(made[0]):
                self.capped = True
                return

    def _through(self, index: int, data: bytes) -> Iterator[bytes]:
        if index == len(self._stages):
            yield data
            return
        for piece in self._stages[index].steps(data):
            self._made[index] += len(piece)
            self.capped = self.capped or self._too_much(self._made[index])
            yield from self._through(index + 1, piece)
            if self.capped:
                return

    def _too_much(self, made: int) -> bool:
        return made > self._max_body or (made > RATIO_AFTER and made > self._max_ratio * self._fed)

    def _keep(self, pieces: Iterator[bytes]) -> None:
        for piece in pieces:
            if piece:
                self._pieces.append(piece)
                self._size += len(piece)
        self.capped = self.capped or self._size > self._max_body
