"""What holds for every test: how many examples Hypothesis draws, and which seed repeats a failed run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Examples stay random, so that every run looks somewhere new; a failure prints what repeats it.
settings.register_profile(
    "plain", deadline=None, print_blob=True, derandomize=False, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("plain"), max_examples=5000)
settings.load_profile("plain")


UNCOVERED = (
    # Whole crawls.
    "tests/sim/",
    "tests/e2e/",
    "tests/learn/test_toyweb_learning",
    "tests/rekey/test_kill",
    "tests/frontier_postgres/test_groups",
    "tests/frontier_postgres/test_live",
    "tests/frontier_postgres/test_stopped",
    "tests/frontier_postgres/test_workers",
    # Many examples, large sizes, and each fault at each step.
    "tests/archive/test_cost",
    "tests/archive/test_faults",
    "tests/archive/test_repair",
    "tests/fetch/test_body",
    "tests/fetch/test_chunks",
    "tests/fetch/test_response",
    "tests/frontier/test_contract",
    "tests/frontier/test_control",
    "tests/frontier/test_fairness",
    "tests/frontier/test_migrations",
    "tests/frontier/test_near",
    "tests/frontier/test_plans",
    "tests/frontier/test_store",
    "tests/frontier_postgres/test_columns",
    "tests/frontier_postgres/test_model",
    "tests/frontier_postgres/test_plans",
    "tests/frontier_postgres/test_proxy",
    "tests/frontier_postgres/test_store",
    "tests/records/test_reparse",
    "tests/records/test_things",
    "tests/rekey/test_hosts",
    "tests/rekey/test_rekey",
    "tests/security/test_answers",
    "tests/security/test_stores",
    "tests/security/test_texts",
    "tests/seen/test_cost",
    "tests/seen/test_table",
    "tests/urls/test_url_properties",
)
"""Tests whose lines are not traced, which takes half as long again or more: other tests reach those lines too.

Measured when the list was made: without all of these, 1 % of the branches that are taken are not seen.
"""


def pytest_xdist_auto_num_workers() -> int | None:
    """For `--numprocesses=auto`, three for two cores: a third of the time, tests wait for others."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores * 3 // 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(UNCOVERED):
            item.add_marker(pytest.mark.no_cover)


def pytest_configure() -> None:
    """Started behind a shell's `&` or `nohup`, the tests and all that they start would hear no Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """The command line hears no signal once it has an exit code: whoever calls it goes on to hear them."""
    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        return (yield)
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """A failure under one order of tests and one run of chance can be had again."""
    seed = config.getoption("randomly_seed", None)
    if exitstatus and isinstance(seed, int):
        terminalreporter.write_line(f"order and chance of this run: --randomly-seed={seed}")
