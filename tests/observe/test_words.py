"""Figures in words that fit a line and do not mislead."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from crawlspace.observe.words import duration, moment, size, what_next
from crawlspace.states import UrlState
from crawlspace.types import Relation, Story


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1210, "1.21 kB"),
        (5_000_000, "5 MB"),
        (999_999, "1 MB"),
        (3e9, "3 GB"),
        (7e15, "7e+03 TB"),
    ],
)
def test_sizes_have_three_digits_and_a_unit(count: float, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59.4, "59 s"), (60, "1:00 min"), (3599, "59:59 min"), (7620, "2:07 h")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_moments_are_utc_and_none_is_a_dash() -> None:
    assert moment(1_700_000_000_000) == "2023-11-14T22:13:20Z"
    assert moment(None) == "-"


STORY = Story(1, "http://a/", "a", UrlState.QUEUED, 1, 0, 0, 0, None, Relation.SEED, 0)


@pytest.mark.parametrize("state", list(UrlState))
def test_every_state_has_something_to_come(state: UrlState) -> None:
    assert len(what_next(replace(STORY, state=state), 0)) > 10


def test_a_queued_url_says_until_when_it_waits() -> None:
    assert "in 5 s" in what_next(replace(STORY, due=15_000), 10_000)
    assert "host's turn" in what_next(replace(STORY, due=9_000), 10_000)
