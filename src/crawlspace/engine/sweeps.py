"""What each command looks at, and what it makes of each URL it sees: plain judgement, without a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from msgspec import Struct

from crawlspace.engine.intake import Intake
from crawlspace.policy.commands import (
    Block,
    Drop,
    Heed,
    Ignore,
    Letter,
    Pause,
    Prioritize,
    Rejudge,
    Requeue,
    Resume,
    Selection,
)
from crawlspace.policy.patterns import Patterns
from crawlspace.policy.review import WAITING, Cursor, Known, Ruling, Shelf, refusal_now, rejudge
from crawlspace.types import Reason

Tally = dict[str, int]
"""What was changed, by words that are shown."""

Verdict = Callable[[Known], Ruling | None]


def _never(_known: Known) -> bool:
    return False


class Review(Struct, frozen=True):
    """The shelves to look at in turn, from where, until when; and the verdict on each URL."""

    name: str
    shelves: tuple[Shelf, ...] = ()
    rule: Verdict = lambda known: None  # noqa: ARG005 -- nothing is to be done
    begin: Cursor = ()
    is_beyond: Callable[[Known], bool] = _never


Reviewed = Pause | Block | Resume | Requeue | Drop | Ignore | Heed | Prioritize | Rejudge
"""Commands that look at known URLs, if only at none."""


def review_of(command: Reviewed, hid: int, intake: Intake, tally: Tally) -> Review:
    """The review that a command asks for; raises `ConfigError` for a pattern that cannot be read.

    `hid` is the number of the host that it names, if it names one. What is passed over is counted in `tally`.
    """
    match command:
        case Pause(host) | Block(host):
            return Review(f"{type(command).__name__.lower()} {host}")
        case Resume(host):
            return _of_blocked(host, hid, intake)
        case Requeue(selection):
            return _of_letters("requeue", selection, _revival(selection, intake, tally))
        case Drop(selection):
            return _of_letters("drop", selection, _removal(selection))
        case Ignore(pattern):
            return Review(f"ignore {pattern}", WAITING, _rejudgement(intake))
        case Heed(pattern):
            return Review(f"ignore no longer {pattern}", (Shelf.REFUSED,), _rejudgement(intake, Reason.EXCLUDED))
        case Prioritize(pattern, front_class):
            return Review(f"prioritize {pattern}", WAITING, _priority(pattern, front_class))
        case Rejudge(why):
            return Review(f"judging again ({why})", (*WAITING, Shelf.REFUSED), _rejudgement(intake))
        case _ as unknown:
            assert_never(unknown)


def _of_letters(name: str, selection: Selection, rule: Verdict) -> Review:
    """A review of dead letters, from the first to the last that can be meant."""
    if not selection.ids:
        return Review(name, (Shelf.DEAD,), rule)
    first, last = min(selection.ids), max(selection.ids)
    return Review(name, (Shelf.DEAD,), rule, (first - 1,), lambda known: known.id > last)


def _letter(known: Known) -> Letter:
    return Letter(known.id, known.reason, known.status, known.host, known.url, known.at)


def _removal(selection: Selection) -> Verdict:
    patterns = selection.patterns()

    def rule(known: Known) -> Ruling | None:
        meant = selection.takes(_letter(known), patterns)
        return Ruling(known, Reason.DROPPED, known.front_class) if meant else None

    return rule


def _of_blocked(host: str, hid: int, intake: Intake) -> Review:
    """What a block had refused of one host is queued again, where scope still allows it."""
    reason = Reason.BLOCKED_HOST

    def rule(known: Known) -> Ruling | None:
        refused = known.reason != reason or refusal_now(known, intake.scope, intake.identity)
        return None if refused else Ruling(known, None, known.front_class)

    def is_beyond(known: Known) -> bool:
        return known.hid != hid

    return Review(f"resume {host}", (Shelf.REFUSED,), rule, (hid, "", 0), is_beyond)


def _revival(selection: Selection, intake: Intake, tally: Tally) -> Verdict:
    patterns = selection.patterns()

    def rule(known: Known) -> Ruling | None:
        if not selection.takes(_letter(known), patterns):
            return None
        if refusal_now(known, intake.scope, intake.identity) is not None:
            tally["out of scope"] = tally.get("out of scope", 0) + 1
            return None
        return Ruling(known, None, known.front_class)

    return rule


def _priority(pattern: str, front_class: int) -> Verdict:
    patterns = Patterns.of((pattern,), "pattern")

    def rule(known: Known) -> Ruling | None:
        moves = known.front_class != front_class and patterns.match(known.url)
        return Ruling(known, None, front_class) if moves else None

    return rule


def _rejudgement(intake: Intake, reason: Reason | None = None) -> Verdict:
    """Judge again, only what was refused for `reason` if one is given."""

    def rule(known: Known) -> Ruling | None:
        if reason is not None and known.reason != reason:
            return None
        return rejudge(known, intake.scope, intake.identity)

    return rule
