"""Where two texts differ, word by word: what a person sees of two near-duplicates.

What both begin and end with is set aside first, since near-duplicates share most. The rest is compared up to a
limit, because comparing takes time with the square of it; what lies beyond is said to be left out, never guessed.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Final, NamedTuple

WORDS_LIMIT: Final = 1_000
"""Words of each text that are compared, after what both begin and end with."""
CHANGES_LIMIT: Final = 100
"""Changes that are told."""
WORD_LIMIT: Final = 100
"""Characters of a word that are told."""


class Change(NamedTuple):
    """One place where two texts differ."""

    at: int
    """Words of the first text before it."""
    removed: str
    """What only the first text has there."""
    added: str
    """What only the second has."""


class Difference(NamedTuple):
    """What differs between two texts."""

    changes: tuple[Change, ...]
    whole: bool
    """Whether these are all changes there are."""


def difference(one: str, other: str) -> Difference:
    """Changes that make the second text of the first. White space does not count."""
    first, second = one.split(), other.split()
    start = _shared(first, second)
    end = _shared(first[start:][::-1], second[start:][::-1])
    left, right = first[start : len(first) - end], second[start : len(second) - end]
    compared, against = left[:WORDS_LIMIT], right[:WORDS_LIMIT]
    # Words that make up more than a hundredth of a long text are no anchors: that keeps the time near its square.
    matcher = SequenceMatcher(None, compared, against)
    changes = [
        Change(start + begin, _told(compared[begin:stop]), _told(against[its_begin:its_stop]))
        for kind, begin, stop, its_begin, its_stop in matcher.get_opcodes()
        if kind != "equal"
    ]
    cut = len(left) > WORDS_LIMIT or len(right) > WORDS_LIMIT or len(changes) > CHANGES_LIMIT
    return Difference(tuple(changes[:CHANGES_LIMIT]), not cut)


def _shared(one: list[str], other: list[str]) -> int:
    """How many words both begin with."""
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _told(words: list[str]) -> str:
    return " ".join(word if len(word) <= WORD_LIMIT else f"{word[:WORD_LIMIT]}…" for word in words)
