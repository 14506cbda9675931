"""What speaks for a learned rule and against it, and the state that follows.

A rule is proposed when enough pairs of addresses speak for it and next to nothing against it. It may be applied
without a person's word only when those pairs have several texts: pairs that all say the same may be one answer for
pages that are not there.
"""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta, Struct

from crawlspace.urls.variants import HOST_KINDS, HostRule, RuleKind

TEXTS: Final = 3
"""Different texts (or targets) that evidence must have for a rule to be applied without a person's word."""


class LearningSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether and how rules of identity are learned."""

    mode: Annotated[
        Literal["off", "suggest", "apply"],
        Meta(
            description="Rules of identity learned from redirects, canonical links and equal texts: not at all, "
            "shown by `crawlspace rules learned`, or applied by re-keying the crawl when enough is known."
        ),
    ] = "suggest"
    pairs: Annotated[int, Meta(description="Pairs of addresses that must speak for a rule.", ge=2, le=10_000)] = 5
    contradictions: Annotated[
        float,
        Meta(
            description="Counter-examples that a rule may have, as a part of the pairs that speak for it.",
            ge=0,
            le=0.5,
        ),
    ] = 0.01
    probe: Annotated[
        bool,
        Meta(
            description="Ask a host with one request whether a slash at the end changes a page, as soon as one pair "
            "of addresses says that it does not; confirmed, the rule is proposed at once."
        ),
    ] = False
    checks: Annotated[
        int,
        Meta(
            description="Of so many pages with links that an applied rule makes one with known ones, one such link "
            "is fetched all the same, to see whether the rule still holds. 0: none.",
            ge=0,
        ),
    ] = 100


@unique
class RuleState(StrEnum):
    """What is to become of a rule. The words are stored and shown."""

    WATCHED = "watched"
    """Too little is known."""
    PROPOSED = "proposed"
    """Enough speaks for it."""
    ACCEPTED = "accepted"
    """To be applied: by a person, or because it is sure and the settings say so."""
    APPLIED = "applied"
    """The crawl's URLs are under it."""
    REJECTED = "rejected"
    """A person does not want it."""
    REFUTED = "refuted"
    """It had been proposed or applied, and later evidence spoke against it."""


OF_HOSTS: Final = HOST_KINDS | {RuleKind.SCHEME}
"""Kinds of rules that say something of all pages of a host alike."""
IN_EFFECT: Final = frozenset({RuleState.ACCEPTED, RuleState.APPLIED})
"""States of rules that a crawl is, or is to be, under."""
SETTLED: Final = frozenset({RuleState.REJECTED, RuleState.REFUTED})
"""States that no evidence changes; a person may."""


class Evidence(NamedTuple):
    """What speaks for a rule and against it."""

    redirects: int = 0
    canonicals: int = 0
    texts: int = 0
    """Pairs with equal text."""
    against: int = 0
    kinds: int = 0
    """Different texts and targets among the pairs, counted up to `TEXTS`."""
    random: int = 0
    """Pairs in which what the rule takes away are random ids by their looks."""
    confirmed: int = 0
    """Answers to questions of our own that speak for it."""
    unlike: int = 0
    """Pairs with equal text whose links differ: one of the two may lead where the other does not."""

    @property
    def pairs(self) -> int:
        """All that speaks for it."""
        return self.redirects + self.canonicals + self.texts

    @property
    def confidence(self) -> float:
        """How likely the next pair speaks for the rule: Laplace's rule of succession."""
        return (self.pairs + 1) / (self.pairs + self.against + 2)

    def plus(self, other: Evidence) -> Evidence:
        """Both together."""
        added = [mine + its for mine, its in zip(self, other, strict=True)]
        return Evidence(*added)._replace(kinds=max(self.kinds, other.kinds))


def is_enough(evidence: Evidence, settings: LearningSettings) -> bool:
    """Whether a rule may be proposed: so many pairs speak for it, or one and the host's own answer."""
    enough = evidence.pairs >= settings.pairs or (evidence.pairs > 0 and evidence.confirmed > 0)
    return enough and not is_contradicted(evidence, settings)


def is_contradicted(evidence: Evidence, settings: LearningSettings) -> bool:
    """Whether more speaks against a rule than may."""
    return evidence.against > settings.contradictions * evidence.pairs


def is_sure(rule: HostRule, evidence: Evidence, settings: LearningSettings) -> bool:
    """Whether it may be applied without a person's word.

    Pairs that all have one text may be one answer for pages that are not there, and of two pages with other links
    (as a print view has none) one alone would lose what the other leads to. Neither matters where the rule takes
    away what looks like random ids, in more pairs; and the links of a mirror are its own. Of a page and a view of it
    whichever is found first would be fetched: whether one may stand for the other is for a person to say.
    """
    if rule.kind is RuleKind.VIEW:
        return False
    if evidence.random >= 2 * settings.pairs:
        return True
    return evidence.kinds >= TEXTS and (rule.kind in OF_HOSTS or not evidence.unlike)


def next_state(state: RuleState, evidence: Evidence, settings: LearningSettings) -> RuleState:
    """The state that follows from the evidence."""
    if state is RuleState.WATCHED:
        return RuleState.PROPOSED if is_enough(evidence, settings) else state
    if state is RuleState.PROPOSED:
        return RuleState.REFUTED if is_contradicted(evidence, settings) else state
    if state in IN_EFFECT:
        # One page that changed between two looks must not undo what many pairs said.
        return RuleState.REFUTED if evidence.against > 1 and is_contradicted(evidence, settings) else state
    return state


Example = tuple[str, str]
"""Two canonical URLs."""


class KnownRule(NamedTuple):
    """A rule as it is stored."""

    rule: HostRule
    state: RuleState
    evidence: Evidence
    examples: tuple[Example, ...] = ()
    """Some pairs that speak for it."""
    against: tuple[Example, ...] = ()
    """Some that speak against it."""
    first_at: int = 0
    last_at: int = 0


class Lesson(NamedTuple):
    """What is to be added to what is stored of a rule."""

    rule: HostRule
    evidence: Evidence = Evidence()
    """The part that is new."""
    examples: tuple[Example, ...] = ()
    against: tuple[Example, ...] = ()
    was: RuleState = RuleState.WATCHED
    state: RuleState = RuleState.WATCHED
    """Its next state; it is taken where the rule is in the state `was`, and left where somebody else changed it."""
