"""Times are read as sitemaps and feeds write them."""

from __future__ import annotations

import pytest

from crawlspace.pages.timestamps import read_time

DAY = 1_483_574_400_000
"""2017-01-05, midnight UTC."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2017-01-05", DAY),
        ("2017-01", DAY - 4 * 86_400_000),
        ("2017", DAY - 4 * 86_400_000),
        ("2017-01-05T01:00Z", DAY + 3_600_000),
        (" 2017-01-05T01:00:02.5+01:00 ", DAY + 2_000),
        ("2017-01-05 01:00:02-0130", DAY + 9_002_000),
        ("2017-01-05t00:00:00z", DAY),
        ("2017-01-05T00:00:00", DAY),
        ("Thu, 05 Jan 2017 01:00:00 +0100", DAY),
        ("05 Jan 17 00:00:00 GMT", DAY),
        ("Thu, 05 Jan 2017 00:00:00 -0000", DAY),
        ("2017-13-05", None),
        ("2017-01-05T25:00Z", None),
        ("0000-01-01", None),
        ("2017-01-05T00:00+99:00", None),
        ("yesterday", None),
        ("", None),
        ("Thu, 05 Jan 2017 00:00:00 +0000" + " " * 64 + "x", None),
        ("Thu, 99 Jan 2017 00:00:00 +0000", None),
    ],
)
def test_a_time_is_read_or_it_is_none(text: str, expected: int | None) -> None:
    assert read_time(text) == expected
