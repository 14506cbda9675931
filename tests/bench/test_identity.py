"""The site whose pages have many addresses, and who asks for each of them once."""

from __future__ import annotations

import re
import shutil
import urllib.error
import urllib.request
from html import unescape

import pytest
from bench.contenders import contenders
from bench.identity import Row, main, measure
from bench.spelled import ARTICLES, MOVED, Web, one_address, spelled


@pytest.mark.parametrize(
    ("target", "page"),
    [
        ("/~article1.html", "/~article1.html"),
        ("/%7Earticle1.html?gclid=1&PHPSESSID=abc", "/~article1.html"),
        ("/attic/./../~article1.html;jsessionid=0AF", "/~article1.html"),
        ("/list?sheet=2&kind=new&utm_source=a", "/list?kind=new&sheet=2"),
    ],
)
def test_a_page_is_known_by_any_of_its_addresses(target: str, page: str) -> None:
    assert one_address(target) == page
    assert one_address(page) == page


def test_pages_that_differ_say_something_else_and_copies_say_the_same() -> None:
    web = Web()
    bodies = {web.body(page, "http://127.0.0.1:1/") for page in web.pages}
    assert len(bodies) == len(web.pages) == 1 + ARTICLES + 20
    assert web.body("/print/~article3.html", "http://127.0.0.1:1/") in bodies


def test_every_link_leads_to_a_page_a_copy_or_a_redirect() -> None:
    """So whoever misses one, folded too much; and all pages are linked in more spellings than one."""
    web, root = Web(), "http://127.0.0.1:1/"
    links = [
        unescape(link) for page in web.pages for link in re.findall(r'href="([^"]+)"', web.body(page, root).decode())
    ]
    led_to = {one_address(re.sub("(?i)http://[^/]+", "", link).partition("#")[0]) for link in links}
    moved = {f"/moved/~article{number}.html" for number in range(MOVED)}
    assert led_to == {*web.pages, *web.copies, *moved}
    assert len(set(links)) > 20 * len(web.pages)


def test_the_server_counts_pages_not_addresses() -> None:
    web = Web()
    with spelled(web) as root:
        for target in ("?fbclid=1", "", "moved/~article2.html", "list?sheet=1&kind=old"):
            assert urllib.request.urlopen(root + target).status == 200
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(root + "robots.txt")
    assert web.asked == {"/": 2, "/~article2.html": 1, "/list?kind=old&sheet=1": 1}


def test_a_crawl_of_ours_asks_for_every_page_once_and_the_floor_does_not() -> None:
    """What folds nothing is the proof that there is something to fold."""
    ours, floor = (
        measure(next(each for each in contenders("python3") if each.name == name)) for name in ("crawlspace", "floor")
    )
    assert (ours.missed, ours.requests, ours.copies, ours.exit) == (0, ours.there, ARTICLES, 0)
    assert (floor.missed, floor.exit) == (0, 0)
    assert floor.asked_once > 10


def test_whoever_fetched_nothing_asked_for_no_page_once() -> None:
    assert Row("none", 81, 81, 0, 0, 1).asked_once == 0


def test_the_table_has_a_row_for_each_that_is_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "wget" else name)
    assert main(["--only", "floor", "--only", "wget"]) == 0
    printed = capsys.readouterr()
    assert "| floor " in printed.out
    assert "wget" not in printed.out
    assert "left out: wget" in printed.err
