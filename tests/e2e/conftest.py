"""Whole crawls over the toy web and over real sites, all on 127.0.0.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from crawlspace.testing.toyweb import ToyWeb


def _quick(web: ToyWeb, delay_ms: int) -> dict[str, Any]:
    return {
        "contact": "tests@crawlspace.test",
        "host.delay": delay_ms / 1000,
        "host.failure_wait": 0.1,
        "host.failures_max": 3,
        "robots.retry": 0.2,
        "retry.wait": 0.1,
        "fetch.timeout": 5.0,
        "fetch.idle_timeout": 1.0,
        "fetch.connect_timeout": 1.0,
        "network.resolve": dict(web.resolve),
        "network.allow": ["127.0.0.1"],
        "identity.hosts": [dict(rule) for rule in web.truth.own_folds],
        **({"fetch.ca_file": str(web.ca_file)} if web.recipe.tls else {}),
    }


@pytest.fixture(scope="session")
def quick_settings() -> Callable[[ToyWeb, int], dict[str, Any]]:
    """Settings under which the toy web is crawled quickly, and as politely as it is told."""
    return _quick
