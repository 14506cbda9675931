"""Who stands for a group of pages that say the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.policy.representative import Claim, Member, Why, representative

A, B, C, D = "http://a.test/", "http://a.test/b", "http://a.test/c", "http://other.test/d"


def group(*claims: str | None) -> list[Member]:
    """Members at A, B, C and D with these canonicals, in order of age."""
    urls = (A, B, C, D)
    return [Member(number, urls[number], claim, found_at=number) for number, claim in enumerate(claims)]


@pytest.mark.parametrize(
    ("members", "url", "why"),
    [
        (group(None), A, Why.ONLY),
        (group(None, None), A, Why.AGE),
        (group(None, B), B, Why.CANONICAL),
        (group(B, None), B, Why.CANONICAL),
        (group(D, None, None, None), D, Why.CANONICAL),
        (group(B, C, C), C, Why.CANONICAL),
        (group("http://a.test/elsewhere", None), A, Why.AGE),
        (group(None, "http://a.test/gone", B), B, Why.CANONICAL),
        (group(B, A), A, Why.AGE),
        (group(A, B, B), B, Why.MOST_CANONICALS),
        (group(A, B), A, Why.AGE),
    ],
)
def test_claims_count_where_they_lead_to_a_member(members: list[Member], url: str, why: Why) -> None:
    chosen = representative(members)
    assert (chosen.member.url, chosen.why) == (url, why)


@pytest.mark.parametrize(
    ("better", "why"),
    [
        ({"redirects": 1}, Why.REDIRECTS),
        ({"in_sitemap": True}, Why.SITEMAP),
        ({"links": 3}, Why.LINKS),
        ({"found_at": -1}, Why.AGE),
    ],
)
def test_without_claims_the_next_rule_decides(better: dict[str, int], why: Why) -> None:
    first, second, third = group(None, None, None)
    chosen = representative([first, second._replace(**better), third])
    assert (chosen.member.id, chosen.why) == (1, why)


def test_of_two_found_in_one_moment_the_lower_number_is_the_older() -> None:
    first, second = group(None, None)
    assert representative([second._replace(found_at=0), first]).member is first


def test_rules_come_in_their_order() -> None:
    first, second = group(None, None)
    assert representative([first._replace(redirects=1), second._replace(in_sitemap=True)]).why is Why.REDIRECTS
    assert representative([first._replace(in_sitemap=True), second._replace(links=9)]).why is Why.SITEMAP


def test_claims_that_contradict_each_other_evenly_leave_it_to_the_next_rule_among_the_claimed() -> None:
    first, second, third = group(A, B, None)
    chosen = representative([first, second._replace(links=1), third._replace(links=9)])
    assert (chosen.member.url, chosen.why) == (B, Why.LINKS)


def test_what_each_claim_comes_to_is_told() -> None:
    assert representative(group(A, A, B, "http://gone.test/")).claims == (
        *(Claim.SELF, Claim.MEMBER, Claim.CHAINED, Claim.ELSEWHERE),
    )
    assert representative(group(B, A, None)).claims == (Claim.CIRCLE, Claim.CIRCLE, Claim.NONE)
    assert representative(group(B, "http://gone.test/")).claims == (Claim.MEMBER, Claim.ELSEWHERE)
    assert representative(group(B, "http://gone.test/")).member.url == B


URLS = st.sampled_from([A, B, C, D])
MEMBERS = st.lists(
    st.builds(
        Member,
        id=st.integers(0, 50),
        url=URLS,
        canonical=st.none() | URLS | st.just("http://gone.test/"),
        redirects=st.integers(0, 2),
        in_sitemap=st.booleans(),
        links=st.integers(0, 2),
        found_at=st.integers(0, 3),
    ),
    min_size=1,
    max_size=4,
    unique_by=(lambda member: member.id, lambda member: member.url),
)


@given(MEMBERS, st.randoms())
def test_the_order_of_the_group_changes_nothing(members: list[Member], chance: st.DataObject) -> None:
    chosen = representative(members)
    mixed = list(members)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    assert representative(mixed)[:2] == chosen[:2]
    assert chosen.member in members
