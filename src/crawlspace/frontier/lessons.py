"""How learned rules lie in rows, and how they come out again: the same in every database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from crawlspace.policy.evidence import Evidence, Example, KnownRule, Lesson, RuleState
from crawlspace.types import Answer, Finished, Settlement
from crawlspace.urls.variants import HostRule, RuleKind

MOST: Final = 5_000
"""Rules that are read, the best founded first."""

_decode = msgspec.json.Decoder(tuple[Example, ...]).decode
_EVIDENCE: Final = len(Evidence._fields)


def columns(lesson: Lesson, now: int) -> dict[str, Any]:
    """The parameters of the statement that adds a lesson."""
    return {
        "host": lesson.rule.host,
        "kind": lesson.rule.kind.value,
        "detail": lesson.rule.detail,
        "was": lesson.was.value,
        "state": lesson.state.value,
        **lesson.evidence._asdict(),
        "examples": msgspec.json.encode(lesson.examples).decode(),
        "counter_examples": msgspec.json.encode(lesson.against).decode(),
        "now": now,
    }


def known_rule(row: Sequence[Any]) -> KnownRule:
    """A rule from its row."""
    host, kind, detail, state, *rest = row
    examples, against, first_at, last_at = rest[_EVIDENCE:]
    return KnownRule(
        rule=HostRule(RuleKind(kind), host, detail),
        state=RuleState(state),
        evidence=Evidence(*rest[:_EVIDENCE]),
        examples=_decode(examples),
        against=_decode(against),
        first_at=first_at,
        last_at=last_at,
    )


def declarations(settlements: Sequence[Settlement], answers: Sequence[Answer]) -> list[tuple[int, int, str | None]]:
    """Of each page that was finished just now its host, its number, and the canonical that it declares.

    Empty where that is its own address, None where it declares none and may have declared one at an earlier visit.
    """
    found: list[tuple[int, int, str | None]] = []
    for settlement, answer in zip(settlements, answers, strict=True):
        if not isinstance(settlement, Finished) or answer is not Answer.SETTLED:
            continue
        url, canonical = settlement.url, settlement.evidence.canonical
        if canonical is not None or url.generation:
            found.append((settlement.hid, url.id, "" if canonical == url.url else canonical))
    return found
