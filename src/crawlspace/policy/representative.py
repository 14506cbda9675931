"""Which page stands for a group of pages that say the same: a rule, and the rule's name as the reason.

What pages claim of themselves is evidence, never an order. A declared canonical counts where it leads to a page of
the same group, through other members too; claims that lead elsewhere, to nothing, or in a circle say nothing. The
claims stay as they were seen: this only chooses, when records and exports ask. A canonical link is a hint (RFC 6596).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum, unique
from typing import NamedTuple


class Member(NamedTuple):
    """One page of a group, as far as it is known. `id` and `found_at` grow with age."""

    id: int
    url: str
    """Its address; what others name when they mean it."""
    canonical: str | None = None
    """What it declares as its own address, resolved and spelled as members' addresses are; None when it does not."""
    redirects: int = 0
    """Other URLs known to redirect to it."""
    in_sitemap: bool = False
    links: int = 0
    """Links to it, as far as they were counted."""
    found_at: int = 0


@unique
class Why(StrEnum):
    """Which rule decided. The words are stored and shown, and never change their meaning."""

    ONLY = "only"
    """The group has one member."""
    CANONICAL = "canonical"
    """Every claim of the group that leads to a member leads to this one."""
    MOST_CANONICALS = "most_canonicals"
    """Claims contradict each other, and most lead to this one."""
    REDIRECTS = "redirects"
    """More URLs redirect to it."""
    SITEMAP = "sitemap"
    """A sitemap names it."""
    LINKS = "links"
    """More links lead to it."""
    AGE = "age"
    """It was found first."""


@unique
class Claim(StrEnum):
    """What a page's declared canonical comes to."""

    NONE = "none"
    SELF = "self"
    MEMBER = "member"
    """It leads to another member that claims nothing else."""
    CHAINED = "chained"
    """It leads to a member over others."""
    CIRCLE = "circle"
    """The members it leads to lead to each other: no end."""
    ELSEWHERE = "elsewhere"
    """It leads to a page that is not of the group: another text, or none that is known."""


class Chosen(NamedTuple):
    """Who stands for a group, and why."""

    member: Member
    why: Why
    claims: tuple[Claim, ...]
    """Of each member, in the order of the group."""


def representative(members: Sequence[Member]) -> Chosen:
    """Who stands for a group of at least one member. The answer does not depend on the order of the group."""
    by_url = {member.url: member for member in members}
    told = {member.id: _claim(member, by_url) for member in members}
    claims = tuple(told[member.id][0] for member in members)
    if len(members) == 1:
        return Chosen(members[0], Why.ONLY, claims)
    left = list(members)
    votes = Counter(end.id for _, end in told.values() if end is not None)
    if votes:
        left = _best(left, votes)
        if len(left) == 1:
            return Chosen(left[0], Why.CANONICAL if len(votes) == 1 else Why.MOST_CANONICALS, claims)
    for why, scores in _rules(left):
        left = _best(left, scores)
        if len(left) == 1:
            return Chosen(left[0], why, claims)
    return Chosen(min(left, key=lambda member: member.id), Why.AGE, claims)


def _rules(left: Sequence[Member]) -> Iterable[tuple[Why, Mapping[int, int]]]:
    """The rules behind the claims, in order."""
    yield Why.REDIRECTS, {member.id: member.redirects for member in left}
    yield Why.SITEMAP, {member.id: int(member.in_sitemap) for member in left}
    yield Why.LINKS, {member.id: member.links for member in left}
    yield Why.AGE, {member.id: -member.found_at for member in left}


def _best(members: Sequence[Member], scores: Mapping[int, int]) -> list[Member]:
    """Those with the highest score."""
    best = max(scores.get(member.id, 0) for member in members)
    return [member for member in members if scores.get(member.id, 0) == best]


def _claim(member: Member, by_url: Mapping[str, Member]) -> tuple[Claim, Member | None]:
    """What a page's claim comes to, and the member where it ends."""
    if member.canonical is None:
        return Claim.NONE, None
    met: list[str] = []
    at = member
    while at.canonical is not None and at.canonical != at.url:
        met.append(at.url)
        if at.canonical in met:
            return Claim.CIRCLE, None
        following = by_url.get(at.canonical)
        if following is None:
            # What a member on the way claims of a page elsewhere does not undo the claims that lead to it.
            return (Claim.ELSEWHERE, None) if at is member else (_on_the_way(len(met) - 1), at)
        at = following
    return (Claim.SELF, at) if at is member else (_on_the_way(len(met)), at)


def _on_the_way(steps: int) -> Claim:
    return Claim.MEMBER if steps == 1 else Claim.CHAINED
