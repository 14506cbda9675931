"""The table of URL states: every pair of state and event either has one successor or raises."""

from __future__ import annotations

import itertools

import pytest

from crawlspace.errors import IllegalMove
from crawlspace.states import MOVES, TERMINAL, Event, UrlState, advance


@pytest.mark.parametrize(("state", "event"), list(itertools.product(UrlState, Event)))
def test_every_pair_moves_by_the_table_or_raises(state: UrlState, event: Event) -> None:
    if event in MOVES[state]:
        assert advance(state, event) is MOVES[state][event]
    else:
        with pytest.raises(IllegalMove, match=state.name.lower()):
            advance(state, event)


def test_every_state_can_be_reached_from_queued() -> None:
    reached = {UrlState.QUEUED}
    while more := {to for state in reached for to in MOVES[state].values()} - reached:
        reached |= more
    assert reached == set(UrlState)


def test_nothing_leaves_a_terminal_state_but_by_an_explicit_act() -> None:
    """Only a new generation, a person, a changed rule or a second reading moves what has ended."""
    explicit = {Event.REVISIT, Event.REVIVE, Event.READMIT, Event.FINISH, Event.DIE, Event.DROP}
    for state in TERMINAL:
        assert set(MOVES[state]) <= explicit


def test_a_lost_lease_and_a_retry_are_different_events() -> None:
    assert advance(UrlState.LEASED, Event.RETURN) is UrlState.QUEUED
    assert advance(UrlState.LEASED, Event.RETRY) is UrlState.QUEUED
    assert Event.RETURN is not Event.RETRY  # type: ignore[comparison-overlap]


def test_the_stored_numbers_never_change() -> None:
    assert [(state.name, state.value) for state in UrlState] == [
        ("QUEUED", 0),
        ("LEASED", 1),
        ("STORED", 2),
        ("DONE", 3),
        ("REDIRECTED", 4),
        ("SKIPPED", 5),
        ("DEAD", 6),
    ]
