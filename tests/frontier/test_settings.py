"""The frontier's settings: safe defaults, and values that make no sense are refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from crawlspace.frontier.quotas import Quotas
from crawlspace.frontier.settings import CLASSES, FrontierSettings


def test_every_crawl_ends_by_default() -> None:
    """A host that nobody asked for has a budget; a seed's own host is what was asked for."""
    settings = FrontierSettings()
    assert (settings.pages(seed=False), settings.pages(seed=True)) == (10_000, None)
    assert settings.queue_per_host == 10 * 10_000


@pytest.mark.parametrize(
    "given",
    [
        {"pages_per_host": -1},
        {"queue_per_host": -1},
        {"refusals_kept": -1},
        {"class_quotas": [10] * (CLASSES - 1)},
        {"class_quotas": [0] * CLASSES},
        {"class_quotas": [11] * CLASSES},
        {"cache_mb": 0},
        {"durability": "off"},
        {"pages_per_hots": 1},
    ],
)
def test_values_out_of_bounds_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(given, FrontierSettings)


def test_null_is_no_limit_and_zero_is_zero() -> None:
    settings = msgspec.convert({"pages_per_host": None, "pages_per_seed_host": 0}, FrontierSettings)
    assert (settings.pages(seed=False), settings.pages(seed=True)) == (None, 0)


def test_quotas_are_carried_from_call_to_call() -> None:
    quotas = Quotas((50, 20, 10, 10, 5, 1, 1, 1, 1, 1))
    assert quotas.turn(1) == []
    assert quotas.turn(1) == [(0, 1)]
    quotas.took(0, 1)
    assert quotas.turn(100) == [(0, 50), (1, 20), (2, 10), (3, 10), (4, 5)] + [(c, 1) for c in range(5, 10)]


def test_a_class_without_hosts_saves_nothing() -> None:
    quotas = Quotas((10,) * CLASSES)
    for _ in range(50):
        assert all(share <= 2 for _, share in quotas.turn(10))
        for front_class in range(CLASSES):
            quotas.is_empty(front_class)
    assert quotas.turn(10) == [(front_class, 1) for front_class in range(CLASSES)]
