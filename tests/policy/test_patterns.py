"""Patterns that users write about URLs."""

from __future__ import annotations

import time

import pytest

from crawlspace.errors import ConfigError
from crawlspace.policy.patterns import Patterns


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("/docs/", "http://site.test/docs/a", True),
        ("/docs/", "http://site.test/doc/a", False),
        (r"\.pdf$", "http://site.test/a.pdf", True),
        (r"\.pdf$", "http://site.test/a.pdf?x", False),
        ("(?i)PRINT", "http://site.test/print", True),
        ("glob:http://site.test/*", "http://site.test/a", True),
        ("glob:http://site.test/*", "http://site.test/a/b", False),
        ("glob:http://site.test/**", "http://site.test/a/b?c=d", True),
        ("glob:http://site.test/a?", "http://site.test/ab", True),
        ("glob:http://site.test/a?b=*", "http://site.test/a?b=1", True),
        ("glob:http://site.test/a?b", "http://site.test/a/b", False),
        ("glob:site.test", "http://site.test/", False),
        ("glob:http://[::1]/a.b", "http://[::1]/a.b", True),
        ("glob:http://[::1]/a.b", "http://[::1]/axb", False),
        ("glob:*(.+)$", "x(.+)$", True),
        ("glob:", "http://site.test/", False),
    ],
)
def test_a_pattern_is_searched_and_a_glob_fits_the_whole(pattern: str, text: str, fits: bool) -> None:
    """`*` and `?` stop at a slash, `**` does not, and every other character of a glob is itself."""
    assert Patterns.of([pattern], "scope.include").match(text) is fits


def test_several_patterns_are_one_test_and_do_not_touch_each_other() -> None:
    """A flag or an alternative in one stays in it."""
    patterns = Patterns.of(["(?i)one", "two|three", "glob:four*"], "scope.include")
    fitting = [text for text in ("ONE", "TWO", "three", "x four", "four5", "THREE") if patterns.match(text)]
    assert fitting == ["ONE", "three", "four5"]


def test_no_patterns_fit_nothing() -> None:
    """An empty list is no pattern that fits everything."""
    assert not Patterns.of([], "scope.include").match("")


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (["a(b"], "scope.exclude, pattern 1 ('a(b'): missing ): a(b (at character 1)"),
        (
            ["ok", "x[z-a]"],
            "scope.exclude, pattern 2 ('x[z-a]'): invalid character class range: z-a (at character 3)",
        ),
        (["a)|(b"], "scope.exclude, pattern 1 ('a)|(b'): unexpected ): a)|(b (at character 1)"),
        (["(?=a)"], "scope.exclude, pattern 1 ('(?=a)'): invalid perl operator: (?= (at character 1)"),
        (["x{2000}"], "scope.exclude, pattern 1 ('x{2000}'): invalid repetition size: {2000} (at character 2)"),
        (["a\\"], "scope.exclude, pattern 1 ('a\\\\'): trailing \\"),
        ([r"\Qa", "b"], r"scope.exclude, pattern 1 ('\\Qa'): missing ): (?:\Qa) (at character 1)"),
        (["\udcff"], "scope.exclude, pattern 1 ('\\udcff'): it is not Unicode text"),
        (
            ["((((((a{100}){10}){10}){10}){10}){10})"],
            "scope.exclude, pattern 1 ('((((((a{100}){10}){10}){10}){10}){10})'): ",
        ),
    ],
)
def test_a_pattern_that_cannot_be_read_is_named_with_its_fault(
    patterns: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Setting, number, text, and where; the library itself prints nothing."""
    with pytest.raises(ConfigError) as caught:
        Patterns.of(patterns, "scope.exclude")
    assert str(caught.value).startswith(message)
    assert capfd.readouterr() == ("", "")


def test_a_pattern_made_to_hang_does_not() -> None:
    """Nested repetition over a long text is linear; a backtracking engine would not come back."""
    patterns = Patterns.of(["^(a+)+$", "(.*)*x(.*)*y"], "scope.exclude")
    text = "a" * 50_000 + "!"
    started = time.process_time()
    assert not patterns.match(text)
    assert time.process_time() - started < 5
