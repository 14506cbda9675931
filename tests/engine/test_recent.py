"""The recent set holds back what was claimed at least as well, and nothing else."""

from __future__ import annotations

from crawlspace.engine.recent import REFUSED, Recent
from crawlspace.types import Address, Claim, Reason


def claim(number: int, depth: int = 1, front_class: int = 2, refusal: Reason | None = None) -> Claim:
    key = number.to_bytes(16, "big")
    return Claim(Address("http://a/", "http://a/", "a", key), depth, 0, front_class, refusal=refusal)


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def test_only_committed_claims_are_held() -> None:
    recent = Recent()
    assert not recent.holds(key(1), 2, 1)
    recent.commit([claim(1)])
    assert recent.holds(key(1), 2, 1)


def test_a_better_class_or_depth_passes() -> None:
    recent = Recent()
    recent.commit([claim(1, depth=3, front_class=4)])
    assert recent.holds(key(1), 4, 3)
    assert recent.holds(key(1), 5, 9)
    assert not recent.holds(key(1), 3, 3)
    assert not recent.holds(key(1), 4, 2)


def test_the_best_of_two_claims_is_remembered() -> None:
    recent = Recent()
    recent.commit([claim(1, depth=3, front_class=4), claim(1, depth=1, front_class=6)])
    assert recent.holds(key(1), 4, 1)


def test_a_refused_claim_holds_back_its_repeats_only() -> None:
    recent = Recent()
    recent.commit([claim(1, refusal=Reason.DEPTH)])
    assert recent.holds(key(1), *REFUSED)
    assert not recent.holds(key(1), 9, 20)


def test_memory_is_bounded_and_what_is_used_stays() -> None:
    recent = Recent(limit=100)
    recent.commit([claim(0)])
    for number in range(1, 1000):
        recent.commit([claim(number)])
        assert recent.holds(key(0), 2, 1), "a key that is asked for is carried into the next generation"
        assert len(recent) <= 101
    assert not recent.holds(key(1), 2, 1)
