"""Whether and when a failed URL is tried again."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.exchange import FetchError
from crawlspace.policy.retry import DEFAULT, RULES, Failed, RetrySettings, next_try, rule_for

NOW = 1_700_000_000_000
STEADY = RetrySettings(jitter=0)


def due(error: str, attempts: int, settings: RetrySettings = STEADY, retry_after_ms: int | None = None) -> int | None:
    """Milliseconds from now on."""
    at = next_try(Failed(error, attempts, retry_after_ms), NOW, random.Random(1), settings)
    return None if at is None else at - NOW


@pytest.mark.parametrize(
    ("error", "waits"),
    [
        ("http_500", [30_000, 60_000, None]),
        ("http_503", [30_000, 60_000, None]),
        ("http_408", [30_000, 60_000, None]),
        ("http_429", [60_000, 120_000, None]),
        ("dns", [60_000, 120_000, None]),
        ("connect", [30_000, 60_000, None]),
        ("reset", [30_000, 60_000, None]),
        ("never heard of", [30_000, 60_000, None]),
        ("local", [300_000, 600_000, None]),
        ("tls", [30_000, None, None]),
        ("protocol", [30_000, None, None]),
        ("decoding", [30_000, None, None]),
        ("truncated", [30_000, None, None]),
    ],
)
def test_waits_grow_until_the_tries_are_used_up(error: str, waits: list[int | None]) -> None:
    """Three requests in all by default; what seldom passes gets two."""
    assert [due(error, attempts) for attempts in (1, 2, 3)] == waits


@pytest.mark.parametrize(
    ("error", "row"), [("http_429", "http_429"), ("http_503", "http_5xx"), ("http_599", "http_5xx"), ("tls", "tls")]
)
def test_a_class_has_its_own_row_or_its_familys(error: str, row: str) -> None:
    """Exact first."""
    assert rule_for(error) is RULES[row]


@pytest.mark.parametrize("error", ["http_404", "http_", "reset", "", "tls_x"])
def test_what_is_not_listed_follows_the_settings(error: str) -> None:
    """No row, no family: the default."""
    assert rule_for(error) is DEFAULT


def test_the_table_names_only_classes_that_exist() -> None:
    """A misspelt row would never be read."""
    known = {error.value for error in FetchError} | {"truncated"}
    assert {name for name in RULES if not name.startswith("http_")} <= known


def test_zero_is_zero() -> None:
    """Without a wait the next try is due at once, whatever factor and row."""
    assert due("http_429", 2, RetrySettings(wait=0)) == 0


def test_none_is_none() -> None:
    """A single try is never repeated, not even when the server names a time."""
    assert due("local", 1, RetrySettings(max=1)) is None
    assert due("http_503", 1, RetrySettings(max=1), retry_after_ms=5) is None


def test_a_row_never_allows_more_than_the_setting() -> None:
    """`retry.max` is the most there is; a row can only take away."""
    assert all(due(error, 2, RetrySettings(max=2)) is None for error in (*RULES, "reset"))


@pytest.mark.parametrize("asked", [0, 1, 5_000, 90_000_000])
def test_what_the_server_asked_for_wins_over_ours(asked: int) -> None:
    """Shorter or longer, and without jitter: never earlier than asked."""
    assert due("http_503", 1, RetrySettings(), retry_after_ms=asked) == asked


def test_the_cap_holds_for_the_first_wait_too() -> None:
    """A first wait beyond the longest is the longest."""
    assert due("reset", 1, RetrySettings(wait=60, wait_max=10, jitter=0)) == 10_000


def test_chance_is_an_argument() -> None:
    """The same source of chance gives the same time."""
    failed, settings = Failed("reset", 1), RetrySettings()
    assert next_try(failed, NOW, random.Random(7), settings) == next_try(failed, NOW, random.Random(7), settings)
    spread = {next_try(failed, NOW, random.Random(seed), settings) for seed in range(20)}
    assert len(spread) > 10


@given(
    st.sampled_from([*RULES, "reset", "http_418"]),
    st.integers(1, 100),
    st.builds(
        RetrySettings,
        max=st.integers(1, 100),
        wait=st.floats(0, 86_400),
        factor=st.floats(1, 10),
        wait_max=st.floats(0, 604_800),
        jitter=st.floats(0, 1),
    ),
    st.randoms(use_true_random=False),
)
def test_every_wait_is_capped_and_every_url_gives_up(
    error: str, attempts: int, settings: RetrySettings, chance: random.Random
) -> None:
    """Never in the past, never beyond the cap, and never a try more than the setting."""
    at = next_try(Failed(error, attempts), NOW, chance, settings)
    if at is None:
        assert attempts >= min(settings.max, rule_for(error).tries or settings.max)
    else:
        assert attempts < settings.max
        assert NOW <= at <= NOW + settings.wait_max * 1000
