"""What the server's log says was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.accesslog import AccessLog, read

PAGE = "200\t1\tGET\ttext/html\t/a.html\n"


@pytest.mark.parametrize(
    ("line", "pages", "others"),
    [
        (PAGE, {"/a.html": 1}, 0),
        ("200\t1\tGET\ttext/html; charset=utf-8\t/a.html?q=1\n", {"/a.html?q=1": 1}, 0),
        ("200\t1\tGET\ttext/html\t/a.html#part\n", {"/a.html": 1}, 0),
        ("404\t1\tGET\ttext/html\t/robots.txt\n", {}, 1),
        ("200\t1\tHEAD\ttext/html\t/a.html\n", {}, 1),
        ("200\t1\tGET\ttext/css\t/a.css\n", {}, 1),
        ("301\t1\tGET\ttext/html\t/folder\n", {}, 1),
        ("200\t1\tGET\ttext/html\t/half", {}, 0),
        ("200\t1\tGET\n", {}, 0),
    ],
)
def test_a_page_is_a_get_that_was_answered_with_html(line: str, pages: dict[str, int], others: int) -> None:
    """All else is counted apart; a line that is not whole yet counts for nothing."""
    requests = read([line])
    assert dict(requests.pages) == pages
    assert requests.others == others


def test_missed_twice_and_unexpected_pages_are_told_apart() -> None:
    requests = read([PAGE, PAGE, PAGE, "200\t2\tGET\ttext/html\t/b.html\n"])
    expected = frozenset({"/a.html", "/c.html", "/d.html"})
    assert (requests.missed(expected), requests.beyond(expected), requests.repeats) == (2, 1, 2)
    assert len(requests.connections) == 2


def test_a_log_is_read_from_its_mark_on(tmp_path: Path) -> None:
    file = tmp_path / "access.log"
    file.write_text(PAGE)
    log = AccessLog(file)
    assert log.requests().pages.total() == 1
    log.mark()
    assert log.requests().pages.total() == 0
    with file.open("a") as more:
        more.write(PAGE + PAGE)
    assert log.requests().pages.total() == 2
