"""Sizes are limits, not wishes."""

from __future__ import annotations

import pytest

import code_sizes


def test_no_function_and_no_file_is_over_its_limit() -> None:
    """Functions of 50 lines, files of 450, blocks nested three deep: in the package, its tests and its scripts."""
    found = [sentence for name, text in code_sizes.files() for sentence in code_sizes.breaches(text, name)]
    assert not found, "\n".join(found)


def test_the_package_is_among_the_files_that_are_measured() -> None:
    assert "src/crawlspace/states.py" in {name for name, _ in code_sizes.files()}


def function_of(lines: int) -> str:
    return "def f():\n" + "    x = 1\n" * (lines - 1)


@pytest.mark.parametrize(
    ("source", "breach"),
    [
        (function_of(50), None),
        (function_of(51), "51 lines"),
        ('def f():\n    """One\n    two\n    """\n' + "    x = 1\n" * 49, None),
        ("x = 1\n" * 450, None),
        ("x = 1\n" * 451, "451 lines"),
        ("def f():\n for a in b:\n  for c in d:\n   if e:\n    g()\n", None),
        ("def f():\n for a in b:\n  for c in d:\n   if e:\n    while g:\n     h()\n", "nest 4 deep"),
        ("def f():\n if a:\n  b()\n elif c:\n  d()\n elif e:\n  g()\n elif h:\n  i()\n else:\n  j()\n", None),
        ("def f():\n for a in b:\n  for c in d:\n   if e:\n    def g():\n     if h:\n      i()\n", None),
    ],
    ids=[
        "function at its limit",
        "function one line over",
        "a docstring is not counted",
        "file at its limit",
        "file one line over",
        "three blocks",
        "four blocks",
        "a chain of elifs is one block",
        "a function inside is counted by itself",
    ],
)
def test_a_breach_is_one_line_or_one_block_over(source: str, breach: str | None) -> None:
    found = code_sizes.breaches(source, "a.py")
    assert [sentence for sentence in found if breach is None or breach not in sentence] == []
    assert bool(found) == (breach is not None)


def test_the_report_has_a_line_each_for_files_functions_and_nesting() -> None:
    titles = [line[:16].strip() for line in code_sizes.report().splitlines()]
    assert titles == ["", "file lines", "function lines", "nesting"]
